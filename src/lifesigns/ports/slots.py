"""Who of several hubs owns which slot of agents, in a place that all of them reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from msgspec import Struct


class SlotHub(Struct, frozen=True):
    """The row of a hub, as far as ownership depends on it."""

    name: str
    beat: int
    format: int
    """The newest form of beliefs that it can read."""
    drained: bool = False


class SlotRow(Struct, frozen=True):
    """The row of a slot."""

    slot: int
    epoch: int = 0
    owner: str = ""
    format: int = 0
    """The form in which its beliefs are written."""


@dataclass(slots=True)
class Plan:
    """What a hub wants to change in the rows of slots. It has to stop judging what it gives away before it does so."""

    claim: dict[int, int] = field(default_factory=dict)
    """By slot: the epoch that was seen."""
    beats: dict[str, int] = field(default_factory=dict)
    """By hub: the beat that was seen."""
    give: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By slot: the epoch that was seen, and to whom it goes."""


class SlotLook(NamedTuple):
    """All rows at one moment, after a renewal."""

    hubs: Sequence[SlotHub]
    slots: Sequence[SlotRow]


class SlotTable(Protocol):
    """The rows of hubs and slots. Raises `AdapterError` if it does not answer."""

    async def look(self, name: str, knows_format: int) -> SlotLook:
        """Raise the beat of this hub, and read all rows: a change that came before the renewal is among them."""
        ...

    async def change(self, name: str, plan: Plan) -> Mapping[int, int]:
        """Do what this hub wants, slot by slot, where the epoch is still the one that was seen, and the owner has not
        renewed its row since. Returns the claimed slots, and their epoch: higher than every epoch before."""
        ...
