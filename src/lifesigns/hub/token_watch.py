"""Token watch: what people should know about tokens, and the tokens that nobody needs any more.

Refused and expiring tokens become alerts, bursts of refusals become entries of the audit log, and the tokens of ended
incarnations are revoked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from lifesigns.errors import AdapterError
from lifesigns.events.hub_facts import RefusalBurst
from lifesigns.hub.access import Access
from lifesigns.hub.clock import Clock
from lifesigns.hub.expiring_tokens import ALERT_FOR, ExpiringTokens
from lifesigns.hub.hub import Hub
from lifesigns.hub.life_tokens import revoke_ended
from lifesigns.hub.refused_tokens import RefusedTokens
from lifesigns.hub.tokens import digest_of, id_of, is_token

BURSTS_EVERY: Final = 60.0
EXPIRY_CHECK_EVERY: Final = 10.0
REVOKE_EVERY: Final = 60.0


class TokenWatch:
    """Watches the tokens of a hub."""

    def __init__(self, access: Access, hub: Hub, clock: Clock) -> None:
        self._access = access
        self._hub = hub
        self._clock = clock
        self._refused = RefusedTokens()
        self.expiring = ExpiringTokens(hub.announce)

    def note_refused(self, bearer: bytes, names: Sequence[str]) -> None:
        """A client that claims to be these agents showed an unknown or expired token."""
        if is_token(bearer):
            digest, now = digest_of(bearer), self._clock()
            expired = self._access.tokens.expired(digest, now)
            self._refused.note(digest, id_of(bearer.decode()), names, now, expired)

    def why_refused(self, now: float) -> str:
        """Which agents show a token that is refused; empty if none does."""
        return self._refused.why(len(self._hub.engine.beliefs.agents), now)

    async def run(self) -> None:
        """For as long as the hub runs."""
        if self._hub.slot:  # The hub of the first slot watches what is of all.
            await self._revoke_ended()
            return
        # Not a task group: a bug in one of them must not end the others.
        await asyncio.gather(self._announce_bursts(), self._announce_expiring(), self._revoke_ended())

    async def _announce_bursts(self) -> None:
        """One entry a minute, however many are refused: people read the record."""
        while True:
            await asyncio.sleep(BURSTS_EVERY)
            count, addresses = self._access.throttle.take_burst()
            if count:
                self._hub.announce(RefusalBurst(self._clock(), count, tuple(addresses)))

    async def _announce_expiring(self) -> None:
        while True:
            now = self._clock()
            self.expiring.look(self._access.tokens.ending_before(now + ALERT_FOR), now)
            await asyncio.sleep(EXPIRY_CHECK_EVERY)

    async def _revoke_ended(self) -> None:
        """Revoke the tokens and keys of ended incarnations."""
        while True:
            await asyncio.sleep(REVOKE_EVERY)
            # If the store is away, the token is revoked here, and in the store as soon as that is back.
            with suppress(AdapterError):
                await revoke_ended(
                    self._access, self._hub.engine.beliefs.agents, self._clock(), self._hub.slot
                )
