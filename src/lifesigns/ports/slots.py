"""What the hubs of the slots tell each other, in a place that all of them reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class SlotSummary(NamedTuple):
    """What the hub of a slot said last."""

    slot: int
    beat: int
    """Raised each time it says something: who sees it rise knows that this is new, by its own clock."""
    data: bytes


class SlotSummaries(Protocol):
    """The summaries of all slots. Raises `AdapterError` if they are not reached."""

    async def exchange(self, own: Mapping[int, bytes]) -> Sequence[SlotSummary]:
        """Say this for the slots that are judged here; returns what was said for all."""
        ...
