"""Awareness: the monitor doubts itself before it doubts an agent.

Three things make our own eyes unreliable, and each has its answer:

* we slept (a tick came much too late): the gap is added to every deadline, nobody is convicted for a while;
* we are blind (our own canary does not come back): no suspicion advances until it does;
* we are confused (late ticks, missed canaries, refuted suspicions): a score of 0 to 8 stretches every wait.

After blindness, a restart or a takeover every agent's silence starts from zero: our downtime is nobody's
death. The idea of the score is Lifeguard's (Dadgar, Phillips, Currey 2018).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from lifesigns.core.agent import NEVER
from lifesigns.core.policy import FleetPolicy

SCORE_MAX: Final = 8

TRUCE_MAX: Final = 300.0
"""Sleeping for a night must not make the next day one long truce."""

LAPSES_MAX: Final = 64
"""Lapses remembered. When there are more, the two oldest become one: deadlines only grow by that."""


REFUTED_SHARE: Final = 0.02
"""Refuted suspicions per agent and calm spell that point at us: a bus that loses one beat in a thousand
stays below it at any interval of a second or more."""


@dataclass(slots=True)
class Lapse:
    """A time in which we did not look."""

    began_at: float
    ended_at: float


@dataclass(slots=True)
class Awareness:
    """How far the monitor trusts its own eyes."""

    score: int = 0
    score_at: float = 0.0
    """When the score last changed: it falls by one for every calm spell since."""
    lapses: list[Lapse] = field(default_factory=list)
    truce_until: float = -NEVER
    silence_from: float = -NEVER
    """Silence is counted from here at the earliest."""
    heard_at: float = -NEVER
    """When anybody at all was last heard, canary included."""
    blind_since: float | None = None
    canary_seq: int = 0
    canary_at: float = NEVER
    """When the oldest canary that is still out was sent."""
    refuted: int = 0
    refuted_from: float = -NEVER

    @property
    def settled_at(self) -> float:
        """Who was heard after this has nothing to do with our lapses."""
        lapsed = self.lapses[-1].ended_at if self.lapses else -NEVER
        return max(lapsed, self.silence_from)

    @property
    def blind(self) -> bool:
        return self.blind_since is not None

    def score_now(self, now: float, policy: FleetPolicy) -> int:
        """The score with what the calm since has taken off it; to look at."""
        return max(0, self.score - max(0, self._calm_spells(now, policy)))

    def _calm_spells(self, now: float, policy: FleetPolicy) -> int:
        return int((now - self.score_at) // policy.calm_after) if self.score else 0

    def factor(self, now: float, policy: FleetPolicy) -> int:
        """By how much a suspicion waits longer than usual."""
        calm = self._calm_spells(now, policy)
        if calm > 0:
            self.score = max(0, self.score - calm)
            self.score_at += calm * policy.calm_after
        return 1 + self.score

    def doubt(self, now: float, policy: FleetPolicy) -> None:
        """One more reason to think it is us."""
        self.factor(now, policy)
        self.score = min(SCORE_MAX, self.score + 1)
        self.score_at = now

    def refute(self, now: float, agents: int, policy: FleetPolicy) -> None:
        """A suspicion was wrong. One is a lost beat; many at once are us."""
        if now - self.refuted_from > policy.calm_after:
            self.refuted, self.refuted_from = 0, now
        self.refuted += 1
        if self.refuted >= max(2.0, REFUTED_SHARE * agents):
            self.refuted, self.refuted_from = 0, now
            self.doubt(now, policy)

    def slept(self, since: float, now: float, policy: FleetPolicy) -> None:
        """We did not look between `since` and `now`: nobody's fault but ours."""
        self._lapse(since, now)
        truce = min(max(policy.truce_min, now - since), TRUCE_MAX)
        self.truce_until = max(self.truce_until, now + truce)
        self.doubt(now, policy)

    def resume(self, since: float, now: float, policy: FleetPolicy) -> None:
        """We were away (restart, takeover) or blind: every silence starts anew, which is truce enough."""
        self._lapse(since, now)
        self.truce_until = max(self.truce_until, now + policy.truce_min)
        self.silence_from = now
        self.doubt(now, policy)

    def lose_sight(self, now: float) -> None:
        self.blind_since = now

    def regain_sight(self, now: float, policy: FleetPolicy) -> None:
        if self.blind_since is not None:
            since, self.blind_since = self.blind_since, None
            self.resume(since, now, policy)

    def due(self, start: float, wait: float) -> float:
        """When a wait that began at `start` is over, not counting the time in which we did not look."""
        at = start + wait
        for lapse in self.lapses:
            if start < lapse.ended_at and lapse.began_at < at:
                at += lapse.ended_at - max(start, lapse.began_at)
        return at

    def lapsed(self, since: float, until: float) -> float:
        """For how much of this time we did not look."""
        overlaps = (min(lapse.ended_at, until) - max(lapse.began_at, since) for lapse in self.lapses)
        return sum(overlap for overlap in overlaps if overlap > 0)

    def _lapse(self, since: float, now: float) -> None:
        self.lapses.append(Lapse(since, now))
        if len(self.lapses) > LAPSES_MAX:
            first, second = self.lapses[:2]
            self.lapses[:2] = [Lapse(first.began_at, second.ended_at)]
