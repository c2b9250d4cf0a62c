"""Garbage: the collector is kept from looking at the whole fleet again and again.

What the hub believes is let go of by itself, without any collector: there are no cycles in it. But a full collection
looks at everything that lives, and for 100,000 agents everything stands still for a quarter of a second. So after a
collection that took long, what it has just found to be alive is set aside, and later ones look only at what is new.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

LONG: Final = 0.02
"""Seconds for which nobody is heard."""

OLDEST: Final = 2


@contextmanager
def living_set_aside() -> Iterator[None]:
    """For a whole process, as long as it serves."""
    began_at = 0.0

    def watch(phase: str, info: dict[str, Any]) -> None:
        nonlocal began_at
        if info["generation"] == OLDEST:
            if phase == "start":
                began_at = time.monotonic()
            elif time.monotonic() - began_at >= LONG:
                gc.freeze()

    gc.collect()
    gc.freeze()
    gc.callbacks.append(watch)
    try:
        yield
    finally:
        gc.callbacks.remove(watch)
        gc.unfreeze()
