"""Recovered claims: tasks of lost workers that were released at the hub, and their locks in the issue tracker."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.views.moments import Moment


class RecoveredClaim(Struct, frozen=True):
    """One release."""

    event_id: int
    at: Moment
    lock: str
    """The issue, `org/repo#12`; empty if it was a claim at the hub alone."""
    task_id: str
    agent_id: str
    """The worker that was heard last of those that may have held it; empty if another monitor began the release."""
    assignees: tuple[str, ...]
    silent_for_s: float
    comment_url: str


class RecoveredClaims(Struct, frozen=True):
    """Releases, the newest first."""

    recovered: tuple[RecoveredClaim, ...]
