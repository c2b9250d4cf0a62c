"""Garbage collection: keeps the collector from visiting the whole fleet again and again.

The engine's beliefs have no cycles, so they are freed without the collector. But a full collection visits every live
object, and with 100,000 agents that stops everything for a quarter of a second. So after a slow collection we freeze
what it has found alive, and later ones visit only what is new.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

LONG: Final = 0.02
"""Seconds in which the hub hears no agent."""

OLDEST: Final = 2

YOUNG_MAX: Final = 10_000
"""Containers that are made before the collector looks at the youngest. A request of spans makes thousands that live for milliseconds:
at the interpreter's 700 the collector took a ninth of the hub's time for them. Cycles are few here, and may wait."""


@contextmanager
def survivors_frozen() -> Iterator[None]:
    """For a whole process, while it serves."""
    began_at = 0.0

    def watch(phase: str, info: dict[str, Any]) -> None:
        nonlocal began_at
        if info["generation"] == OLDEST:
            if phase == "start":
                began_at = time.monotonic()
            elif time.monotonic() - began_at >= LONG:
                gc.freeze()

    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *thresholds[1:])
    gc.callbacks.append(watch)
    try:
        yield
    finally:
        gc.callbacks.remove(watch)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
