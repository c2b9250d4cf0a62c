"""The lease of one slot: as that of a whole store, and in addition it says which of several hubs is the one for it.

The slots are shared out among the hubs that live, in equal parts, by a hash of their names (`slots.ranked`). When a slot is free the first in rank takes it, the
next a moment later. A hub that leads a slot for which another one ranks before it hands over, as if it were drained: not
before the other one has been there for a while, and one slot at a time, so that a hub that comes and goes moves little.

Whose commits count is decided by the epoch of the slot's store, as ever.
"""

from __future__ import annotations

import asyncio
from typing import Final

from lifesigns.hub.lease import HubSighting, Lease
from lifesigns.hub.slots import ranked
from lifesigns.ports import Store

RANK_WAIT: Final = 0.8
"""How much longer each next hub in rank waits for a slot: the first one sees that it is free within half a second."""

SETTLE_FOR: Final = 4.0
"""Seconds after its start for which a process takes no slot: hubs that are started together share the slots out at once. The first one
would take all of them, and give most away again."""

SEEN_WITHIN: Final = 3.0
"""A hub whose beat was not seen to change for so long may have died: nobody waits for it, and nobody gives it anything."""

JOIN_AFTER: Final = 10.0
"""How long a hub has to be there before it gets slots of others."""

MOVE_EVERY: Final = 3.0
"""Seconds between two slots that one process gives away."""


class Moves:
    """The slots that one process gives to others: one at a time."""

    def __init__(self) -> None:
        self._next_at = 0.0

    def may_begin(self, now: float) -> bool:
        """Whether one may go now; then the next one has to wait."""
        if now < self._next_at:
            return False
        self._next_at = now + MOVE_EVERY
        return True


class SlotLease(Lease):
    """The row of this hub among those that can have a slot."""

    def __init__(
        self,
        store: Store,
        name: str,
        url: str,
        version: str,
        zone: str = "",
        *,
        slot: int,
        moves: Moves,
        drained: bool = False,
        settled_at: float = 0.0,
    ) -> None:
        super().__init__(store, name, url, version, zone, drained=drained)
        self._slot = slot
        self._moves = moves
        self._settled_at = settled_at
        """By the clock of the loop."""
        self._free_since: float | None = None
        self._first_seen: dict[str, float] = {}
        """When hubs were first seen, or seen again after they were gone."""
        self.moves_on = False
        """This hub hands over because another one is the one for this slot."""

    async def may_lead(self) -> bool:
        """Whether the slot is free, and has been for as long as this hub's rank wants."""
        if not await super().may_lead():
            self._free_since = None
            return False
        now = asyncio.get_running_loop().time()
        if self._free_since is None:
            self._free_since = now
        return now - max(self._free_since, self._settled_at) >= RANK_WAIT * self._rank(now)

    def wants_to_go(self) -> bool:
        """Whether this hub was drained, or another one is the one for this slot; and somebody can take over."""
        if super().wants_to_go():
            return True
        now = asyncio.get_running_loop().time()
        settled = [
            seen.row for seen in self._others(now) if now - self._first_seen[seen.row.name] >= JOIN_AFTER
        ]
        first = ranked(self._slot, [self.name, *(row.name for row in settled)])[0]
        has_copy = any(row.name == first and row.copied >= 0 for row in settled)
        if has_copy and self._moves.may_begin(now):
            self.moves_on = True
        return self.moves_on

    def _rank(self, now: float) -> int:
        """How many of the others go first."""
        others = [seen.row.name for seen in self._others(now)]
        if self.drained:
            return len(others)
        return ranked(self._slot, [self.name, *others]).index(self.name)

    def _others(self, now: float) -> list[HubSighting]:
        """The other hubs that live and may have this slot."""
        alive = [seen for seen in self.sightings() if seen.still_for < SEEN_WITHIN]
        self._first_seen = {seen.row.name: self._first_seen.get(seen.row.name, now) for seen in alive}
        return [seen for seen in alive if seen.row.name != self.name and seen.can_take_over]
