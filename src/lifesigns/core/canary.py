"""Canary: our own beat, sent through the same bus as everybody's. If it does not come back, we are blind."""

from __future__ import annotations

from lifesigns.core.agent import NEVER
from lifesigns.core.desk import Desk
from lifesigns.core.effects import NeedsHuman, Sight
from lifesigns.core.words import duration


class Canary:
    """Has a deadline like everything else that is watched."""

    order = 0

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.armed_at = NEVER

    def start(self, at: float) -> None:
        """Send the first one then, if canaries are in use."""
        if self._desk.limits.canary_every:
            self._desk.deadlines.arm(self, at)

    def fall_due(self, now: float) -> None:
        """Time for the next one; if those before did not come back, we are blind."""
        aware, limits = self._desk.awareness, self._desk.limits
        if not aware.blind and now >= aware.due(aware.canary_at, limits.canary_late_after):
            reason = f"our own beat has not come back for {duration(now - aware.canary_at)}"
            aware.lose_sight(now)
            aware.doubt(now, limits)
            self._desk.outbox.fact(Sight(now, True, reason))
            self._desk.outbox.fact(NeedsHuman(now, "hub", "blind", f"The hub is blind: {reason}."))
        self._desk.send_canary(now)
        self._desk.deadlines.arm(self, now + limits.canary_every)

    def returned(self, seq: int, now: float) -> None:
        """One came back: the bus carries."""
        aware = self._desk.awareness
        if seq > aware.canary_seq:
            return  # Never sent: somebody else's, or made up.
        aware.canary_returned(seq, now, self._desk.limits)
        if aware.blind:
            aware.regain_sight(now, self._desk.limits)
            self._desk.outbox.fact(Sight(now, False, "our own beat came back"))
