"""Saving: a write that is refused or fails waits for its turn and is not lost.

    saves = lifesigns.SaveQueue("checkpoint_write", store.put)
    saves.save(checkpoint)            # written at once if it can be, else as soon as it can be
    saves.flush(timeout=10)           # True when everything is written

Laws:
- Writes keep the order of the saves, and one write runs at a time.
- Nothing is dropped in silence. An item is written, or its future has the error; when `limit` items wait, the next
  `save` raises; `close` returns the rest.
- A failed write (`Breaker.is_failure`) waits and is tried again. An error that the breaker ignores is the item's own
  fault: it goes to the caller of `save`, and the next item has its turn.
- While nothing waits there is no thread and no task.

`SaveQueue` is for threads, `AsyncSaveQueue` for one event loop and a `write` that is awaited.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Generic, Self, TypeVar
from weakref import WeakSet

from lifesigns.agent.guard.breakers import LOG, survives_fork
from lifesigns.agent.guard.guard import Breaker, guard
from lifesigns.errors import AdapterError, BreakerOpen, UsageError

T = TypeVar("T")
Fate = TypeVar("Fate", "Future[None]", "asyncio.Future[None]")

LIMIT: Final = 100
RETRY_EVERY: Final = 5.0
"""Seconds. The breaker spares a store that stays away; this is for one that failed once."""
EXIT_FOR: Final = 2.0
"""How long the end of a block or a process waits for unwritten items."""
MOMENT: Final = 0.1
"""How long `close` waits at least for a running try: one that the breaker refuses is over at once."""


class _Line(Generic[T, Fate]):
    """Waiting items, in order; the first is being written or will be next. Its owner holds the lock."""

    def __init__(self, breaker: Breaker | str, limit: int, retry_every: float) -> None:
        if limit < 1:
            raise UsageError(f"limit: {limit} leaves no room for an item, it must be at least 1")
        if not 0 < retry_every <= threading.TIMEOUT_MAX:
            raise UsageError(f"retry_every: {retry_every} is not a number of seconds greater than 0")
        self.breaker = guard(breaker) if isinstance(breaker, str) else breaker
        self.limit = limit
        self.retry_every = retry_every
        self.closed = False
        self.clear()

    def clear(self) -> None:
        self.waiting: deque[tuple[T, Fate]] = deque()
        self.busy = False
        """Whether a thread or task writes the first item."""
        self.retry_at = 0.0
        self.last_error: BaseException | None = None

    def join(self, item: T, fate: Fate) -> bool:
        """Append an item; True if it is the first, and the caller must write it now."""
        if self.closed:
            raise UsageError(f"the save queue of breaker {self.breaker.name!r} is closed")
        if len(self.waiting) >= self.limit:
            raise self.unsaved(f"is full, {self.limit} items wait") from self.last_error
        self.waiting.append((item, fate))
        if len(self.waiting) == 1:
            self.busy = True
        return self.busy and len(self.waiting) == 1

    def failed(self, error: BaseException) -> None:
        """The write of the first item failed; it stays, unless the queue is closed."""
        self.busy = False
        self.last_error = error
        wait = self.retry_every
        if isinstance(error, BreakerOpen):
            wait = min(wait, error.until - self.breaker.clock())
        self.retry_at = time.monotonic() + wait
        if self.closed:
            self.written(self.waiting[0][1], error)

    def written(self, fate: Fate, error: BaseException | None = None) -> None:
        """The first item was written, or never will be."""
        self.busy = False
        if self.waiting and self.waiting[0][1] is fate:  # not if a fork emptied the line during the write
            self.waiting.popleft()
        if fate.done():  # cancelled by the caller that waited for it, not by us
            return
        if error is None:
            fate.set_result(None)
        elif isinstance(error, asyncio.CancelledError):
            fate.cancel()
        else:
            fate.set_exception(error)

    def close(self) -> list[T]:
        """Drop all items but the one that is being written now."""
        self.closed = True
        left = [self.waiting.pop() for _ in range(len(self.waiting) - self.busy)][::-1]
        for _, fate in left:
            error = self.unsaved(f"was closed with {len(left)} items unsaved")
            error.__cause__ = self.last_error
            if not fate.done():
                fate.set_exception(error)
        return [item for item, _ in left]

    def unsaved(self, what: str) -> AdapterError:
        last = f"; the last error was {self.last_error!r}" if self.last_error else ""
        return AdapterError(f"the save queue of breaker {self.breaker.name!r} {what}{last}")

    def judge(self, fate: Fate, outcome: object) -> None:
        """The outcome of the first item's write: an exception or a result."""
        error = outcome if isinstance(outcome, BaseException) else None
        if isinstance(error, BreakerOpen) or self.breaker.is_failure(outcome):
            self.failed(error or AdapterError(f"the write returned {outcome!r}"))
        else:
            self.written(fate, error)


