"""Canary: our own beat, sent through the same bus as every agent's. We are blind if it does not come back, or if
agents send more than we manage to hear."""

from __future__ import annotations

from lifesigns.core.agent import NEVER
from lifesigns.core.context import EngineContext
from lifesigns.core.effects import HubVisibility, NeedsHuman
from lifesigns.core.words import duration


class Canary:
    """Sends canaries. It has a deadline like everything else we watch."""

    order = 0

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self.armed_at = NEVER

    def start(self, at: float) -> None:
        """Send the first canary then, if canaries are in use."""
        if self._context.limits.canary_every:
            self._context.deadlines.arm(self, at)

    def fall_due(self, now: float) -> None:
        """Time for the next canary; if the earlier ones did not come back, we are blind."""
        aware, limits = self._context.awareness, self._context.limits
        if not aware.blind and self._late(now):
            self._lose_sight(f"our own beat has not come back for {duration(now - aware.canary_at)}", now)
        self._context.send_canary(now)
        self._context.deadlines.arm(self, now + limits.canary_every)

    def returned(self, seq: int, now: float) -> None:
        """A canary came back: the bus works."""
        aware = self._context.awareness
        if seq > aware.canary_seq:
            return  # We never sent it: another hub did, or it is made up.
        aware.canary_returned(seq, now, self._context.limits)
        if aware.blind and not aware.overloaded:
            self._regain_sight("our own beat came back", now)

    def fall_behind(self, since: float, now: float) -> None:
        """Agents send more than we hear: after as long as a canary may be late, we are blind to all of them."""
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
        """We have heard everything that was sent."""
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
