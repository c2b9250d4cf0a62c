"""Builds the view of a group."""

from __future__ import annotations

from lifesigns.core.fleet import Group
from lifesigns.views.groups import GroupView
from lifesigns.views.moments import moment_or_none


def group_view(name: str, group: Group, now: float) -> GroupView:
    """A group as it is now."""
    until = moment_or_none(group.released_until if group.released_until > now else None)
    return GroupView(name, group.members, group.unwell, group.braked, until)