class SaveQueue(Generic[T]):
    """Saves in order under a breaker. `write(item)` runs in the thread that saves, or in one that tries again."""

    def __init__(
        self,
        breaker: Breaker | str,
        write: Callable[[T], object],
        *,
        limit: int = LIMIT,
        retry_every: float = RETRY_EVERY,
    ) -> None:
        if inspect.iscoroutinefunction(write):
            raise UsageError(f"{write!r} is async: use AsyncSaveQueue")
        self._line: _Line[T, Future[None]] = _Line(breaker, limit, retry_every)
        self._write = write
        self.after_fork()
        survives_fork(self)
        _OPEN.add(self)

    def after_fork(self) -> None:
        """A forked child begins empty: its parent writes the waiting items."""
        self._line.clear()
        self._changed = threading.Condition()
        self._retrier: threading.Thread | None = None

    @property
    def breaker(self) -> Breaker:
        """The breaker around the writes."""
        return self._line.breaker

    @property
    def pending(self) -> int:
        """Items that are not written yet."""
        return len(self._line.waiting)

    def save(self, item: T) -> Future[None]:
        """Write it now if nothing else waits, else in its turn; the future is done when it is written.

        Raises what the write raised if that does not count as a failure, `AdapterError` if too many wait.
        """
        fate: Future[None] = Future()
        fate.set_running_or_notify_cancel()  # from now on it cannot be cancelled: it may be written already
        with self._changed:
            first = self._line.join(item, fate)
        if first:
            self._write_first()
            if fate.done():
                fate.result()
        return fate

    def flush(self, timeout: float | None = None) -> bool:
        """Try now, and wait until everything is written; False on a timeout."""
        with self._changed:
            self._line.retry_at = 0.0
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._line.waiting, timeout)

    def close(self, timeout: float = 0.0) -> list[T]:
        """`flush`, then accept nothing more. Returns the unwritten items; their futures have the reason."""
        self.flush(timeout)
        with self._changed:
            line = self._line
            under_way = line.waiting[0] if line.busy and line.waiting else None
            left = line.close()
            self._changed.notify_all()
            retrier, wait = self._retrier, max(timeout, MOMENT) if line.busy else EXIT_FOR
        if retrier is not None and retrier is not threading.current_thread():
            retrier.join(wait)
        if under_way is not None and under_way[1].done() and under_way[1].exception() is not None:
            left.insert(0, under_way[0])  # Its last try has just failed.
        return left

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _report(self.close(EXIT_FOR), self.breaker)

    def _write_first(self) -> None:
        """Write the first item, then the others. The caller has marked the line as busy."""
        item, fate = self._line.waiting[0]
        outcome: object
        try:
            outcome = self.breaker.call(self._write, item)
        except BaseException as error:  # noqa: BLE001 -- it belongs to the item's future, and `save` raises it from there
            outcome = error
        with self._changed:
            self._line.judge(fate, outcome)
            if self._line.waiting and self._retrier is None:
                self._retrier = threading.Thread(target=self._retry, name="lifesigns-save", daemon=True)
                self._retrier.start()
            self._changed.notify_all()

    def _retry(self) -> None:
        while self._its_time():
            self._write_first()

    def _its_time(self) -> bool:
        """Wait until the first item can be tried; False if none is left, and then this thread ends."""
        line = self._line
        with self._changed:
            while line.waiting:
                wait = line.retry_at - time.monotonic()
                if wait <= 0 and not line.busy:
                    line.busy = True
                    return True
                self._changed.wait(None if line.busy else wait)
            self._retrier = None
            return False


