"""How large the simulated fleets of the suite are: as large as what they show needs. `FLEETS=large` has more agents, days and
seeds; `make soak` does."""

from __future__ import annotations

import os
from typing import Final, TypeVar

LARGE: Final = os.environ.get("FLEETS") == "large"

T = TypeVar("T")


def size(small: T, large: T) -> T:
    """What the suite takes, and what `make soak` takes."""
    return large if LARGE else small
