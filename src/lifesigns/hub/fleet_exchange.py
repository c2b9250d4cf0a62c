"""Fleet exchange: the hubs of the slots tell each other how their part of the fleet is.

Once a second each process says it for the slots that it judges, and reads what the others said. Only if something new came
of every other slot within the last seconds does a hub know the fleet: else it ends and replaces nobody unasked. Whether it
is new is seen by its number and by our own clock.
"""

from __future__ import annotations

import asyncio
import logging
from math import inf
from typing import Final

import msgspec

from lifesigns.core.fleet_summary import KNOWN_FOR, FleetSummary, together
from lifesigns.errors import AdapterError
from lifesigns.hub.hub import Hub
from lifesigns.hub.slots import SLOTS
from lifesigns.ports.slots import SlotSummaries

EXCHANGE_EVERY: Final = 1.0
UNHEARD_AFTER: Final = 30.0
"""Seconds after which people are told of a slot that nobody judges."""

log: Final = logging.getLogger("lifesigns.hub")

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(FleetSummary).decode


class FleetExchange:
    """What this process knows of all slots."""

    def __init__(self, summaries: SlotSummaries) -> None:
        self._summaries = summaries
        self.hubs: dict[int, Hub] = {}
        """By slot: the hubs that judge here."""
        self._said: dict[int, tuple[int, float, FleetSummary]] = {}
        """By slot: the number of what was said, when it was first seen, and what it was."""
        self._began_at = inf

    async def run(self) -> None:
        """Exchange for ever."""
        self._began_at = asyncio.get_running_loop().time()
        while True:
            try:
                await self.exchange()
            except AdapterError as error:
                log.debug("the other slots are not heard of: %s", error)
            except Exception:  # a bug of ours must not end it
                log.exception("the exchange between slots failed", extra={"action": "exchange_failed"})
            await asyncio.sleep(EXCHANGE_EVERY)

    async def exchange(self) -> None:
        """Say and read once, and tell the hubs that judge here."""
        own = {slot: _encode(hub.engine.summary(hub.clock())) for slot, hub in self.hubs.items()}
        rows = await self._summaries.exchange(own)
        now = asyncio.get_running_loop().time()
        for row in rows:
            known = self._said.get(row.slot)
            if known is None or known[0] != row.beat:
                # What was there when we first looked may be old.
                seen_at = now if known is not None or row.slot in own else now - KNOWN_FOR
                self._said[row.slot] = (row.beat, seen_at, _decode(row.data))
        for slot, hub in tuple(self.hubs.items()):
            self._tell(slot, hub, now)

    def why_unheard(self) -> str:
        """Which slots nobody has said anything of for long; empty if there is none."""
        now = asyncio.get_running_loop().time()
        since = {slot: said[1] for slot, said in self._said.items()}
        silent = [slot for slot in range(SLOTS) if now - since.get(slot, self._began_at) >= UNHEARD_AFTER]
        if not silent:
            return ""
        named = ", ".join(map(str, silent))
        return f"Nobody judges slot {named}: see the logs of the hubs (slot_anew), or start another one"

    def _tell(self, slot: int, hub: Hub, now: float) -> None:
        others = [said for other, said in self._said.items() if other != slot]
        age = max((now - seen_at for _, seen_at, _ in others), default=0.0)
        if len(others) == SLOTS - 1 and age < KNOWN_FOR:
            hub.hear_of_others(together([summary for _, _, summary in others]), age)
