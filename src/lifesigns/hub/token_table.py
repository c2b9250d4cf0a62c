"""Tokens and keys, as the store has them, with a copy in memory: a request costs one hash, one lookup and no I/O.

A background task reads the store again every few seconds (another hub may have made or revoked a token) and records when
tokens were last used.

A revocation takes effect at once, even while the store is away: the hub then tries again until the store has deleted
the token too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lifesigns.errors import WireError
from lifesigns.events.hub_facts import OLD_SECRET
from lifesigns.hub import admin_token
from lifesigns.hub.principals import NOBODY, Patterns, Principal, Role
from lifesigns.hub.token_macs import HubMacs, TokenMacs, token_macs
from lifesigns.hub.tokens import digest_of, id_of, new_secret, new_token
from lifesigns.ports import Store, StoredToken
from lifesigns.wire.signed import key_id

FOR_AGENTS: Final = (Role.AGENT, Role.KEY)
TOKENS_MAX: Final = 10_000
NAME_MAX: Final = 100
NOTE_EVERY: Final = 60.0
"""The hub records the use of a token to the minute: a better value helps no one, and each costs a write."""
NOTES_MAX: Final = 20
"""Uses written at a time: a thousand agents with a token each must not delay a commit."""

log: Final = logging.getLogger("lifesigns.hub")


class NewToken(Struct, frozen=True):
    """A new token. The hub shows it this once."""

    token: str
    stored: StoredToken


@dataclass(slots=True)
class TokenEntry:
    """A token as requests look it up."""

    stored: StoredToken
    principal: Principal
    expires_at: float
    note_at: float = 0.0
    """When to record its next use."""


class TokenTable:
    """Makes, changes and revokes tokens. `ended` gets the id of every token that is gone."""

    def __init__(self, store: Store, ended: Callable[[str], None]) -> None:
        self._store = store
        self._ended = ended
        self.by_digest: dict[bytes, TokenEntry] = {}
        self.by_id: dict[str, TokenEntry] = {}
        self._used: dict[str, float] = {}
        self._revoked: set[str] = set()
        """Revoked here, not yet deleted in the store."""
        self._changing = asyncio.Lock()
        """A list read before a change must not undo it."""
        self._folder: Path | None = None
        self._macs: TokenMacs | None = None
        """None without a folder: then we trust the store."""
        self.hub_macs: HubMacs | None = None
        """By which the hubs on one store know each other; None before `use_folder`."""
        self._forged: dict[str, str] = {}
        """Rows of the store that this hub did not write: by id, what they claim to be."""

    def holder(self, token_id: str, now: float) -> TokenEntry | None:
        """The token with this id, if it is valid; that counts as a use."""
        entry = self.by_id.get(token_id)
        if entry is None or now >= entry.expires_at:
            return None
        if now >= entry.note_at:
            self.note_use(entry, now)
        return entry

    def note_use(self, entry: TokenEntry, now: float) -> None:
        """A token was used: `sync` records it."""
        entry.note_at = now + NOTE_EVERY
        self._used[entry.stored.id] = now

    # --- managing ------------------------------------------------------------------------------------

    async def create(
        self, *, role: Role, name: str, now: float, agents: str = "", expires_at: float | None = None
    ) -> NewToken:
        """Make a token. Raises `WireError` with the invalid field, `AdapterError` if the store does not take it."""
        if role is Role.KEY:
            raise WireError("role", "is key, but a key is given by its public half: POST /api/v1/keys")
        _check(role, name, agents, expires_at, now)
        async with self._changing:
            if len(self.by_id) >= TOKENS_MAX:
                raise WireError("", f"there are {TOKENS_MAX} tokens already; revoke those nobody uses")
            return await self._make(role, name, agents, expires_at, now)

    async def add_key(
        self, public: bytes, *, name: str, agents: str, now: float, expires_at: float | None = None
    ) -> StoredToken:
        """Accept what this key signs, for these agents. The hub never sees the private half. Raises as `create`."""
        _check(Role.KEY, name, agents, expires_at, now)
        stored = StoredToken(key_id(public), public, Role.KEY, name, agents, now, expires_at)
        async with self._changing:
            if len(self.by_id) >= TOKENS_MAX:
                raise WireError(
                    "", f"there are {TOKENS_MAX} tokens and keys already; revoke those nobody uses"
                )
            if stored.id in self.by_id:
                raise WireError("public_key", f"is known already, as {stored.id}")
            await self._store_token(stored)
        return stored

    def list(self) -> Sequence[StoredToken]:
        """All tokens, oldest first, with when they were last used."""
        stored = map(self._with_use, self.by_id.values())
        return sorted(stored, key=lambda token: (token.made_at, token.id))

    def ending_before(self, moment: float) -> Iterator[StoredToken]:
        """Tokens that expire before this moment, with when they were last used."""
        return (self._with_use(entry) for entry in self.by_id.values() if entry.expires_at <= moment)

    def expired(self, digest: bytes, now: float) -> StoredToken | None:
        """The token with this digest, if it has expired."""
        entry = self.by_digest.get(digest)
        return None if entry is None or now < entry.expires_at else entry.stored

    async def revoke(self, token_id: str, now: float) -> bool:
        """Refuse this token, and what was made with it, from now on. Whether there was one.

        If it is the token in the state folder, a new one takes its place there.
        """
        if token_id not in self.by_id:
            return False
        for row_id in (token_id, f"{token_id}{OLD_SECRET}"):
            entry = self.by_id.pop(row_id, None)
            if entry is not None:
                self.by_digest.pop(entry.stored.digest, None)
                self._used.pop(row_id, None)
                self._revoked.add(row_id)
                log.warning(
                    "token %s (%s) is revoked", row_id, entry.stored.name, extra={"action": "token_revoked"}
                )
        self._ended(token_id)
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
            entry = self.by_id.get(token_id)
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

    # --- the store ----------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the tokens from the store. Changed rights take effect at once; recorded uses stay."""
        async with self._changing:
            await self._load()

    async def use_folder(self, folder: Path, now: float) -> None:
        """Make sure that the state folder has a valid admin token.

        A valid one stays. A store without any token is new or was lost: the hub then accepts the token in the file. A
        store with other tokens has revoked the one in the file: the hub replaces it.
        """
        self._folder = folder
        self._macs = await token_macs(folder, self._store)
        self.hub_macs = self._macs.for_hubs()
        async with self._changing:
            await self._load()
            token = admin_token.read(folder)
            entry = None if token is None else self.by_digest.get(digest_of(token.encode()))
            if entry is not None and entry.principal.role is Role.ADMIN and now < entry.expires_at:
                return
            if token is not None and not self.by_id:
                await self._accept(token, now)
                return
            await self._make_admin(folder, now)

    def why_forged(self, _now: float) -> str:
        """Describe the rows of the store that this hub did not write; empty if there is none."""
        if not self._forged:
            return ""
        named = ", ".join([*self._forged.values()][:5])
        return f"{len(self._forged)} rows of tokens in the store are not this hub's, and are refused: {named}"

    async def sync(self, now: float) -> None:
        """Delete revoked tokens in the store, read it again, and record uses."""
        async with self._changing:
            await self._forget_revoked()
            await self._load()
            # Right after reading: recording the use of a token revoked in between would bring it back.
            for token_id in list(self._used)[:NOTES_MAX]:
                entry = self.by_id.get(token_id)
                if entry is not None:
                    entry.stored = replace(entry.stored, used_at=self._used[token_id])
                    await self._store.keep_token(entry.stored)
                self._used.pop(token_id, None)

    # --- parts ----------------------------------------------------------------------------------------

    def _with_use(self, entry: TokenEntry) -> StoredToken:
        return replace(entry.stored, used_at=self._used.get(entry.stored.id, entry.stored.used_at))

    async def _load(self) -> None:
        stored = await self._store.tokens()
        by_id: dict[str, TokenEntry] = {}
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
        for gone in self.by_id.keys() - by_id.keys():
            self._ended(gone)
        self.by_id = by_id
        self.by_digest = {entry.stored.digest: entry for entry in by_id.values()}

    def _is_ours(self, token: StoredToken) -> bool:
        if self._macs is None:
            return True
        entry = self.by_id.get(token.id)
        unchanged = entry is not None and _same(
            entry.stored, token
        )  # The usual case, and cheaper than a MAC.
        return unchanged or self._macs.vouch_for(token)

    def _recall(self, token: StoredToken) -> TokenEntry | None:
        entry = self.by_id.get(token.id)
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
        while token_id in self.by_id:
            token_id, token = new_token()
        stored = StoredToken(token_id, digest_of(token.encode()), role, name, agents, now, expires_at)
        await self._store_token(stored)
        return NewToken(token, stored)

    async def _store_token(self, stored: StoredToken) -> None:
        if self._macs is not None:
            stored = self._macs.signed(stored)
        await self._store.keep_token(stored)
        entry, before = _entry(stored), self.by_id.get(stored.id)
        if before is not None and self.by_digest.get(before.stored.digest) is before:
            del self.by_digest[before.stored.digest]
        self.by_id[stored.id] = self.by_digest[stored.digest] = entry
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


def _entry(token: StoredToken) -> TokenEntry:
    role = Role(token.role)
    patterns = Patterns.of(token.agents) if role in FOR_AGENTS else NOBODY
    expires_at = inf if token.expires_at is None else token.expires_at
    return TokenEntry(
        token, Principal(token.id.removesuffix(OLD_SECRET), token.name, role, patterns), expires_at
    )


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
