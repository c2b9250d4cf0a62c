"""Busyness: whether the hub keeps up with what is sent to it.

Beats that wait in sockets are not silence, and the hub cannot see them: only the system knows what waits, and senders
without an answer hold back what they have. But a thread with idle moments has received everything, and a thread that
was busy all the time may be behind by any amount. So the hub asks the system how long its thread ran or waited for a
processor: on Linux both, elsewhere only the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK_EVERY: Final = 0.5
"""Seconds, at least: shorter than the silence of any suspicion."""

BUSY_SHARE: Final = 0.9
"""From this share of the time on, the hub may not have received everything."""


class Busyness:
    """The load of the thread that creates it, since `now`."""

    def __init__(self, now: float, used: Callable[[], float] | None = None) -> None:
        self._used = used or wanted_seconds()
        self._looked_at, self._used_then = now, self._used()

    def look(self, now: float) -> tuple[float, float] | None:
        """When this was last called, and which share of the time since the thread was busy; None if that is too short
        to say."""
        since, passed = self._looked_at, now - self._looked_at
        if passed < LOOK_EVERY:
            return None
        used = self._used()
        share = (used - self._used_then) / passed
        self._looked_at, self._used_then = now, used
        return since, share


def wanted_seconds() -> Callable[[], float]:
    """A function for how long this thread has run or waited for a processor, as far as the system tells."""
    file = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")

    def ran_or_waited() -> float:
        ran, waited, _ = file.read_bytes().split()
        return (int(ran) + int(waited)) / 1e9

    try:
        ran_or_waited()
    except (OSError, ValueError):
        return time.thread_time
    return ran_or_waited
