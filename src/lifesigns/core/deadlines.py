"""Deadlines: one lazy heap for everything that falls due.

The law: an item has at most one valid entry, the one at its `armed_at`; whatever else of it is still in
the heap is stale and passed over. A beat only ever moves deadlines later and therefore touches nothing
here: when the entry comes up, the item is asked again and re-armed. Ties are broken by the item's order
number, so that the same history always falls due in the same sequence.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol, TypeVar

from lifesigns.core.agent import NEVER


class Timed(Protocol):
    """Anything with a next deadline."""

    order: int
    armed_at: float


T = TypeVar("T", bound=Timed)


class Deadlines:
    """The engine's only timer."""

    __slots__ = ("_heap", "_items")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timed]] = []
        self._items = 0

    @property
    def next_at(self) -> float:
        """When to look next. May be too early by a stale entry, never too late."""
        return self._heap[0][0] if self._heap else NEVER

    def arm(self, item: Timed, at: float) -> None:
        """Make sure `item` comes up by `at`; an earlier entry stays and is asked again then."""
        if at < item.armed_at:
            item.armed_at = at
            heappush(self._heap, (at, item.order, item))
            if len(self._heap) > 4 * self._items + 64:
                self._compact()

    def pop(self, now: float) -> Timed | None:
        """The next item due by `now`, disarmed; None when there is none."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, item = heappop(heap)
            if item.armed_at == at:
                item.armed_at = NEVER
                return item
        return None

    def peek(self, now: float) -> Timed | None:
        """The next item due by `now`, still armed: for `postpone`, which saves a pop and a push."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, item = heap[0]
            if item.armed_at == at:
                return item
            heappop(heap)
        return None

    def postpone(self, item: Timed, at: float) -> None:
        """Re-arm the item just peeked."""
        item.armed_at = at
        heapreplace(self._heap, (at, item.order, item))

    def _compact(self) -> None:
        """Drop the stale entries: arming earlier again and again must not grow the heap."""
        self._heap = [entry for entry in self._heap if entry[2].armed_at == entry[0]]
        heapify(self._heap)
        self._items = len(self._heap)
