"""Busyness: whether the hub gets to the end of what is sent to it.

Beats that wait in sockets are not silence, and the hub cannot see them: only the system knows what waits, and senders that
get no answer do not even send what they have. But whoever has idle moments has heard everything, and a thread that had
something to do all the time may be behind by any amount. So the hub asks the system how long its thread ran or waited for
a processor: on Linux both, elsewhere only the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK_EVERY: Final = 0.5
"""Seconds, at least: shorter than any silence that is suspected."""

BUSY_SHARE: Final = 0.9
"""From this share of the time on nothing shows that everything was heard."""


class Busyness:
    """Of the thread it is made in, since `now`."""

    def __init__(self, now: float, used: Callable[[], float] | None = None) -> None:
        self._used = used or wanted_seconds()
        self._looked_at, self._used_then = now, self._used()

    def look(self, now: float) -> tuple[float, float] | None:
        """When this was last looked at, and which share of the time since there was something to do; None if that is too
        short to say."""
        since, passed = self._looked_at, now - self._looked_at
        if passed < LOOK_EVERY:
            return None
        used = self._used()
        share = (used - self._used_then) / passed
        self._looked_at, self._used_then = now, used
        return since, share


def wanted_seconds() -> Callable[[], float]:
    """For how long this thread has run or waited for a processor, as far as the system tells."""
    file = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")

    def ran_or_waited() -> float:
        ran, waited, _ = file.read_bytes().split()
        return (int(ran) + int(waited)) / 1e9

    try:
        ran_or_waited()
    except (OSError, ValueError):
        return time.thread_time
    return ran_or_waited
