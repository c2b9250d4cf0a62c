"""Groups of agents that share a fate, and whether the hub acts in them."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.views.moments import Moment


class GroupView(Struct, frozen=True):
    """One group."""

    name: str
    """`fleet`, `host ws-1`, `provider x`."""
    members: int
    unwell: int
    braked: bool
    """Too many are unwell at once: the hub does nothing there until a person decides."""
    released_until: Moment | None
    """A person decided: until then it is not braked, whatever happens there."""


class GroupList(Struct, frozen=True):
    """Groups, braked ones first."""

    groups: tuple[GroupView, ...]
    cursor: str | None
    """Pass this for more; None if there are none."""
