"""Clock: wall time that never jumps, not even back between one hub and the next.

A hub reads the wall clock once, when it starts, and counts on by the monotonic clock: its moments can be shown to
people and compared with those of the hub before it, and a person who sets the wall clock cannot make it convict an
agent.

If the wall clock was set back while no hub ran, the next hub continues from the last moment of the one before
(`go_on_from`) and stays ahead of the wall clock by that step. Otherwise it would stand still, and judge no agent, until
the wall clock has caught up.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since 1970, never less than the last time."""


class SteadyClock:
    """A clock that can be set forward, never back."""

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._ahead = 0.0

    def __call__(self) -> float:
        return self._base() + self._ahead

    def go_on_from(self, moment: float) -> float:
        """Be no earlier than this moment; returns the step forward."""
        step = max(0.0, moment - self())
        self._ahead += step
        return step


def steady_clock(base: Clock | None = None) -> SteadyClock:
    """The real clock; or `base`, made settable."""
    if isinstance(base, SteadyClock):
        return base
    if base is not None:
        return SteadyClock(base)
    began = time.time() - time.monotonic()
    return SteadyClock(lambda: began + time.monotonic())
