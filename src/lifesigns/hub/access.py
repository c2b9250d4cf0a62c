"""Access: who may come in, by a token, a key, or a session of the dashboard.

The tokens are in `token_table.py`, links and sessions in `sign_in.py`, the throttle for clients that guess in
`throttle.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final

from lifesigns.errors import AdapterError
from lifesigns.hub.clock import Clock
from lifesigns.hub.principals import Patterns, Principal, Role
from lifesigns.hub.sign_in import SESSION_MAX_FOR, SESSIONS_MAX, Session, SignIns
from lifesigns.hub.throttle import Throttle
from lifesigns.hub.token_table import TokenTable
from lifesigns.hub.tokens import TOKEN_MAX, digest_of
from lifesigns.ports import Store

__all__ = ["Access", "Principal", "Role"]

SYNC_EVERY: Final = 10.0
"""The hub refuses a token that another hub revoked after so long at the latest."""

LOOK_UP_EVERY: Final = 0.5
"""Unknown tokens make the hub read the store at most so often, and wait that long."""

log: Final = logging.getLogger("lifesigns.hub")


class Access:
    """The tokens of a hub, the links and sessions made with them, and a throttle for clients that guess."""

    def __init__(self, store: Store, session_for: float = SESSION_MAX_FOR) -> None:
        self.sign_ins = SignIns(session_for)
        self.tokens = TokenTable(store, self.sign_ins.end)
        self.throttle = Throttle()
        self._looking_up = asyncio.Lock()
        self._looked_up_at = -inf

    async def open_folder(self, folder: Path, now: float) -> None:
        """Keep sessions in the state folder, and make sure that it has a valid admin token."""
        self.sign_ins.use_folder(folder, now)
        await self.tokens.use_folder(folder, now)

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
        """Read the tokens again, record their uses, and drop old sessions."""
        self.sign_ins.forget_old(now)
        await self.tokens.sync(now)

    # --- coming in ------------------------------------------------------------------------------------

    def principal(self, bearer: bytes, now: float) -> Principal | None:
        """The principal of this token; None if the token is unknown or expired."""
        return None if len(bearer) > TOKEN_MAX else self.principal_of(digest_of(bearer), now)

    def principal_of(self, digest: bytes, now: float) -> Principal | None:
        """As `principal`, of a token with this digest."""
        entry = self.tokens.by_digest.get(digest)
        if entry is None or now >= entry.expires_at or entry.principal.role is Role.KEY:
            return None
        if now >= entry.note_at:
            self.tokens.note_use(entry, now)
        return entry.principal

    async def look_up(self, bearer: bytes, now: float) -> Principal | None:
        """As `principal`, but a token that is unknown is looked for in the store: another hub may have made it just now."""
        principal = self.principal(bearer, now)
        if principal is not None or len(bearer) > TOKEN_MAX:
            return principal
        clock = asyncio.get_running_loop().time
        came_at = clock()
        async with self._looking_up:  # Those who wait meanwhile share one look.
            if self._looked_up_at < came_at:
                await asyncio.sleep(self._looked_up_at + LOOK_UP_EVERY - came_at)
                self._looked_up_at = clock()
                with suppress(AdapterError):
                    await self.tokens.load()
        return self.principal(bearer, now)

    def key(self, key_id: str, now: float) -> tuple[bytes, Patterns] | None:
        """The public key with this id, and the agents that may sign with it; None if it is unknown or expired."""
        entry = self.tokens.by_id.get(key_id)
        if entry is None or now >= entry.expires_at or entry.principal.role is not Role.KEY:
            return None
        if now >= entry.note_at:
            self.tokens.note_use(entry, now)
        return entry.stored.digest, entry.principal.patterns

    def is_still_valid(self, token_id: str, now: float, session: str | None = None) -> bool:
        """Whether an open stream of this token, or of this session made with it, may go on."""
        is_open = session is None or self.sign_ins.is_open(session, now)
        return is_open and self.tokens.holder(token_id, now) is not None

    # --- the dashboard --------------------------------------------------------------------------------

    def maker(self, code: str, now: float) -> Principal | None:
        """The principal that this code would sign in; None if it opens nothing."""
        token_id = self.sign_ins.maker(code, now)
        entry = None if token_id is None else self.tokens.holder(token_id, now)
        return None if entry is None else entry.principal

    def redeem(
        self, code: str, now: float, address: str = "", sessions_max: int = SESSIONS_MAX
    ) -> str | None:
        """The session that this code opens; None if the code is unknown, used or too old, or the token of its maker is
        gone. A token has at most so many sessions; then the least recently used one ends."""
        opened = self.sign_ins.redeem(code, now, address, sessions_max)
        if opened is None:
            return None
        session, token_id = opened
        if self.tokens.holder(token_id, now) is None:
            self.sign_ins.sign_out(session)
            return None
        return session

    def session(self, session: str, now: float) -> Principal | None:
        """The principal of this session."""
        token_id = self.sign_ins.token_of(session, now)
        entry = None if token_id is None else self.tokens.holder(token_id, now)
        return None if entry is None else entry.principal

    def sessions(self, now: float) -> Mapping[str, tuple[Session, Principal]]:
        """Sessions and their principals, by the id of the session."""
        return {
            session_id: (session, entry.principal)
            for session_id, session in self.sign_ins.sessions(now).items()
            if (entry := self.tokens.by_id.get(session.token_id)) is not None and now < entry.expires_at
        }
