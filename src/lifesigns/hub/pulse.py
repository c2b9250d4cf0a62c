"""How the hub itself is doing, in numbers: for `/api/v1/fleet`, metrics and doctors."""

from __future__ import annotations

from dataclasses import dataclass, field

from lifesigns.core.effects import Fact, Flip, Refusal
from lifesigns.core.health import Health


@dataclass(slots=True)
class Pulse:
    """Counts since the hub began."""

    beats: int = 0
    words: int = 0
    turned_away: int = 0
    """Signals that found the inbox full."""
    refused: int = 0
    """Signals the engine did not believe."""
    looks: int = 0
    look_late: float = 0.0
    look_late_max: float = 0.0
    """How late the deadlines were looked at: last time, and at worst."""
    found: int = 0
    found_late: float = 0.0
    found_late_max: float = 0.0
    """How long after it fell due a disconnection was known."""
    flips: dict[Health, int] = field(default_factory=dict)

    def looked(self, late: float) -> None:
        self.looks += 1
        self.look_late = late
        self.look_late_max = max(self.look_late_max, late)

    def told(self, fact: Fact, now: float) -> None:
        """A fact left the engine."""
        if isinstance(fact, Flip):
            self.flips[fact.now] = self.flips.get(fact.now, 0) + 1
            if fact.now is Health.DISCONNECTED:
                self.found += 1
                self.found_late = now - fact.at
                self.found_late_max = max(self.found_late_max, self.found_late)
        elif isinstance(fact, Refusal):
            self.refused += fact.count
