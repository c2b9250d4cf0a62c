"""Deadlines: one lazy calendar for everything that falls due.

The law: an item falls due at its `armed_at` and at no other time. A beat only ever moves deadlines later and
therefore touches nothing here: when an item comes up, we ask it again and move it if it was refreshed. Items due at
the same moment come in the order in which we first heard of them, so that the same history always falls due in the
same sequence.

A heap of a hundred thousand entries needs seventeen comparisons per move, most of the price of a beat. So we keep the
future unsorted, in buckets of a second, and sort a bucket only when its time comes; by then nearly every item in it
was refreshed and moves on to a later bucket.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from lifesigns.core.agent import NEVER


class HasDeadline(Protocol):
    """Anything with a next deadline."""

    order: int
    armed_at: float


PER_SECOND: Final = 1
"""Buckets per second. We open a bucket at its beginning, up to a second before its first deadline; that is no more
often than the engine looks anyway, once a tick."""


class Deadlines:
    """The engine's only timer."""

    __slots__ = ("_buckets", "_entries", "_kept", "_numbers", "_opened", "_ready")

    def __init__(self) -> None:
        self._buckets: dict[int, list[HasDeadline]] = {}
        self._numbers: list[int] = []
        """The numbers of the buckets, as a heap."""
        self._opened = -1
        """Buckets up to this one are open: their due items are in `_ready`, in order."""
        self._ready: list[tuple[float, int, HasDeadline]] = []
        self._entries = 0
        self._kept = 0

    @property
    def next_at(self) -> float:
        """When to look next: never too late, at most a bucket too early."""
        if self._ready:
            return self._ready[0][0]
        return self._numbers[0] / PER_SECOND if self._numbers else NEVER

    def arm(self, item: HasDeadline, at: float) -> None:
        """Make sure `item` comes up by `at`. Arming it for later than it is armed changes nothing."""
        was = item.armed_at
        if not at < was:
            return
        number = int(at * PER_SECOND)
        if was != NEVER and number == int(was * PER_SECOND) > self._opened:
            item.armed_at = at  # Its entry is in that bucket already.
            return
        self._place(item, at)
        if self._entries > 4 * self._kept + 64:
            self._compact()

    def pop(self, now: float, later: Callable[[HasDeadline], float]) -> tuple[float, HasDeadline] | None:
        """Disarm and return the next item due by `now` and when it fell due; None if there is none.

        `later` tells when an item really falls due: a refreshed item moves there.
        """
        while True:
            ready = self._ready
            while ready and ready[0][0] <= now:
                at, _, item = heappop(ready)
                self._entries -= 1
                if item.armed_at == at:
                    if (due_at := later(item)) <= at:
                        item.armed_at = NEVER
                        return at, item
                    self._place(item, due_at)
            if not self._numbers or self._numbers[0] > now * PER_SECOND:
                return None
            self._open(later)

    def _open(self, later: Callable[[HasDeadline], float]) -> None:
        """Open the next bucket: items that are still due become ready, the others move on.

        Nearly all of them move, every few beats of every agent, so this function makes the usual move itself.
        """
        self._opened = number = heappop(self._numbers)
        buckets = self._buckets
        items = buckets.pop(number)
        gone = len(items)
        for item in items:
            at = item.armed_at
            if at == NEVER or int(at * PER_SECOND) != number:
                continue
            due_at = later(item)
            if at < due_at < NEVER and (bucket := buckets.get(int(due_at * PER_SECOND))) is not None:
                item.armed_at = due_at
                bucket.append(item)
                gone -= 1
            else:
                self._place(item, due_at if due_at > at else at)
        self._entries -= gone

    def _place(self, item: HasDeadline, at: float) -> None:
        item.armed_at = at
        if at == NEVER:
            return
        self._entries += 1
        number = int(at * PER_SECOND)
        if number <= self._opened:
            heappush(self._ready, (at, item.order, item))
        elif (bucket := self._buckets.get(number)) is not None:
            bucket.append(item)
        else:
            self._buckets[number] = [item]
            heappush(self._numbers, number)

    def _compact(self) -> None:
        """Drop the stale entries: an item armed ever earlier, a thousand times a second, must not fill the memory."""
        for number, items in list(self._buckets.items()):
            self._buckets[number] = [
                i for i in items if i.armed_at != NEVER and int(i.armed_at * PER_SECOND) == number
            ]
        for number in [n for n, items in self._buckets.items() if not items]:
            del self._buckets[number]
        self._numbers = list(self._buckets)
        heapify(self._numbers)
        self._ready = [entry for entry in self._ready if entry[2].armed_at == entry[0]]
        heapify(self._ready)
        self._entries = self._kept = len(self._ready) + sum(map(len, self._buckets.values()))
