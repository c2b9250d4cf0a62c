"""Access: the tokens and keys that the hub accepts.

The store has the digests of tokens; this table has a copy, so that a request costs one hash, one lookup and no I/O. A
background task reads the store again every few seconds (another hub may have made or revoked a token) and records when
tokens were last used.

A revocation takes effect at once, even while the store is away: the hub then tries again until the store has deleted
the token too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Final

from lifesigns.errors import AdapterError, WireError
from lifesigns.events.hub_facts import OLD_SECRET
from lifesigns.hub import admin_token
from lifesigns.hub.clock import Clock
from lifesigns.hub.principals import NOBODY, Patterns, Principal, Role
from lifesigns.hub.sign_in import SESSION_MAX_FOR, SESSIONS_MAX, Session, SignIns
from lifesigns.hub.throttle import Failures, Throttle
from lifesigns.hub.token_macs import TokenMacs, token_macs
from lifesigns.hub.tokens import TOKEN_MAX, digest_of, id_of, new_secret, new_token
from lifesigns.ports import Store, StoredToken
from lifesigns.wire.signed import key_id

__all__ = ["Access", "NewToken", "Principal", "Role"]

FOR_AGENTS: Final = (Role.AGENT, Role.KEY)
TOKENS_MAX: Final = 10_000
NAME_MAX: Final = 100
NOTE_EVERY: Final = 60.0
"""The hub records the use of a token to the minute: a better value helps no one, and each costs a write."""
NOTES_MAX: Final = 20
"""Uses written at a time: a thousand agents with a token each must not delay a commit."""
SYNC_EVERY: Final = 10.0
"""The hub refuses a token that another hub revoked after so long at the latest."""

log: Final = logging.getLogger("lifesigns.hub")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token. The hub shows it this once."""

    token: str
    stored: StoredToken


@dataclass(slots=True)
class _Entry:
    """A token as requests look it up."""

    stored: StoredToken
    principal: Principal
    expires_at: float
    note_at: float = 0.0
    """When to record its next use."""


