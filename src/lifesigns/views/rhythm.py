"""Rhythm: the times of an agent's beats, of its next one, and how surprising its silence is by now."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.views.moments import Moment


class Rhythm(Struct, frozen=True):
    """The expected times of an agent's beats, and how well it keeps them."""

    agent_id: str
    at: Moment
    """The hub's time of this answer."""
    beats: int
    """Of this life, like `lost`."""
    lost: int
    interval_s: float
    """Between two of this agent's beats; before the first one, the policy's."""
    told_s: float | None
    """How often the hub told it to beat (`silence.tell_interval`); None if it did not."""
    last_at: Moment | None
    """The last sign of life; None, like the next two, before its first beat."""
    expected_at: Moment | None
    """When the next beat should come."""
    spread_s: float | None
    """How far from their expected moment its beats usually come (the root of the mean square)."""
    suspect_after_s: float
    """After so long a silence it is suspected and pinged, at the latest; sooner if its rhythm is steady."""
    asked: int
    """Pings without an answer yet; 0 if it is not suspected."""
    phi: float
    """How surprising the silence is: -log10 of the chance of a beat this late."""
    wanted_interval_s: float
    """Between two beats, as its policy says."""
    missed_max: int
    """So many beats it may miss before it is suspected, as its policy says."""
