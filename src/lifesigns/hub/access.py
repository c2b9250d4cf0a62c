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
TEND_EVERY: Final = 10.0
"""The hub refuses a token that another hub revoked after so long at the latest."""

log: Final = logging.getLogger("lifesigns.hub")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token. The hub shows it this once."""

    token: str
    kept: StoredToken


@dataclass(slots=True)
class _Known:
    """A token as requests look it up."""

    kept: StoredToken
    principal: Principal
    expires_at: float
    note_at: float = 0.0
    """When to record its next use."""


class Access:
    """The tokens of a hub, the links and sessions made with them, and a throttle for clients that guess."""

    def __init__(self, store: Store, session_for: float = SESSION_MAX_FOR) -> None:
        self._store = store
        self._by_digest: dict[bytes, _Known] = {}
        self._by_id: dict[str, _Known] = {}
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
        self._signed_in = SignIns(session_for)
        self._throttle = Throttle()

    # --- coming in ------------------------------------------------------------------------------------

    def principal(self, bearer: bytes, now: float) -> Principal | None:
        """The principal of this token; None if the token is unknown or expired."""
        if len(bearer) > TOKEN_MAX:
            return None
        known = self._by_digest.get(digest_of(bearer))
        if known is None or now >= known.expires_at or known.principal.role is Role.KEY:
            return None
        if now >= known.note_at:
            self._note(known, now)
        return known.principal

    def key(self, key_id: str, now: float) -> tuple[bytes, Patterns] | None:
        """The public key with this id, and the agents that may sign with it; None if it is unknown or expired."""
        known = self._by_id.get(key_id)
        if known is None or now >= known.expires_at or known.principal.role is not Role.KEY:
            return None
        if now >= known.note_at:
            self._note(known, now)
        return known.kept.digest, known.principal.patterns

    def still_in(self, token_id: str, now: float, session: str | None = None) -> bool:
        """Whether an open stream of this token, or of this session made with it, may go on."""
        is_open = session is None or self._signed_in.is_open(session, now)
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
        return self._signed_in.link(principal.token_id, now)

    def links_of(self, token_id: str, now: float) -> Sequence[float]:
        """The remaining seconds of each unopened link made with this token."""
        return self._signed_in.links_of(token_id, now)

    def maker(self, code: str, now: float) -> Principal | None:
        """The principal that this code would sign in; None if it opens nothing."""
        token_id = self._signed_in.maker(code, now)
        known = None if token_id is None else self._holder(token_id, now)
        return None if known is None else known.principal

    def redeem(
        self, code: str, now: float, address: str = "", sessions_max: int = SESSIONS_MAX
    ) -> str | None:
        """The session that this code opens; None if the code is unknown, used or too old, or the token of its maker is
        gone. A token has at most so many sessions; then the least recently used one ends."""
        opened = self._signed_in.redeem(code, now, address, sessions_max)
        if opened is None:
            return None
        session, token_id = opened
        if self._holder(token_id, now) is None:
            self._signed_in.sign_out(session)
            return None
        return session

    def session(self, session: str, now: float) -> Principal | None:
        """The principal of this session."""
        token_id = self._signed_in.token_of(session, now)
        known = None if token_id is None else self._holder(token_id, now)
        return None if known is None else known.principal

    def sessions(self, now: float) -> Mapping[str, tuple[Session, Principal]]:
        """Sessions and their principals, by the id of the session."""
        return {
            one: (session, known.principal)
            for one, session in self._signed_in.sessions(now).items()
            if (known := self._by_id.get(session.token_id)) is not None and now < known.expires_at
        }

    def end_session(self, session_id: str) -> None:
        """End the session with this id, if there is one."""
        self._signed_in.end_session(session_id)

    def sign_out(self, session: str) -> None:
        """End this session, if it is one."""
        self._signed_in.sign_out(session)

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
        kept = StoredToken(key_id(public), public, Role.KEY, name, agents, now, expires_at)
        async with self._changing:
            if len(self._by_id) >= TOKENS_MAX:
                raise WireError(
                    "", f"there are {TOKENS_MAX} tokens and keys already; revoke those nobody uses"
                )
            if kept.id in self._by_id:
                raise WireError("public_key", f"is known already, as {kept.id}")
            await self._keep(kept)
        return kept

    def list(self) -> Sequence[StoredToken]:
        """All tokens, oldest first, with when they were last used."""
        kept = map(self._with_use, self._by_id.values())
        return sorted(kept, key=lambda token: (token.made_at, token.id))

    def ending_before(self, moment: float) -> Iterator[StoredToken]:
        """Tokens that expire before this moment, with when they were last used."""
        return (self._with_use(known) for known in self._by_id.values() if known.expires_at <= moment)

    def expired(self, digest: bytes, now: float) -> StoredToken | None:
        """The token with this digest, if it has expired."""
        known = self._by_digest.get(digest)
        return None if known is None or now < known.expires_at else known.kept

    async def revoke(self, token_id: str, now: float) -> bool:
        """Refuse this token, and what was made with it, from now on. Whether there was one.

        If it is the token in the state folder, a new one takes its place there.
        """
        if token_id not in self._by_id:
            return False
        for one in (token_id, f"{token_id}{OLD_SECRET}"):
            known = self._by_id.pop(one, None)
            if known is not None:
                self._by_digest.pop(known.kept.digest, None)
                self._used.pop(one, None)
                self._revoked.add(one)
                log.warning(
                    "token %s (%s) is revoked", one, known.kept.name, extra={"action": "token_revoked"}
                )
        self._signed_in.end(token_id)
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
            known = self._by_id.get(token_id)
            if known is None or token_id.endswith(OLD_SECRET) or known.principal.role is Role.KEY:
                return None  # The hub never had the private half of a key.
            kept, token = known.kept, new_secret(token_id)
            lasts = None if kept.expires_at is None else kept.expires_at - kept.made_at
            fresh = replace(
                kept,
                digest=digest_of(token.encode()),
                made_at=now,
                expires_at=None if lasts is None else now + lasts,
                used_at=None,
            )
            self._used.pop(token_id, None)
            # The old secret first: after a crash in between both rows have it.
            until = min(now + grace, known.expires_at)
            old_id = f"{token_id}{OLD_SECRET}"
            await self._keep(replace(kept, id=old_id, made_at=now, expires_at=until, used_at=None))
            if self._folder is not None and _is_in(self._folder, token_id):
                admin_token.write(self._folder, token)
            await self._keep(fresh)
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
        self._signed_in.keep_in(folder, now)
        async with self._changing:
            await self._load()
            token = admin_token.read(folder)
            known = None if token is None else self._by_digest.get(digest_of(token.encode()))
            if known is not None and known.principal.role is Role.ADMIN and now < known.expires_at:
                return
            if token is not None and not self._by_id:
                await self._take_in(token, now)
                return
            await self._make_admin(folder, now)

    def why_forged(self, _now: float) -> str:
        """Describe the rows of the store that this hub did not write; empty if there is none."""
        if not self._forged:
            return ""
        named = ", ".join([*self._forged.values()][:5])
        return f"{len(self._forged)} rows of tokens in the store are not this hub's, and are refused: {named}"

    async def tend_on(self, clock: Clock) -> None:
        """Run `sync` every `SYNC_EVERY`, for ever."""
        trouble = False
        while True:
            await asyncio.sleep(TEND_EVERY)
            try:
                await self.tend(clock())
            except AdapterError as error:
                if not trouble:
                    log.warning("tokens are as they were: %s", error, extra={"action": "tokens_not_tended"})
                trouble = True
            else:
                trouble = False

    async def tend(self, now: float) -> None:
        """Delete revoked tokens in the store, read it again, record uses, and drop old sessions."""
        self._signed_in.forget_old(now)
        async with self._changing:
            await self._forget_revoked()
            await self._load()
            # Right after reading: recording the use of a token revoked in between would bring it back.
            for token_id in list(self._used)[:NOTES_MAX]:
                known = self._by_id.get(token_id)
                if known is not None:
                    known.kept = replace(known.kept, used_at=self._used[token_id])
                    await self._store.keep_token(known.kept)
                self._used.pop(token_id, None)

    # --- parts ----------------------------------------------------------------------------------------

    def _with_use(self, known: _Known) -> StoredToken:
        return replace(known.kept, used_at=self._used.get(known.kept.id, known.kept.used_at))

    def _note(self, known: _Known, now: float) -> None:
        known.note_at = now + NOTE_EVERY
        self._used[known.kept.id] = now

    def _holder(self, token_id: str, now: float) -> _Known | None:
        known = self._by_id.get(token_id)
        if known is None or now >= known.expires_at:
            return None
        if now >= known.note_at:
            self._note(known, now)
        return known

    async def _load(self) -> None:
        kept = await self._store.tokens()
        by_id: dict[str, _Known] = {}
        forged, self._forged = self._forged, {}
        for token in kept:
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
            if token.id not in self._revoked and (known := self._recall(token)) is not None:
                by_id[token.id] = known
        for gone in self._by_id.keys() - by_id.keys():
            self._signed_in.end(gone)
        self._by_id = by_id
        self._by_digest = {known.kept.digest: known for known in by_id.values()}

    def _is_ours(self, token: StoredToken) -> bool:
        if self._macs is None:
            return True
        known = self._by_id.get(token.id)
        unchanged = known is not None and _same(known.kept, token)  # The usual case, and cheaper than a MAC.
        return unchanged or self._macs.vouch_for(token)

    def _recall(self, token: StoredToken) -> _Known | None:
        known = self._by_id.get(token.id)
        if known is not None and _same(known.kept, token):
            return known
        try:
            return _known(token)
        except (ValueError, WireError) as error:
            log.error("token %s is of no use: %s", token.id, error, extra={"action": "token_unreadable"})
            return None

    async def _make(
        self, role: Role, name: str, agents: str, expires_at: float | None, now: float
    ) -> NewToken:
        token_id, token = new_token()
        while token_id in self._by_id:
            token_id, token = new_token()
        kept = StoredToken(token_id, digest_of(token.encode()), role, name, agents, now, expires_at)
        await self._keep(kept)
        return NewToken(token, kept)

    async def _keep(self, kept: StoredToken) -> None:
        if self._macs is not None:
            kept = self._macs.signed(kept)
        await self._store.keep_token(kept)
        known, before = _known(kept), self._by_id.get(kept.id)
        if before is not None and self._by_digest.get(before.kept.digest) is before:
            del self._by_digest[before.kept.digest]
        self._by_id[kept.id] = self._by_digest[kept.digest] = known
        log.info("token %s (%s) is made: %s", kept.id, kept.name, kept.role, extra={"action": "token_made"})

    async def _make_admin(self, folder: Path, now: float) -> None:
        """The file first: the next start accepts or replaces a token that is only in the file; no person has the secret
        of one that is only in the store."""
        _, token = new_token()
        admin_token.write(folder, token)
        await self._take_in(token, now)

    async def _take_in(self, token: str, now: float) -> None:
        await self._keep(StoredToken(id_of(token), digest_of(token.encode()), Role.ADMIN, "admin", "", now))

    async def _forget_revoked(self) -> None:
        for token_id in list(self._revoked):
            await self._store.drop_token(token_id)
            self._revoked.discard(token_id)


def _known(token: StoredToken) -> _Known:
    role = Role(token.role)
    patterns = Patterns.of(token.agents) if role in FOR_AGENTS else NOBODY
    expires_at = inf if token.expires_at is None else token.expires_at
    return _Known(token, Principal(token.id.removesuffix(OLD_SECRET), token.name, role, patterns), expires_at)


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