class AsyncSaveQueue(Generic[T]):
    """`SaveQueue` for one event loop: `write(item)` is awaited, and so are `save`, `flush` and `close`."""

    def __init__(
        self,
        breaker: Breaker | str,
        write: Callable[[T], Awaitable[object]],
        *,
        limit: int = LIMIT,
        retry_every: float = RETRY_EVERY,
    ) -> None:
        self._line: _Line[T, asyncio.Future[None]] = _Line(breaker, limit, retry_every)
        self._write = write
        self._hurry = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._retrier: asyncio.Task[None] | None = None

    @property
    def breaker(self) -> Breaker:
        """The breaker around the writes."""
        return self._line.breaker

    @property
    def pending(self) -> int:
        """Items that are not written yet."""
        return len(self._line.waiting)

    async def save(self, item: T) -> asyncio.Future[None]:
        """Write it now if nothing else waits, else in its turn; the future is done when it is written.

        Raises what the write raised if that does not count as a failure, `AdapterError` if too many wait.
        """
        fate = asyncio.get_running_loop().create_future()
        first = self._line.join(item, fate)
        self._empty.clear()
        if first:
            try:
                await self._write_first()
            except BaseException as cancel:
                self._line.written(fate, cancel)
                self._see_to_the_rest()
                raise
            if fate.done():
                fate.result()
        return fate

    async def flush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 -- it answers, it does not raise
        """Try now, and wait until everything is written; False on a timeout."""
        self._line.retry_at = 0.0
        self._hurry.set()
        try:
            await asyncio.wait_for(self._empty.wait(), timeout)
        except TimeoutError:
            return False
        return True

    async def close(self, timeout: float = 0.0) -> list[T]:  # noqa: ASYNC109 -- a caller of `close` expects a timeout
        """`flush`, then accept nothing more. Returns the unwritten items; their futures have the reason."""
        await self.flush(timeout)
        self._line.closed = True
        if self._retrier is not None:
            self._retrier.cancel()
            await asyncio.wait([self._retrier])
        return self._line.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        _report(await self.close(EXIT_FOR), self.breaker)

    async def _write_first(self) -> None:
        item, fate = self._line.waiting[0]
        outcome: object
        try:
            outcome = await self.breaker.acall(self._write, item)
        except Exception as error:  # noqa: BLE001 -- it belongs to the item's future, and `save` raises it from there
            outcome = error
        self._line.judge(fate, outcome)
        self._see_to_the_rest()

    def _see_to_the_rest(self) -> None:
        if not self._line.waiting:
            self._empty.set()
        elif self._retrier is None:
            self._retrier = asyncio.create_task(self._retry(), name="lifesigns-save")

    async def _retry(self) -> None:
        """While this runs nothing else writes: the line is not empty, so no new item is the first."""
        line = self._line
        try:
            while line.waiting:
                await self._patience()
                line.busy = True
                await self._write_first()
        finally:
            line.busy = False
            self._retrier = None

    async def _patience(self) -> None:
        wait = self._line.retry_at - time.monotonic()
        if wait > 0:
            self._hurry.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), wait)


def _report(left: list[Any], breaker: Breaker) -> None:
    if left:
        LOG.error("%d items could not be saved under breaker %r", len(left), breaker.name)


_OPEN: Final[WeakSet[SaveQueue[Any]]] = WeakSet()


@atexit.register
def _at_exit() -> None:
    queues = [queue for queue in list(_OPEN) if queue.pending]
    for queue in queues:  # all try at once, so that one that cannot does not use up the others' time
        queue.flush(0)
    end = time.monotonic() + EXIT_FOR
    for queue in queues:
        _report(queue.close(max(0.0, end - time.monotonic())), queue.breaker)
