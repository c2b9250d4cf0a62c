"""Scorer: holds the findings of the engine against the truth.

It knows by when each failure must be found, which findings are false, and when the engine had no chance: while it was
away or blind, in the truce after that, and while it doubts itself.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from lifesigns.core import effects as e
from lifesigns.core.awareness import TRUCE_MAX
from lifesigns.core.fleet import Fleet
from lifesigns.core.health import Health
from lifesigns.core.judgement import RANK
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.monitor import SHAKEN_FOR
from lifesigns.simulation.simulated_agent import SimulatedAgent
from lifesigns.simulation.truth import AT_ONCE, SHOWS_AS, SILENT, Failure, Illness, bound

if TYPE_CHECKING:
    from lifesigns.simulation.world import World

TAIL: Final = 2 * MINUTE
"""After a failure has ended a finding may still come: it is late, not false. Silence may take its timeout."""

ERRORS_TAIL: Final = 2 * HOUR
"""A detector that counts failed calls still remembers those of a recovered agent; and a rate limit may park it for an
hour before its next call."""

OUTAGE_TAIL: Final = 45 * MINUTE
"""For so long after an outage of ours we blame it for a false finding."""


class Scorer:
    """Keeps the list of failures, and when each is due."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.failures: list[Failure] = []
        self.truce_until = -inf
        self._outage_until = -inf
        self._anew_from = -inf
        """When every silence last began anew, because a canary was lost."""

    def check_finding(self, fact: e.FindingOpened) -> None:
        """Check a finding against the truth."""
        if fact.finding.severity is e.Severity.NOTICE:
            return
        agent = self._world.agent(fact.agent_id)
        agent.accused_of.add(fact.finding.kind)
        for failure in (agent.failure, agent.unreachable):
            if failure is None or failure.found_at is not None:
                continue
            if fact.finding.kind in SHOWS_AS[failure.illness]:
                failure.found_at = self._world.now
        worst = agent.suspicious.get(fact.finding.kind)
        if worst is not None and RANK[fact.finding.severity] <= RANK[worst]:
            self._world.counts.reasoned_findings += agent.failure is None
            return
        wronged = agent.failure is None and not agent.cuts
        if wronged and not self._is_late(agent, fact.finding) and not self._has_stopped(agent):
            self._world.counts.false_findings.append((self._world.now, agent.id, fact.finding))
            if self._world.now < self._outage_until + OUTAGE_TAIL and not self._is_by_chance(
                agent, fact.finding
            ):
                self._world.invariants.violate("downtime", f"{agent.id}: {fact.finding.text}")

    def _is_by_chance(self, agent: SimulatedAgent, finding: e.Finding) -> bool:
        """Whether no outage of ours can be its reason: lost beats, or tokens that were used after it."""
        if finding.kind is e.Kind.SILENCE:
            return self._world.bulk_beats.heard_at[agent.index] < agent.unlucky_at
        since = finding.since - self._world.monitor.offset
        return finding.kind is e.Kind.SPENDING and since > self._outage_until

    def _is_late(self, agent: SimulatedAgent, finding: e.Finding) -> bool:
        """Whether it is about an illness, or a wait, that is over: late, not false."""
        since = finding.since - self._world.monitor.offset
        if finding.kind is e.Kind.LOOPING and since <= agent.remembered_until:
            return True  # The same calls are still among the last ones, and it says since when.
        if finding.kind is e.Kind.ERRORS:
            return self._world.now <= max(agent.ill_until, agent.suspicious_until) + ERRORS_TAIL
        return self._world.now <= agent.ill_until + max(TAIL, agent.policy.silence.timeout)

    def _has_stopped(self, agent: SimulatedAgent) -> bool:
        """Stopped on purpose, and the report of it is still on its way."""
        return not agent.running and bool(agent.spool)

    def report_sent(self, agent: SimulatedAgent, failure: Failure) -> None:
        """The report may have been lost and sent again; silence shows an end, too."""
        due_at = self._world.now + bound(failure.illness, agent.policy)
        if failure.illness is Illness.CRASH_SEEN:
            due_at = min(due_at, failure.since + bound(Illness.CRASH, agent.policy))
        failure.due_at = max(failure.due_at, due_at)

    def failing(self, agent: SimulatedAgent, illness: Illness) -> Failure:
        """A failure begins now; an agent that already counts as silent or ended has died in silence."""
        wait = bound(illness, agent.policy, shaken=self._world.now < self._world.monitor.shaken_until)
        due_at = self._world.now + wait + max(0.0, self.truce_until - self._world.now)
        failure = Failure(agent.id, illness, self._world.now, due_at)
        if agent.accused_of & SHOWS_AS[illness] or (illness in SILENT and self._is_given_up(agent)):
            failure.found_at = self._world.now
        self.failures.append(failure)
        return failure

    def _is_given_up(self, agent: SimulatedAgent) -> bool:
        """It is believed ended, and people were told that it is not started again: nobody has ever heard the life that fails now."""
        beliefs = self._world.monitor.engine.beliefs
        belief, lineage = beliefs.agents.get(agent.id), beliefs.lineages.get(agent.id)
        ended = belief is not None and belief.health is Health.TERMINATED
        return ended and lineage is not None and lineage.waits_for_a_person

    def pinged_in_doubt(self, agent: SimulatedAgent) -> None:
        """A monitor that doubts itself waits longer for an answer."""
        if self._world.monitor.engine.beliefs.awareness.score:
            for failure in (agent.failure, agent.unreachable):
                if failure is not None and failure.found_at is None:
                    stretched = bound(failure.illness, agent.policy, shaken=True)
                    failure.due_at = max(failure.due_at, self._counts_from(agent, failure) + stretched)

    def _counts_from(self, agent: SimulatedAgent, failure: Failure) -> float:
        """When a failure began; one that shows as silence with the last thing heard, which may have been under way, or
        when every silence began anew."""
        belief = self._world.monitor.engine.agent(agent.id)
        if belief is None or failure.illness not in SILENT:
            return failure.since
        return max(failure.since, belief.heard_at - self._world.monitor.offset, self._anew_from)

    def pinged_on_late_host(self, agent: SimulatedAgent) -> None:
        """Where a whole host is late, the monitor waits longer for each of its agents."""
        beliefs = self._world.monitor.engine.beliefs
        fleet = Fleet(self._world.fleet, beliefs.fleet, beliefs.agents)
        belief = self._world.monitor.engine.agent(agent.id)
        if belief is None or not fleet.late_together(belief, self._world.now):
            return
        shaken = beliefs.awareness.score > 0
        for other in self._world.agents:
            for failure in (other.failure, other.unreachable):
                if other.host == agent.host and failure is not None and failure.found_at is None:
                    wait = bound(failure.illness, other.policy, shaken=shaken, late_host=True)
                    failure.due_at = max(failure.due_at, self._counts_from(other, failure) + wait)

    def silences_begin_anew(self) -> None:
        """A canary was lost: signals of agents may have been lost with it."""
        shaken = self._world.now < self._world.monitor.shaken_until
        self._anew_from = self._world.now
        for failure in self.failures:
            if failure.found_at is not None or failure.ended_at is not None:
                continue
            policy = self._world.agent(failure.agent_id).policy
            if failure.illness in SILENT:
                wait = bound(failure.illness, policy, shaken=shaken)
                failure.due_at = max(failure.due_at, self._world.now + wait)
            elif failure.illness is Illness.NEVER_STARTED:  # Its first signal may have been lost then.
                again = min(policy.silence.grace, policy.silence.timeout) + AT_ONCE
                failure.due_at = max(failure.due_at, self._world.now + again)

    def excuse(self, gone_for: float, *, asleep: bool) -> None:
        """The monitor could not see for a while: it can find nothing in that time, nor in the truce after it.

        An unnoticed sleep needs a truce of the same length; where every silence starts again, a moment will do.
        """
        truce = (
            min(max(self._world.fleet.truce_min, gone_for), TRUCE_MAX)
            if asleep
            else self._world.fleet.truce_min
        )
        self.truce_until = max(self.truce_until, self._world.now + truce - 2.0)
        self._outage_until = self._world.now
        self._world.monitor.shaken_until = self._world.now + truce + SHAKEN_FOR
        for agent in self._world.agents:
            for failure in (agent.failure, agent.unreachable):
                if failure is not None and failure.found_at is None:
                    failure.due_at += gone_for + truce + SHAKEN_FOR
