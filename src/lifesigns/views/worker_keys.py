"""What a hub knows of workers, under the keys of Task Sentinel's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class MemoryKeys(Struct, frozen=True):
    """Keys that fit a pattern, in the order of the alphabet."""

    keys: tuple[str, ...]
    complete: bool
    """False if there are more than were asked for, or workers were left out."""
    workers_left_out: int
    """How many workers' series were not looked at: there is a limit for one list, and a narrower pattern helps."""


class MemoryValue(Struct, frozen=True):
    """What is known under a key."""

    key: str
    value: Mapping[str, Any]
