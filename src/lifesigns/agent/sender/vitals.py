"""Vitals: what a process uses, by the standard library alone, measured once per tick for all its agents."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from msgspec import Struct

if sys.platform != "win32":
    import resource

_MB: Final = 1024.0 * 1024.0
_STATM: Final = "/proc/self/statm"


class Vitals(Struct, frozen=True):
    """One measurement. None where the platform does not say, or there is nothing to compare with yet."""

    cpu_percent: float | None = None
    memory_mb: float | None = None


class VitalSigns:
    """Measures this process; CPU is the use since the last measurement, where 100 is one core."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._used = time.process_time()
        self._cpu: float | None = None

    def measure(self) -> Vitals:
        """Measure now. Two close measurements share their CPU value, because a short span says nothing."""
        now, used = time.monotonic(), time.process_time()
        if now - self._at >= _SPAN_MIN:
            self._cpu = round(100.0 * (used - self._used) / (now - self._at), 1)
            self._at, self._used = now, used
        return Vitals(self._cpu, _memory_mb())


_SPAN_MIN: Final = 0.2


def _memory_mb() -> float | None:
    """Resident memory now, or the peak where only that is known."""
    try:
        pages = int(_statm().split()[1])
    except (OSError, ValueError, IndexError):
        if sys.platform == "win32":
            return None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / (_MB if sys.platform == "darwin" else 1024.0), 1)
    return round(pages * os.sysconf("SC_PAGE_SIZE") / _MB, 1)


def _statm() -> bytes:
    """Without a file object: it would double the price, which every beat pays."""
    descriptor = os.open(_STATM, os.O_RDONLY)
    try:
        return os.read(descriptor, 128)
    finally:
        os.close(descriptor)
