"""Stopping: how an agent is asked to end, saves what it has, and ends.

The sender reports `stopped` when it is true: when the agent has left its block, or its process is about to end by the
signal. It reports an agent that goes on all the same as `stop_failed`; the hub or a supervisor has harder means.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Literal

from msgspec import Struct

from lifesigns.agent.sender.callbacks import until_done

END_FOR: Final = 5.0
"""How long an agent may take to end after it has saved."""

Ending = Literal["task", "process", "word"]
"""What ends an agent: its asyncio task is cancelled, its process gets SIGTERM, or it gets the request and ends by itself."""


class Stop(Struct, frozen=True):
    """Why the agent shall end, and how long it may take to save."""

    order_id: str
    reason: str
    save_for: float
    by: str = ""
    replaced: bool = False
    """Another life of this agent replaced it: there is nothing to report."""


class StopFlag:
    """Like an event: `is_set()`, `wait(timeout)` for threads, `await life.stopping` for coroutines."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._stopped: Future[Stop] = Future()

    @property
    def stop(self) -> Stop | None:
        """The request; None before it comes."""
        return self._stopped.result() if self._stopped.done() else None

    @property
    def reason(self) -> str:
        return "" if self.stop is None else self.stop.reason

    def is_set(self) -> bool:
        return self._event.is_set()

    def __bool__(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait in a thread; False if no request came in time."""
        return self._event.wait(timeout)

    def __await__(self) -> Generator[Any, None, Stop]:
        return self._until_set().__await__()

    async def _until_set(self) -> Stop:
        await until_done(self._stopped, None)
        return self._stopped.result()

    def set(self, stop: Stop) -> bool:
        """Ask the agent to end; False if it was already asked."""
        if self._stopped.done():
            return False
        self._stopped.set_result(stop)
        self._event.set()
        return True


class StopAction:
    """Knows how to end its agent."""

    def __init__(self, how: Ending, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._how = how
        self._loop = loop
        self._task = asyncio.current_task() if how == "task" else None

    def end(self, stop: Stop) -> None:
        """End the agent, as far as that is our task."""
        match self._how:
            case "task":
                if self._task is not None and self._loop is not None:
                    cancel: Callable[..., object] = self._task.cancel
                    with suppress(RuntimeError):  # The loop is closed: it has ended.
                        self._loop.call_soon_threadsafe(cancel, f"stopped: {stop.reason}")
            case "process":
                os.kill(os.getpid(), signal.SIGTERM)
            case "word":
                pass
