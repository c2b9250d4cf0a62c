"""The hubs on one store."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class HubState(StrEnum):
    """What a hub does."""

    JUDGES = "judges"
    STANDS_BY = "stands by"
    DRAINED = "drained"
    """It stands by, and takes over only if no other hub does."""
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
    ready: bool
    """Whether it judges, or has a copy of everything and could at once."""
    zone: str = ""
    """Where it runs, as configured; empty if it has no zone."""
    here: bool = False
    """Whether it is the hub that you asked, be it that another one answers for it."""
    slots: tuple[int, ...] = ()
    """The slots of agents that it judges, if several hubs judge at once."""


class HubList(Struct, frozen=True):
    """The hubs on the store of this one, by name; none if it has its store for itself."""

    hubs: tuple[HubView, ...]