class Access:
    """The tokens of a hub, the links and sessions made with them, and a throttle for clients that guess."""

    def __init__(self, store: Store, session_for: float = SESSION_MAX_FOR) -> None:
        self._store = store
        self._by_digest: dict[bytes, _Entry] = {}
        self._by_id: dict[str, _Entry] = {}
        self._used: dict[str, float] = {}
        self._revoked: set[str] = set()
        """Revoked here, not yet deleted in the store."""
        self._changing = asyncio.Lock()
        """A list read before a change must not undo it."""
        self._folder: Path | None = None
        self._macs: TokenMacs | None = None
        """None without a folder: then we trust the store."""
        self._forged: dict[str, str] = {}
        """Rows of the store that this hub did not write: by id, what they claim to be."""
        self._sign_ins = SignIns(session_for)
        self._throttle = Throttle()

    # --- coming in ------------------------------------------------------------------------------------

    def principal(self, bearer: bytes, now: float) -> Principal | None:
        """The principal of this token; None if the token is unknown or expired."""
        if len(bearer) > TOKEN_MAX:
            return None
        entry = self._by_digest.get(digest_of(bearer))
        if entry is None or now >= entry.expires_at or entry.principal.role is Role.KEY:
            return None
        if now >= entry.note_at:
            self._note(entry, now)
        return entry.principal

    def key(self, key_id: str, now: float) -> tuple[bytes, Patterns] | None:
        """The public key with this id, and the agents that may sign with it; None if it is unknown or expired."""
        entry = self._by_id.get(key_id)
        if entry is None or now >= entry.expires_at or entry.principal.role is not Role.KEY:
            return None
        if now >= entry.note_at:
            self._note(entry, now)
        return entry.stored.digest, entry.principal.patterns

    def is_still_valid(self, token_id: str, now: float, session: str | None = None) -> bool:
        """Whether an open stream of this token, or of this session made with it, may go on."""
        is_open = session is None or self._sign_ins.is_open(session, now)
        return is_open and self._holder(token_id, now) is not None

    def failed(self, address: str, now: float) -> Failures:
        """Count a wrong token, code or session from this address."""
        return self._throttle.failed(address, now)

    @property
    def refused(self) -> int:
        """Wrong tokens, codes and sessions so far."""
        return self._throttle.refused

    @property
    def throttled(self) -> int:
        """Of these, from addresses that were throttled."""
        return self._throttle.throttled

    def take_burst(self) -> tuple[int, Sequence[str]]:
        """How many were refused since the last call, and the addresses with too many; none if there is no such
        address."""
        return self._throttle.take_burst()

    # --- the dashboard --------------------------------------------------------------------------------

    def link(self, principal: Principal, now: float) -> str:
        """A code that signs a person in once, as this principal, within five minutes."""
        return self._sign_ins.link(principal.token_id, now)

    def links_of(self, token_id: str, now: float) -> Sequence[float]:
        """The remaining seconds of each unopened link made with this token."""
        return self._sign_ins.links_of(token_id, now)

    def maker(self, code: str, now: float) -> Principal | None:
        """The principal that this code would sign in; None if it opens nothing."""
        token_id = self._sign_ins.maker(code, now)
        entry = None if token_id is None else self._holder(token_id, now)
        return None if entry is None else entry.principal

    def redeem(
        self, code: str, now: float, address: str = "", sessions_max: int = SESSIONS_MAX
    ) -> str | None:
        """The session that this code opens; None if the code is unknown, used or too old, or the token of its maker is
        gone. A token has at most so many sessions; then the least recently used one ends."""
        opened = self._sign_ins.redeem(code, now, address, sessions_max)
        if opened is None:
            return None
        session, token_id = opened
        if self._holder(token_id, now) is None:
            self._sign_ins.sign_out(session)
            return None
        return session

    def session(self, session: str, now: float) -> Principal | None:
        """The principal of this session."""
        token_id = self._sign_ins.token_of(session, now)
        entry = None if token_id is None else self._holder(token_id, now)
        return None if entry is None else entry.principal

    def sessions(self, now: float) -> Mapping[str, tuple[Session, Principal]]:
        """Sessions and their principals, by the id of the session."""
        return {
            session_id: (session, entry.principal)
            for session_id, session in self._sign_ins.sessions(now).items()
            if (entry := self._by_id.get(session.token_id)) is not None and now < entry.expires_at
        }

    def end_session(self, session_id: str) -> None:
        """End the session with this id, if there is one."""
        self._sign_ins.end_session(session_id)

    def sign_out(self, session: str) -> None:
        """End this session, if it is one."""
        self._sign_ins.sign_out(session)

    # --- managing tokens ------------------------------------------------------------------------------

    async def create(
        self, *, role: Role, name: str, now: float, agents: str = "", expires_at: float | None = None
    ) -> NewToken:
        """Make a token. Raises `WireError` with the invalid field, `AdapterError` if the store does not take it."""
        if role is Role.KEY:
            raise WireError("role", "is key, but a key is given by its public half: POST /api/v1/keys")
        _check(role, name, agents, expires_at, now)
        async with self._changing:
            if len(self._by_id) >= TOKENS_MAX:
                raise WireError("", f"there are {TOKENS_MAX} tokens already; revoke those nobody uses")
            return await self._make(role, name, agents, expires_at, now)

    async def add_key(
        self, public: bytes, *, name: str, agents: str, now: float, expires_at: float | None = None
    ) -> StoredToken:
        """Accept what this key signs, for these agents. The hub never sees the private half. Raises as `create`."""
        _check(Role.KEY, name, agents, expires_at, now)
        stored = StoredToken(key_id(public), public, Role.KEY, name, agents, now, expires_at)
        async with self._changing:
            if len(self._by_id) >= TOKENS_MAX:
                raise WireError(
                    "", f"there are {TOKENS_MAX} tokens and keys already; revoke those nobody uses"
                )
            if stored.id in self._by_id:
                raise WireError("public_key", f"is known already, as {stored.id}")
            await self._store_token(stored)
        return stored

    def list(self) -> Sequence[StoredToken]:
        """All tokens, oldest first, with when they were last used."""
        stored = map(self._with_use, self._by_id.values())
        return sorted(stored, key=lambda token: (token.made_at, token.id))

    def ending_before(self, moment: float) -> Iterator[StoredToken]:
        """Tokens that expire before this moment, with when they were last used."""
        return (self._with_use(entry) for entry in self._by_id.values() if entry.expires_at <= moment)

    def expired(self, digest: bytes, now: float) -> StoredToken | None:
        """The token with this digest, if it has expired."""
        entry = self._by_digest.get(digest)
        return None if entry is None or now < entry.expires_at else entry.stored

    async def revoke(self, token_id: str, now: float) -> bool:
        """Refuse this token, and what was made with it, from now on. Whether there was one.

        If it is the token in the state folder, a new one takes its place there.
        """
        if token_id not in self._by_id:
            return False
        for row_id in (token_id, f"{token_id}{OLD_SECRET}"):
            entry = self._by_id.pop(row_id, None)
            if entry is not None:
                self._by_digest.pop(entry.stored.digest, None)
                self._used.pop(row_id, None)
                self._revoked.add(row_id)
                log.warning(
                    "token %s (%s) is revoked", row_id, entry.stored.name, extra={"action": "token_revoked"}
                )
        self._sign_ins.end(token_id)
        async with self._changing:
            # The file first: if the store were lost, the next start would accept the token in the file again.
            if self._folder is not None and _is_in(self._folder, token_id):
                await self._make_admin(self._folder, now)
            await self._forget_revoked()
        return True

    async def rotate(self, token_id: str, grace: float, now: float) -> NewToken | None:
        """Give this token a new secret with the same lifetime; the old one stays valid for a grace. It stays the same
        token, so its holder keeps what it owns. None if there is no such token. Raises `AdapterError` if the store does
        not take it."""
        async with self._changing:
            entry = self._by_id.get(token_id)
            if entry is None or token_id.endswith(OLD_SECRET) or entry.principal.role is Role.KEY:
                return None  # The hub never had the private half of a key.
            stored, token = entry.stored, new_secret(token_id)
            lasts = None if stored.expires_at is None else stored.expires_at - stored.made_at
            fresh = replace(
                stored,
                digest=digest_of(token.encode()),
                made_at=now,
                expires_at=None if lasts is None else now + lasts,
                used_at=None,
            )
            self._used.pop(token_id, None)
            # The old secret first: after a crash in between both rows have it.
            until = min(now + grace, entry.expires_at)
            old_id = f"{token_id}{OLD_SECRET}"
            await self._store_token(replace(stored, id=old_id, made_at=now, expires_at=until, used_at=None))
            if self._folder is not None and _is_in(self._folder, token_id):
                admin_token.write(self._folder, token)
            await self._store_token(fresh)
            return NewToken(token, fresh)

    # --- beginning, and what happens beside -----------------------------------------------------------

    async def load(self) -> None:
        """Read the tokens from the store. Changed rights take effect at once; recorded uses stay."""
        async with self._changing:
            await self._load()

    async def open_folder(self, folder: Path, now: float) -> None:
        """Make sure that the state folder has a valid admin token.

        A valid one stays. A store without any token is new or was lost: the hub then accepts the token in the file. A
        store with other tokens has revoked the one in the file: the hub replaces it.
        """
        self._folder = folder
        self._macs = await token_macs(folder, self._store)
        self._sign_ins.use_folder(folder, now)
        async with self._changing:
            await self._load()
            token = admin_token.read(folder)
            entry = None if token is None else self._by_digest.get(digest_of(token.encode()))
            if entry is not None and entry.principal.role is Role.ADMIN and now < entry.expires_at:
                return
            if token is not None and not self._by_id:
                await self._accept(token, now)
                return
            await self._make_admin(folder, now)

    def why_forged(self, _now: float) -> str:
        """Describe the rows of the store that this hub did not write; empty if there is none."""
        if not self._forged:
            return ""
        named = ", ".join([*self._forged.values()][:5])
        return f"{len(self._forged)} rows of tokens in the store are not this hub's, and are refused: {named}"

    async def run(self, clock: Clock) -> None:
        """Run `sync` every `SYNC_EVERY`, for ever."""
        trouble = False
        while True:
            await asyncio.sleep(SYNC_EVERY)
            try:
                await self.sync(clock())
            except AdapterError as error:
                if not trouble:
                    log.warning("tokens are as they were: %s", error, extra={"action": "tokens_not_tended"})
                trouble = True
            else:
                trouble = False

    async def sync(self, now: float) -> None:
        """Delete revoked tokens in the store, read it again, record uses, and drop old sessions."""
        self._sign_ins.forget_old(now)
        async with self._changing:
            await self._forget_revoked()
            await self._load()
            # Right after reading: recording the use of a token revoked in between would bring it back.
            for token_id in list(self._used)[:NOTES_MAX]:
                entry = self._by_id.get(token_id)
                if entry is not None:
                    entry.stored = replace(entry.stored, used_at=self._used[token_id])
                    await self._store.keep_token(entry.stored)
                self._used.pop(token_id, None)

    # --- parts ----------------------------------------------------------------------------------------

    def _with_use(self, entry: _Entry) -> StoredToken:
        return replace(entry.stored, used_at=self._used.get(entry.stored.id, entry.stored.used_at))

    def _note(self, entry: _Entry, now: float) -> None:
        entry.note_at = now + NOTE_EVERY
        self._used[entry.stored.id] = now

    def _holder(self, token_id: str, now: float) -> _Entry | None:
        entry = self._by_id.get(token_id)
        if entry is None or now >= entry.expires_at:
            return None
        if now >= entry.note_at:
            self._note(entry, now)
        return entry

    async def _load(self) -> None:
        stored = await self._store.tokens()
        by_id: dict[str, _Entry] = {}
        forged, self._forged = self._forged, {}
        for token in stored:
            if not self._is_ours(token):
                self._forged[token.id] = f"{token.id} ({token.role} {token.name!r})"
                if token.id not in forged:
                    log.critical(
                        "token %s in the store was not made by this hub and is refused: it says to be %s %r; see "
                        "lifesigns token accept",
                        *(token.id, token.role, token.name),
                        extra={"action": "token_forged"},
                    )
                continue
            if token.id not in self._revoked and (entry := self._recall(token)) is not None:
                by_id[token.id] = entry
        for gone in self._by_id.keys() - by_id.keys():
            self._sign_ins.end(gone)
        self._by_id = by_id
        self._by_digest = {entry.stored.digest: entry for entry in by_id.values()}

    def _is_ours(self, token: StoredToken) -> bool:
        if self._macs is None:
            return True
        entry = self._by_id.get(token.id)
        unchanged = entry is not None and _same(
            entry.stored, token
        )  # The usual case, and cheaper than a MAC.
        return unchanged or self._macs.vouch_for(token)

    def _recall(self, token: StoredToken) -> _Entry | None:
        entry = self._by_id.get(token.id)
        if entry is not None and _same(entry.stored, token):
            return entry
        try:
            return _entry(token)
        except (ValueError, WireError) as error:
            log.error("token %s is of no use: %s", token.id, error, extra={"action": "token_unreadable"})
            return None

    async def _make(
        self, role: Role, name: str, agents: str, expires_at: float | None, now: float
    ) -> NewToken:
        token_id, token = new_token()
        while token_id in self._by_id:
            token_id, token = new_token()
        stored = StoredToken(token_id, digest_of(token.encode()), role, name, agents, now, expires_at)
        await self._store_token(stored)
        return NewToken(token, stored)

    async def _store_token(self, stored: StoredToken) -> None:
        if self._macs is not None:
            stored = self._macs.signed(stored)
        await self._store.keep_token(stored)
        entry, before = _entry(stored), self._by_id.get(stored.id)
        if before is not None and self._by_digest.get(before.stored.digest) is before:
            del self._by_digest[before.stored.digest]
        self._by_id[stored.id] = self._by_digest[stored.digest] = entry
        log.info(
            "token %s (%s) is made: %s", stored.id, stored.name, stored.role, extra={"action": "token_made"}
        )

    async def _make_admin(self, folder: Path, now: float) -> None:
        """The file first: the next start accepts or replaces a token that is only in the file; no person has the secret
        of one that is only in the store."""
        _, token = new_token()
        admin_token.write(folder, token)
        await self._accept(token, now)

    async def _accept(self, token: str, now: float) -> None:
        await self._store_token(
            StoredToken(id_of(token), digest_of(token.encode()), Role.ADMIN, "admin", "", now)
        )

    async def _forget_revoked(self) -> None:
        for token_id in list(self._revoked):
            await self._store.drop_token(token_id)
            self._revoked.discard(token_id)


