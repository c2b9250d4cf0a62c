"""Clock: wall time that never jumps, not even back between one hub and the next.

A hub reads the wall once, when it starts, and counts on from there by the monotonic clock: its moments can be shown
to people and compared with those of the hub before it, and no one who sets the wall clock can make it convict anybody.

If the wall was set back while no hub ran, the next one goes on from the last moment the one before knew (`go_on_from`) and is
ahead of the wall by that step from then on. It would otherwise stand still, and judge nobody, until the wall is as late again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since 1970, never less than the last time."""


class SteadyClock:
    """A clock that can be set on, never back."""

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._ahead = 0.0

    def __call__(self) -> float:
        return self._base() + self._ahead

    def go_on_from(self, moment: float) -> float:
        """Be no earlier than this moment. By how much it had to be set on."""
        step = max(0.0, moment - self())
        self._ahead += step
        return step


def steady_clock(base: Clock | None = None) -> SteadyClock:
    """The real one; or `base`, made one that can be set on."""
    if isinstance(base, SteadyClock):
        return base
    if base is not None:
        return SteadyClock(base)
    began = time.time() - time.monotonic()
    return SteadyClock(lambda: began + time.monotonic())
