"""Shares: how much of the hub's time one agent's token gets, whatever it says.

Limits by count do not tell what something costs: a beat of a calm agent takes two microseconds, one of an agent that nobody
knew thirty, and more later. So the time that the hub's thread works for a token is measured and charged to it, as `web/rates.py` does it with
requests: it has a moment up to which it is paid for, and who is ahead of the clock by more than a burst has to wait.

To wait is enough for most: large deliveries are heard in turns of a few milliseconds, and between two of them others get theirs. Those of one
token come one after the other. Who could not begin after a while is refused.

While the thread is nearly full, shares shrink: all who ask for more than others get the same, less, and whoever asks for less than that
gets all of it. So many hostile tokens are bounded as one is. What follows later from what they said, and is charged to nobody, shrinks
with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable
from math import inf
from time import thread_time
from types import coroutine
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from lifesigns.hub.busyness import wanted_seconds
from lifesigns.hub.clock import Clock

T = TypeVar("T")

SHARE: Final = 0.25
"""Of the hub's thread. 100,000 agents that beat every 10 s with one token, in batches, need a tenth of it on a machine of today."""

BURST_FOR: Final = 0.2
"""Seconds' worth that may come at once: with the share above as much as ten turns. More is no loss, it only waits."""

TURN_FOR: Final = 0.005
"""Seconds after which others get their turn."""

PATIENCE: Final = 1.0
"""Seconds a request may wait before it has begun: less than any sender of ours waits for an answer."""

BUS_SOURCE: Final = "bus"
"""The source of all that comes by a bus: `bus_shares.py` says who pays for it."""

FULL_FROM: Final = 0.7
"""Of the thread's time: from here on shares shrink. The rest is for whoever comes next, without a wait."""

LEAST_IN_A_FLOOD: Final = 0.5
"""Of one share: what all get together at least, while the bus is flooded and the thread full of that."""

RECKON_EVERY: Final = 0.25
"""Seconds between two looks at how full the thread is."""

GROWS_BY: Final = 1.25
"""At each look at which it is not full: from a hundredth of its share on it takes five seconds."""

SOURCES_MAX: Final = 20_000
"""As in `web/rates.py`."""


