"""Memory writer: writes to a memory from a thread of its own, so that no agent ever waits for one.

Bounded, and the newest wins: of each key only the last value waits, and beyond `WAITING_MAX` keys the oldest is dropped.
A write is tried `attempts` times with a pause; then it is given up, counted, and told. The agent goes on in any case.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from lifesigns.errors import AdapterError
from lifesigns.ports.memory import Memory

log: Final = logging.getLogger("lifesigns.memory")

WAITING_MAX: Final = 1_000
FAILURES_KEPT: Final = 20
ALERT_AFTER: Final = 3


class WriteFailure(Struct, frozen=True):
    """A write that was given up."""

    timestamp: float
    """Seconds since 1970."""
    error: str
    consecutive_failures: int


class MemoryWriter:
    """The thread. `put` and `delete` never wait. `on_failure` is called in the thread after each given-up write."""

    def __init__(
        self,
        memory: Memory,
        *,
        attempts: int = 3,
        delay: float = 5.0,
        on_failure: Callable[[WriteFailure], None] | None = None,
    ) -> None:
        self._memory = memory
        self._attempts, self._delay = max(1, attempts), delay
        self._on_failure = on_failure
        self._waiting: OrderedDict[str, str | None] = OrderedDict()
        self._news = threading.Condition()
        self._ending = False
        self._stop_by = float("inf")
        self.consecutive = 0
        """Writes in a row that were given up, up to now."""
        self.written = self.dropped = 0
        self.failures: deque[WriteFailure] = deque(maxlen=FAILURES_KEPT)
        self._thread = threading.Thread(target=self._run, name="lifesigns-memory", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, key: str, value: str) -> None:
        """Write this when there is time; it replaces what still waits for the same key."""
        self._add(key, value)

    def delete(self, key: str) -> None:
        self._add(key, None)

    def stop(self, within: float) -> None:
        """Write what waits if there is time, then end."""
        with self._news:
            self._ending, self._stop_by = True, time.monotonic() + within
            self._news.notify_all()
        self._thread.join(within)

    def _add(self, key: str, value: str | None) -> None:
        with self._news:
            self._waiting[key] = value
            self._waiting.move_to_end(key)
            if len(self._waiting) > WAITING_MAX:
                self._waiting.popitem(last=False)
                self.dropped += 1
            self._news.notify_all()

    def _run(self) -> None:
        try:
            while (item := self._next()) is not None:
                self._write(*item)
        finally:
            self._memory.close()

    def _next(self) -> tuple[str, str | None] | None:
        with self._news:
            while not self._waiting and not self._ending:
                self._news.wait()
            if not self._waiting or time.monotonic() >= self._stop_by:
                return None
            return self._waiting.popitem(last=False)

    def _write(self, key: str, value: str | None) -> None:
        for attempt in range(1, self._attempts + 1):
            try:
                if value is None:
                    self._memory.delete([key])
                else:
                    self._memory.put(key, value)
            except AdapterError as error:
                if attempt == self._attempts or self._ending:
                    self._give_up(str(error))
                    return
                self._pause()
            else:
                self.written += 1
                self.consecutive = 0
                return

    def _pause(self) -> None:
        by = time.monotonic() + self._delay
        with self._news:
            while not self._ending and time.monotonic() < by:
                self._news.wait(by - time.monotonic())

    def _give_up(self, error: str) -> None:
        self.consecutive += 1
        failure = WriteFailure(time.time(), error, self.consecutive)
        self.failures.append(failure)
        if self.consecutive == ALERT_AFTER:
            log.warning("%d writes to the memory in a row failed: %s", self.consecutive, error)
        if self._on_failure is not None:
            self._on_failure(failure)
