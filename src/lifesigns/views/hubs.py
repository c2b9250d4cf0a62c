"""The hubs on one store."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class HubState(StrEnum):
    """What a hub does."""

    JUDGES = "judges"
    STANDS_BY = "stands by"
    LOST = "lost"
    """Its row has not changed for 30 s, and it has not said that it stops."""


class HubView(Struct, frozen=True):
    """One hub."""

    name: str
    url: str
    version: str
    state: HubState
    renewed_ago_s: float
    """How long ago it last renewed its row, as seen by the hub that answers."""


class HubList(Struct, frozen=True):
    """The hubs on the store of this one, by name; none if it has its store for itself."""

    hubs: tuple[HubView, ...]