class Shares:
    """What the hub's thread has done for each source."""

    def __init__(self, clock: Clock, share: float = SHARE, worked: Callable[[], float] = thread_time) -> None:
        self.share = share
        self.refused = 0
        self._clock, self._worked = clock, worked
        self._paid_until: dict[str, float] = {}
        self._level = 1.0
        """The share that each gets now, if it is less than `share`."""
        self._used: dict[str, float] = {}
        """Seconds, since the last look."""
        self._reckoned_at, self._worked_then = clock(), worked()
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._apart = 0.0
        """Seconds worked in the midst of other work, that others pay for or nobody."""
        self.spent_on_bus = 0.0
        self.flooded = False
        """Whether a sender of the bus is dropped: to skip what it sends takes a third of the thread, and nobody could pay for that."""
        self.flooded_parts: set[Shares] = set()
        """If several hubs share this: those for which that is so."""

    def begin(self) -> None:
        """Count from now on how long this thread runs or waits for a processor: it is full also of what it cannot do."""
        self._worked = wanted_seconds()
        self._reckoned_at, self._worked_then = self._clock(), self._worked()

    def charge(self, source: str, seconds: float, *, fine: bool = False) -> None:
        """So long was worked for it; or it has to wait for as long, for what was not done."""
        if self.share >= 1:
            return  # No limit.
        now = self._clock()
        paid_until = self._paid_until.get(source, 0.0)
        if paid_until < now:
            if len(self._paid_until) >= SOURCES_MAX:
                self._paid_until.clear()
            paid_until = now
        self._paid_until[source] = paid_until + seconds / min(self.share, self._level)
        if not fine:
            self._used[source] = self._used.get(source, 0.0) + seconds
        if now - self._reckoned_at >= RECKON_EVERY:
            self._reckon(now)

    def _reckon(self, now: float) -> None:
        """Those who use most pay for a thread that is nearly full. Together they get what one of them may have at least: the thread may
        be full of something else."""
        passed, worked = now - self._reckoned_at, self._worked()
        busy, used = (worked - self._worked_then) / passed, self._used.values()
        if busy > FULL_FROM:
            least = self.share * (LEAST_IN_A_FLOOD if self.flooded else 1)
            together = max(least, sum(used) / passed * FULL_FROM / busy)
            level = level_of([seconds / passed for seconds in used], together)
            self._level = max(self._level, least) if level == inf else level
        else:
            self._level *= GROWS_BY
        self._level = min(self._level, self.share)
        self._used = {}
        self._reckoned_at, self._worked_then = now, worked

    def charge_apart(self, source: str, seconds: float) -> None:
        """As `charge`, for work that is done in passing: who is being worked for does not pay for it."""
        self._apart += seconds
        if source == BUS_SOURCE:
            self.spent_on_bus += seconds
        else:
            self.charge(source, seconds)

    def charge_nobody(self, seconds: float) -> None:
        """As `charge_apart`, for work that follows from what many said before."""
        self._apart += seconds

    def owes(self, source: str) -> float:
        """Seconds after which it may go on; 0 for now. At least a turn: the loop counts in milliseconds, so whoever sleeps for less
        is awake at once, again and again, and nobody pays for that."""
        owed = self._paid_until.get(source, 0.0) - self._clock() - BURST_FOR
        return max(owed, TURN_FOR) if owed > 0 else 0.0

    async def turn(self, source: str) -> None:
        """Let others go first, and wait until it may go on: one after the other."""
        queue = self._queues.get(source)
        if queue is None:
            queue = self._queues[source] = asyncio.Lock()
        async with queue:
            await asyncio.sleep(0)  # What was worked until here is charged now.
            while (wait_for := self.owes(source)) > 0:  # noqa: ASYNC110 -- it waits for the clock
                await asyncio.sleep(wait_for)

    async def begins(self, source: str) -> bool:
        """Wait until a request may begin; False if that takes too long."""
        if self.owes(source) <= 0 and source not in self._queues:
            return True
        try:
            async with asyncio.timeout(PATIENCE):
                await self.turn(source)
        except TimeoutError:
            self.refused += 1
            return False
        return True

    def measured(self, source: str, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """The same work, charged to this source step by step."""
        return _measured(work, self.own_time, lambda seconds: self.charge(source, seconds))

    def own_time(self, now: float | None = None) -> float:
        """A clock of the work of this thread, but for what others pay for. `now` is the thread's time, if it was just read."""
        return (thread_time() if now is None else now) - self._apart


class PartShares(Shares):
    """Those of one of several hubs in a process, which have one thread: what somebody uses counts for all of them together, by
    `whole`. What was worked apart, and on a bus, is each one's own."""

    def __init__(self, whole: Shares) -> None:
        self._whole = whole
        super().__init__(whole._clock, whole.share)

    @property
    def share(self) -> float:
        """That of the whole."""
        return self._whole.share

    @share.setter
    def share(self, share: float) -> None:
        self._whole.share = share

    @property
    def flooded(self) -> bool:
        """Whether a sender of the bus is dropped, by this hub."""
        return self in self._whole.flooded_parts

    @flooded.setter
    def flooded(self, flooded: bool) -> None:
        (self._whole.flooded_parts.add if flooded else self._whole.flooded_parts.discard)(self)
        self._whole.flooded = bool(self._whole.flooded_parts)

    def begin(self) -> None:
        """As for the whole, which has one thread."""
        self._whole.begin()

    def charge(self, source: str, seconds: float, *, fine: bool = False) -> None:
        """In the name of all."""
        self._whole.charge(source, seconds, fine=fine)

    def owes(self, source: str) -> float:
        """For what it used of all of them."""
        return self._whole.owes(source)

    async def turn(self, source: str) -> None:
        """One after the other, whichever of them it asks."""
        await self._whole.turn(source)

    async def begins(self, source: str) -> bool:
        """Wait until a request may begin; False if that takes too long."""
        begins = await self._whole.begins(source)
        self.refused += not begins
        return begins


def level_of(uses: Iterable[float], together: float) -> float:
    """The most that each may use, so that they use no more than this together."""
    ascending = sorted(uses)
    for others, use in zip(range(len(ascending), 0, -1), ascending, strict=True):
        if use * others >= together:
            return together / others
        together -= use
    return inf


@coroutine
def _measured(
    work: Coroutine[Any, Any, T], clock: Callable[[], float], charge: Callable[[float], None]
) -> Generator[Any, Any, T]:
    """Hand on what the work waits for, and what it is sent; and the time between."""
    error: BaseException | None = None
    while True:
        began = clock()
        try:
            waits_for = work.send(None) if error is None else work.throw(error)
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            charge(clock() - began)
        error = None
        try:
            yield waits_for
        except BaseException as thrown:  # noqa: BLE001 -- it is the work's, not ours
            error = thrown