def _entry(token: StoredToken) -> _Entry:
    role = Role(token.role)
    patterns = Patterns.of(token.agents) if role in FOR_AGENTS else NOBODY
    expires_at = inf if token.expires_at is None else token.expires_at
    return _Entry(token, Principal(token.id.removesuffix(OLD_SECRET), token.name, role, patterns), expires_at)


def _same(one: StoredToken, other: StoredToken) -> bool:
    """Whether these are equal but for when they were used."""
    return replace(one, used_at=None) == replace(other, used_at=None)


def _check(role: Role, name: str, agents: str, expires_at: float | None, now: float) -> None:
    if not 0 < len(name.strip()) <= NAME_MAX or not name.isprintable():
        raise WireError(
            "name", f"is {name[:NAME_MAX]!r}, but a name has 1 to {NAME_MAX} signs that can be seen"
        )
    if role in FOR_AGENTS:
        Patterns.of(agents)
    elif agents:
        raise WireError(
            "agents", f"is {agents[:NAME_MAX]!r}, but only a token of role agent is for certain agents"
        )
    if expires_at is not None and not now < expires_at < inf:
        raise WireError("expires_at", "is not in the future")


def _is_in(folder: Path, token_id: str) -> bool:
    token = admin_token.read(folder)
    return token is not None and id_of(token) == token_id
