"""Canary: our own beat, sent through the same bus as everybody's. If it does not come back, we are blind; and so we are if
more is sent than we get to hear."""

from __future__ import annotations

from lifesigns.core.agent import NEVER
from lifesigns.core.context import EngineContext
from lifesigns.core.effects import HubVisibility, NeedsHuman
from lifesigns.core.words import duration


class Canary:
    """Has a deadline like everything else that is watched."""

    order = 0

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self.armed_at = NEVER

    def start(self, at: float) -> None:
        """Send the first one then, if canaries are in use."""
        if self._context.limits.canary_every:
            self._context.deadlines.arm(self, at)

    def fall_due(self, now: float) -> None:
        """Time for the next one; if those before did not come back, we are blind."""
        aware, limits = self._context.awareness, self._context.limits
        if not aware.blind and self._late(now):
            self._lose_sight(f"our own beat has not come back for {duration(now - aware.canary_at)}", now)
        self._context.send_canary(now)
        self._context.deadlines.arm(self, now + limits.canary_every)

    def returned(self, seq: int, now: float) -> None:
        """One came back: the bus carries."""
        aware = self._context.awareness
        if seq > aware.canary_seq:
            return  # Never sent: somebody else's, or made up.
        aware.canary_returned(seq, now, self._context.limits)
        if aware.blind and not aware.overloaded:
            self._regain_sight("our own beat came back", now)

    def fall_behind(self, since: float, now: float) -> None:
        """More is sent than we hear: after as long as a canary may be late, we are blind to everybody."""
        aware = self._context.awareness
        aware.fall_behind(since, now)
        if aware.overloaded or aware.behind_since is None:
            return
        behind_for = now - aware.behind_since
        if behind_for >= self._context.limits.canary_late_after:
            aware.overloaded = True
            if not aware.blind:
                self._lose_sight(f"more is sent than it has got to hear for {duration(behind_for)}", now)

    def catch_up(self, now: float) -> None:
        """Everything that was sent has been heard."""
        aware = self._context.awareness
        was_overloaded, aware.overloaded, aware.behind_since = aware.overloaded, False, None
        if was_overloaded and aware.blind and not self._late(now):
            self._regain_sight("everything that is sent is heard again", now)

    def _late(self, now: float) -> bool:
        aware = self._context.awareness
        return now >= aware.due(aware.canary_at, self._context.limits.canary_late_after)

    def _lose_sight(self, reason: str, now: float) -> None:
        self._context.awareness.lose_sight(now)
        self._context.awareness.doubt(now, self._context.limits)
        self._context.outbox.fact(HubVisibility(now, True, reason))
        self._context.outbox.fact(NeedsHuman(now, "hub", "blind", f"The hub is blind: {reason}."))

    def _regain_sight(self, reason: str, now: float) -> None:
        self._context.awareness.regain_sight(now, self._context.limits)
        self._context.outbox.fact(HubVisibility(now, False, reason))
