"""A machine: an event loop that runs in virtual time, a clock that is wrong, and the freezes and crashes of both.

A frozen machine does nothing, while its clocks go on and what is sent to it waits: then it finds everything at once, as a process
does after SIGCONT. A machine that was switched off loses everything; the next process on it begins with a new loop.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable, Coroutine, Sequence
from math import inf
from typing import Any, NamedTuple


class _NoSockets:
    """The selector of a loop without sockets: nothing ever comes."""

    def select(self, _timeout: float | None) -> Sequence[Any]:
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that the world steps. Threads do their work at once: here nothing takes time by itself."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._selector = _NoSockets()
        self.set_exception_handler(lambda loop, context: self.errors.append(context))
        self.errors: list[dict[str, Any]] = []

    def time(self) -> float:
        return self._clock()

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """Now, instead of in a thread."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 -- whoever waits gets it
            done.set_exception(error)
        return done

    @property
    def next_at(self) -> float:
        """When it has something to do."""
        if self._ready:  # type: ignore[attr-defined]
            return -inf
        scheduled = self._scheduled  # type: ignore[attr-defined]
        return scheduled[0].when() if scheduled else inf

    def step(self) -> None:
        """One round of the loop."""
        events._set_running_loop(self)
        try:
            self._run_once()  # type: ignore[attr-defined]
        finally:
            events._set_running_loop(None)

    def _process_events(self, event_list: Sequence[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class Grave(NamedTuple):
    """The loop of a process that was killed, and what it was doing."""

    loop: VirtualLoop
    tasks: set[asyncio.Task[Any]]


class Machine:
    """Where a hub runs."""

    def __init__(self, name: str, zone: str, now: Callable[[], float], skew: float, drift: float) -> None:
        self.name = name
        self.zone = zone
        self._now = now
        self._rate = 1.0 + drift
        self.skew = skew
        """Its wall clock minus the world's."""
        self.frozen = False
        self.froze_at = -inf
        self.thawed_at = -inf
        self.loop: VirtualLoop | None = None
        self.process: asyncio.Task[None] | None = None

    @property
    def runs(self) -> bool:
        return self.loop is not None

    @property
    def awake(self) -> bool:
        return self.loop is not None and not self.frozen

    def wall(self) -> float:
        """What its wall clock says."""
        return 1_700_000_000.0 + self.skew + self._now() * self._rate

    def start(self, program: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A process begins."""
        assert self.loop is None
        self.loop = VirtualLoop(lambda: self._now() * self._rate)
        self.process = self.loop.create_task(program())

    def crash(self) -> Grave | None:
        """Everything it had in memory is gone. What it was about to do is kept, so that it is not done now: a coroutine that
        nobody holds any more is closed, and cleans up."""
        loop, self.loop, self.process = self.loop, None, None
        self.frozen = False
        return None if loop is None else Grave(loop, asyncio.all_tasks(loop))

    def freeze(self) -> None:
        self.frozen, self.froze_at = True, self._now()

    def thaw(self) -> None:
        self.frozen, self.thawed_at = False, self._now()

    def call(self, do: Callable[..., object], *args: object) -> None:
        """Something reaches the process: it does this in its next round."""
        if self.loop is not None:
            self.loop.call_soon(do, *args)

    def next_at(self) -> float:
        """When it has something to do, in the time of the world."""
        if self.loop is None or self.frozen:
            return inf
        at = self.loop.next_at
        return at if at == -inf else at / self._rate
