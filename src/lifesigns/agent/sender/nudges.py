"""Nudges: the hub's messages to an agent, kept until the agent is at a turn boundary.

A nudge never interrupts a running call. It is *delivered* when it is here, *seen* when the agent takes it, *answered*
when the agent replies; only the last two are the agent's own acts.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from lifesigns.agent.sender.beat_builder import prose
from lifesigns.core.signals import Answer
from lifesigns.errors import UsageError

WAITING_MAX: Final = 100
"""How many nudges may wait for the agent; the hub sends three at most before it does something else."""


class Nudge:
    """One nudge, or a question about a task (`task_id`)."""

    def __init__(
        self,
        nudge_id: str,
        text: str,
        *,
        attempt: int = 1,
        task_id: str | None = None,
        say_seen: Callable[[str], None],
        say_answer: Callable[[str, Answer, str], None],
    ) -> None:
        self.id = nudge_id
        self.text = text
        self.attempt = attempt
        self.task_id = task_id
        self._say_seen = say_seen
        self._say_answer = say_answer
        self._seen = False

    def seen(self) -> None:
        """Tell the hub that the agent has read it. Taking a nudge does this by itself."""
        if not self._seen:
            self._seen = True
            self._say_seen(self.id)

    def answer(self, answer: str, note: str = "") -> None:
        """`progress`, `need_time`, `handoff` or `blocked`, and a note."""
        try:
            known = Answer(answer)
        except ValueError:
            raise UsageError(f"answer is {answer!r}, known are {', '.join(Answer)}") from None
        self.seen()
        self._say_answer(self.id, known, prose(note))

    def __repr__(self) -> str:
        return f"Nudge({self.id!r}, {self.text!r})"


class Nudges:
    """The waiting nudges. Any thread may call `add` and `release`."""

    def __init__(self, tell: Callable[[Nudge], None] | None) -> None:
        self._tell = tell
        self._held: deque[Nudge] = deque(maxlen=WAITING_MAX)
        self._ready: queue.SimpleQueue[Nudge | None] = queue.SimpleQueue()
        self._open_calls: set[object] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakeup: asyncio.Event | None = None
        self._closed = False

    def attach_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """The agent's loop, where its iterators wake up."""
        self._loop, self._wakeup = loop, asyncio.Event()

    def began(self, call: object) -> None:
        """A call began: hand out nothing until it has ended."""
        self._open_calls.add(call)

    def ended(self, call: object) -> None:
        """A call ended. If none is open, this is a turn boundary."""
        self._open_calls.discard(call)
        if self._held:
            self.release()

    def add(self, nudge: Nudge) -> None:
        self._held.append(nudge)
        self.release()

    def release(self) -> None:
        """Hand out what waits, if this is a turn boundary."""
        while self._held and not self._open_calls:
            try:
                nudge = self._held.popleft()
            except IndexError:
                return  # Another thread was quicker.
            if self._tell is not None:
                self._tell(nudge)
            else:
                self._ready.put(nudge)
                self._ring()

    def close(self) -> None:
        """Nothing more will come: release all waiters."""
        self._closed = True
        self._ready.put(None)
        self._ring()

    def next(self, timeout: float | None) -> Nudge | None:
        """The next nudge, for threads; None if none came in time or the sender has ended."""
        if timeout is not None and timeout <= 0.0:
            # Asked at every turn's boundary: mostly nothing waits, and that costs no exception.
            if self._ready.empty():
                return None
            timeout = 0.0  # Another thread may be quicker.
        try:
            return self._taken(self._ready.get(timeout=timeout))
        except queue.Empty:
            return None

    async def each(self) -> AsyncIterator[Nudge]:
        """Every nudge as it comes, until the sender ends."""
        wakeup = self._wakeup
        if wakeup is None:
            raise UsageError("nudges() is for `async with`; in a thread, call next_nudge(timeout=...)")
        while True:
            wakeup.clear()
            try:
                nudge = self._taken(self._ready.get_nowait())
            except queue.Empty:
                await wakeup.wait()
                continue
            if nudge is None:
                return
            yield nudge

    def _taken(self, nudge: Nudge | None) -> Nudge | None:
        if nudge is None:
            self._ready.put(None)  # For the other waiters.
            self._ring()
        else:
            nudge.seen()
        return nudge

    def _ring(self) -> None:
        if self._loop is not None and self._wakeup is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wakeup.set)
