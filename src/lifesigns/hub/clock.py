"""Clock: wall time that never jumps.

A hub reads the wall once, when it starts, and counts on from there by the monotonic clock: its moments can be shown
to people and compared with those of the hub before it, and no one who sets the wall clock can make it convict anybody.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since 1970, never less than the last time."""


def steady_clock() -> Clock:
    """The real one."""
    began = time.time() - time.monotonic()
    return lambda: began + time.monotonic()
