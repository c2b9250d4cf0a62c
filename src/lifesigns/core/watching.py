"""Watching: what happens to an agent when time passes and nothing is heard.

The engine calls it when an agent's deadline comes up, with the moment it fell due. Facts carry that moment; orders
(pings, nudges) leave at the engine's `now`, and their waits count from then: the engine convicts no agent for not
answering a question that had not left yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lifesigns.core import second_opinion
from lifesigns.core.agent import NEVER, Agent, Suspicion
from lifesigns.core.context import EngineContext
from lifesigns.core.detectors import forecast, silence, stall
from lifesigns.core.detectors.forecast import Trend
from lifesigns.core.effects import AskSecondOpinion, Finding, Kind, SendPing, Severity
from lifesigns.core.health import Cause, Doing, FailureClass, Health
from lifesigns.core.ladder import CANNOT_STOP
from lifesigns.core.policy import Policy
from lifesigns.core.respawn import ON_ITS_WAY
from lifesigns.core.words import duration

HELD_FOR_MIN: Final = 10.0
"""If an agent's whole host is late, we wait one silence timeout longer, and at least this long: a host short of CPU
lets each of its agents speak in that time. We find a dead host that much later."""

HEARD_LATELY: Final = 2
"""Silence timeouts within which an agent was heard that shows that its host is there. One that is late by more may be cut off
with it, and not be found out yet: we were away ourselves, say."""

CONNECTION_CLOSED: Final = "its connection was closed"
NOT_UNASKED: Final = "It is not replaced unasked"
ASLEEP: Final = "Nobody else is heard from its host: it may be asleep or cut off, and well"


class Watching:
    """Ages agents."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    # --- when ---------------------------------------------------------------------------------------

    def silence_at(self, agent: Agent, policy: Policy) -> float:
        """When the next step of an agent's silence falls due."""
        aware = self._context.awareness
        if agent.suspicion is not None:
            return aware.due(agent.suspicion.waited_from, agent.suspicion.wait)
        if agent.health is Health.TERMINATED:
            return agent.since + policy.silence.forget_after
        if gone(agent) or agent.beatless:
            return max(agent.since, agent.heard_at) + policy.silence.forget_after
        if agent.health is Health.STARTING:
            wait = grace(agent, policy)
            due_at = aware.due(max(agent.since, aware.silence_from), wait)
            # Its first signal may have been lost in a gap of its path: it gets the time of one beat to speak again.
            again_at = aware.silent_from(agent) + min(wait, policy.silence.timeout)
            return max(due_at, again_at, aware.truce_for(agent))
        silent_from = aware.silent_from(agent)
        at = silence.suspect_at(agent, silent_from, policy.silence)
        if aware.lapses and aware.lapses[-1].ended_at > agent.heard_at:
            start = max(agent.heard_at, silent_from)
            at = aware.due(start, at - start)
        return at

    def other_at(self, agent: Agent, policy: Policy, now: float) -> float:
        """When the next of an agent's other deadlines falls due."""
        if agent.health is Health.TERMINATED:
            return NEVER
        at = min(
            self._parked_until(agent),
            self._context.ladder.due_at(agent),
            max(now, self._absent_at(agent)),
            self._context.failures.due_at(agent),
            max(now, self._context.intervals.due_at(agent, policy.silence)),
            NEVER if agent.trend is None else max(now, agent.trend.ends_at),
        )
        if agent.work is not None:
            held, stall_at = stall.examine(agent, policy.stall, self._context.awareness.due, now)
            # We have already judged stalls that hold, but not while blind: then we have to look again.
            at = min(at, now if held and self._context.awareness.blind_to(agent) else stall_at)
        return at

    def _absent_at(self, agent: Agent) -> float:
        """When a lost agent no longer counts as part of the fleet."""
        if agent.health is not Health.DISCONNECTED or agent.past.absent or not gone(agent):
            return NEVER
        # A frozen agent is disconnected before it falls silent, and is not lost while it beats.
        lost_from = max(agent.since, agent.heard_at)
        return self._context.awareness.due(lost_from, self._context.limits.lost_after)

    def _parked_until(self, agent: Agent) -> float:
        if agent.doing_until == NEVER:
            return NEVER
        return self._context.awareness.due(agent.doing_from, agent.doing_until - agent.doing_from)

    def other_due(self, agent: Agent, policy: Policy, at: float) -> float:
        """The deadline of a calm agent, apart from silence, that comes up at `at` or next."""
        held: Sequence[Finding] = ()
        due_at = min(self._parked_until(agent), self._context.intervals.due_at(agent, policy.silence))
        if agent.trend is not None:
            due_at = min(due_at, agent.trend.ends_at)
        if agent.work is not None:
            held, stall_at = stall.examine(agent, policy.stall, self._context.awareness.due, at)
            due_at = min(due_at, stall_at)
        return at if held else due_at

    def arm(self, agent: Agent, now: float) -> None:
        """Note when this agent falls due next, and whether its beats need a second look until then."""
        policy = self._context.policy(agent)
        agent.calm = _is_calm(agent)
        agent.other_at = self.other_at(agent, policy, now)
        self._context.deadlines.arm(agent, min(agent.other_at, self.silence_at(agent, policy)))

    def follow_up(self, agent: Agent, now: float) -> None:
        """Follow up on a signal: it may have caused a case on the ladder, a respawn or earlier deadlines."""
        if agent.beatless and agent.doing_until == NEVER and agent.trend is None and _is_well(agent):
            pass  # Others tell of it afterwards: it cannot stall, and the moment at which it is forgotten only moves away.
        elif not (agent.calm and _is_calm(agent)):
            policy = self._context.policy(agent)
            self._context.failures.review(agent, now)
            self._context.ladder.review(agent, policy.ladder, now)
            self._context.intervals.review(agent, policy.silence, now)
            self._context.rebalancing.review(agent, now)
            self.arm(agent, now)
        elif agent.other_at > now + stall.soonest(self._context.policy(agent).stall):
            self.arm(agent, now)
        elif (declared_at := self._declared_at(agent)) < agent.other_at:
            # Any other stall that begins now falls due after the armed deadline, which will find it.
            agent.other_at = declared_at
            self._context.deadlines.arm(agent, declared_at)
        lineage = self._context.beliefs.lineages.get(agent.id)
        if lineage is not None and lineage.wait != NEVER:
            self._context.deadlines.arm(lineage, self._context.respawns.due_at(lineage))
        if agent.claims and agent.beats <= 1:
            self._context.arm_claims(agent)

    def _declared_at(self, agent: Agent) -> float:
        """The next explicit deadline: a step of the ladder, the end of a rate limit, a call's own bound."""
        at = min(self._parked_until(agent), self._context.ladder.due_at(agent))
        if agent.work is not None and agent.work.calls:
            at = min(at, stall.calls_end_at(agent.work))
        return at

    # --- what ---------------------------------------------------------------------------------------

    def act_on_due(self, agent: Agent, policy: Policy, at: float, now: float) -> bool:
        """Everything of this agent that falls due at `at`. False if the agent is to be forgotten."""
        if agent.health is Health.TERMINATED:
            return self.silence_at(agent, policy) > at
        if self._parked_until(agent) <= at:
            self.end_parking(agent, at)
        if self._absent_at(agent) <= at:
            self._context.fleet.lose(agent, at, self._context.outbox)
        if agent.work is not None:
            self.judge_stall(agent, at)
        if agent.slowing:
            agent.slowing = False
            if agent.trend is None and forecast.is_slow(agent.interval, policy):
                agent.trend = forecast.begin(policy, agent.beats, agent.heard_at, at)
        if agent.trend is not None and agent.trend.ends_at <= at:
            self._look_ahead(agent, agent.trend, policy, at)
        if self.silence_at(agent, policy) <= at:
            if gone(agent) or agent.beatless:
                return False
            self._step_silence(agent, policy, at, now)
        self._context.intervals.review(agent, policy.silence, now)
        self._context.failures.review(agent, at)
        self._context.ladder.review(agent, policy.ladder, now)
        if self._context.ladder.due_at(agent) <= at and not self._looks_once_more(agent, policy, now):
            self._context.ladder.step(agent, policy.ladder, now)
            self._replace_lost(agent, policy, now)
        return True

    def _replace_lost(self, agent: Agent, policy: Policy, now: float) -> None:
        """No executor could end a silent agent. If its host is there, nothing is left to end, and a successor takes
        over its work; the case stays, because the agent may come back before its successor speaks. If the host is
        silent too, the agent may be asleep or cut off, and well: a successor would work beside it, and we would stop
        it when it comes back. So a person decides."""
        case, found = agent.case, agent.finding(Kind.SILENCE)
        if case is None or case.held != CANNOT_STOP or not case.respawn or found is None:
            return
        if agent.health is not Health.DISCONNECTED or agent.cause is Cause.PARTITION:
            return
        context, reason = self._context, f"{found.text} Nobody could end it."
        lineage = context.lineage(agent)
        failure = agent.failure
        if failure is not None and failure.failure_class is FailureClass.TERMINAL and not case.by:
            context.respawns.ask(lineage, f"{reason} {NOT_UNASKED}: {failure.reason}", now)
        elif self.may_be_well(agent, now):
            context.respawns.ask(lineage, f"{reason} {ASLEEP}", now, doubted=True)
        else:
            lineage.supervisor_gone = True  # One that is there would have ended it.
            context.respawns.begin(lineage, agent, reason, policy.respawn, now, wanted=bool(case.by))
        context.deadlines.arm(lineage, context.respawns.due_at(lineage))

    def may_be_well(self, agent: Agent, now: float) -> bool:
        """Whether we only know that an agent is silent, and perhaps its whole host: it may be asleep, or cut off and
        working. A person who wants it replaced knows better."""
        if agent.health is not Health.DISCONNECTED or agent.cause is Cause.CRASH:
            return False
        wanted = agent.case is not None and bool(agent.case.by)
        return agent.finding(Kind.SILENCE) is not None and not wanted and not self._host_is_there(agent, now)

    def _host_is_there(self, agent: Agent, now: float) -> bool:
        """Whether we hear another agent on its host, after we gave this one up and still: then the host is neither cut off nor
        asleep."""
        if not agent.host:
            return False
        lately = now - HEARD_LATELY * self._context.policy(agent).silence.timeout
        if self._context.fleet.heard_elsewhere(agent.host) > max(agent.since, lately):
            return True
        return agent.host == self._context.host or any(
            other.host == agent.host
            and other.alive
            and other.heard_at > agent.since
            and now - other.heard_at <= HEARD_LATELY * self._context.policy(other).silence.timeout
            for other in self._context.beliefs.agents.values()
        )

    def end_parking(self, agent: Agent, at: float) -> None:
        """The declared end of a rate limit has passed: we expect the agent to go on."""
        agent.doing_until = NEVER
        if agent.doing is Doing.RATE_LIMITED:
            agent.doing = Doing.WORKING if agent.task_id else Doing.UNKNOWN
            if agent.work is not None:
                agent.work.since = at

    def judge_stall(self, agent: Agent, at: float) -> None:
        """Bring the stall findings in line with what holds now. While blind we cannot tell which agent stands still, nor
        whether one does of which nothing at all is heard."""
        if agent.beatless and not agent.findings:
            return  # Others tell of it afterwards: it cannot stall.
        if self._context.awareness.blind_to(agent) or agent.finding(Kind.SILENCE) is not None:
            return
        policy = self._context.policy(agent).stall
        held, _ = stall.examine(agent, policy, self._context.awareness.due, at)
        if not held and not agent.findings:
            return  # The usual case: nothing holds, and nothing is to be cleared.
        by_kind = {finding.kind: finding for finding in held}
        for kind in stall.KINDS:
            self._context.judge.settle(agent, kind, by_kind.get(kind), at)

    def _look_ahead(self, agent: Agent, trend: Trend, policy: Policy, at: float) -> None:
        """A window of a followed agent is over."""
        forecast.take(trend, agent.memory_mb, agent.beats, agent.heard_at, policy, at)
        self._context.judge.settle(agent, Kind.FORECAST, forecast.examine(trend, policy, at), at)
        if not agent.alive or forecast.is_idle(trend, policy):
            agent.trend = None

    def suspect(self, agent: Agent, policy: Policy, why: str, at: float, now: float) -> None:
        """Begin to doubt an agent, and ask it at once."""
        agent.suspicion = Suspicion(at, why)
        self._context.fleet.suspected(agent, at)
        self._ask(agent, agent.suspicion, policy, now)
        if policy.silence.degrade_on_suspicion:
            finding = silence.finding(agent, 1, at, over=False)
            self._context.judge.note(agent, finding, at)

    def _step_silence(self, agent: Agent, policy: Policy, at: float, now: float) -> None:
        suspicion = agent.suspicion
        if agent.health is Health.STARTING:
            finding = silence.never_started(agent.since, grace(agent, policy))
            self._context.judge.note(agent, finding, at, Cause.UNKNOWN)
        elif suspicion is None:
            why = f"nothing heard for {duration(at - agent.heard_at)}"
            self.suspect(agent, policy, why, at, now)
        elif suspicion.asked < silence.pings(agent, policy.silence) or self._asks_zones(suspicion):
            self._ask(agent, suspicion, policy, now)
        else:
            self._convict(agent, suspicion, policy, at)

    def _ask(self, agent: Agent, suspicion: Suspicion, policy: Policy, now: float) -> None:
        context = self._context
        suspicion.asked += 1
        context.outbox.order(SendPing, agent, now, seq=suspicion.asked, suspicion=suspicion.why)
        context.ask_ourselves(now)
        suspicion.waited_from = now
        factor = context.awareness.factor(now, context.limits, agent.source)
        suspicion.wait = silence.ping_wait(agent, suspicion.asked, policy.silence) * factor
        if self._asks_zones(suspicion):
            wait = silence.answer_within(agent, suspicion.asked, policy.silence) * factor
            self._ask_zones(agent, suspicion, wait, now - agent.heard_at, now)

    def _asks_zones(self, suspicion: Suspicion) -> bool:
        """Whether there are zones to ask about this suspicion, and none was asked yet. Usually that goes with the first
        ping; with one more for a suspicion that is older than the zones, or than this engine."""
        return suspicion.zones is None and bool(self._context.other_zones)

    def _ask_zones(
        self, agent: Agent, suspicion: Suspicion, answer_within: float, silent_for: float, now: float
    ) -> None:
        suspicion.zones = self._context.other_zones
        self._context.outbox.order(
            AskSecondOpinion,
            agent,
            now,
            zones=suspicion.zones,
            silent_for=silent_for,
            answer_within=answer_within,
        )

    def forget_questions(self) -> None:
        """The hub that asked is gone, and nobody will answer this one: ask again. What was answered still counts."""
        for agent in self._context.beliefs.agents.values():
            if agent.suspicion is not None:
                agent.suspicion.zones = None
            if agent.case is not None:
                agent.case.last_look = None

    def _looks_once_more(self, agent: Agent, policy: Policy, now: float) -> bool:
        """Before an agent is ended for its silence the other zones are asked once more, and their answers waited for: what they
        said at the verdict is long ago, and it may be cut off from us alone by now. False if nothing speaks against it."""
        context, case = self._context, agent.case
        if (
            case is None
            or not context.other_zones
            or not context.ladder.ends_for_silence(agent, policy.ladder)
        ):
            return False
        if case.last_look is None:
            case.last_look = Suspicion(now, "it is to be ended")
            factor = context.awareness.factor(now, context.limits, agent.source)
            wait = silence.answer_within(agent, 1, policy.silence) * factor
            lately = min(now - agent.heard_at, policy.silence.timeout)
            self._ask_zones(agent, case.last_look, wait, lately, now)
            context.ladder.postpone(case, now, wait)
            return True
        doubt = second_opinion.doubt(case.last_look, context.other_zones)
        case.last_look = None
        if any(doubt):
            self._cut_off(agent, doubt, now)
        return any(doubt)

    def _convict(self, agent: Agent, suspicion: Suspicion, policy: Policy, at: float) -> None:
        """All pings are unanswered. Check ourselves once more, then give a verdict."""
        aware = self._context.awareness
        if at < (truce_until := aware.truce_for(agent)):
            suspicion.waited_from, suspicion.wait = at, truce_until - at
            return
        if suspicion.since < aware.restored_at(agent):
            agent.suspicion = None  # As below, on a path without a canary.
            return
        asked_ourselves = bool(self._context.limits.canary_every)
        if asked_ourselves and aware.canary_by and aware.vouches_for(agent):
            if suspicion.since < aware.carried_from:
                agent.suspicion = None  # Its path did not work meanwhile: its silence starts anew.
                return
            nobody = (
                aware.canary_back_at < suspicion.waited_from
            )  # Agents on another path prove nothing about this one.
        elif asked_ourselves:
            nobody = aware.heard_at < suspicion.waited_from
        else:
            nobody = self._context.fleet.size > 1 and aware.heard_at <= suspicion.since
        if nobody and (asked_ourselves or at - suspicion.since < 2 * policy.silence.timeout):
            # Our canary is out too: it comes back and vouches for the link, or we are soon blind.
            suspicion.waited_from, suspicion.wait = at, policy.silence.ping_wait
            return
        fleet = self._context.fleet
        if not suspicion.held and (fleet.late_together(agent, at) or fleet.may_be_late_together(agent)):
            suspicion.held = True
            suspicion.waited_from, suspicion.wait = at, max(HELD_FOR_MIN, policy.silence.timeout)
            return
        doubt = second_opinion.doubt(suspicion, self._context.other_zones)
        cause = Cause.PARTITION if any(doubt) else self._cause(agent, suspicion, nobody=nobody)
        finding = silence.finding(agent, suspicion.asked, at, over=True, doubt=doubt)
        agent.suspicion = None
        self._context.judge.note(agent, finding, at, cause)

    def hear_of(self, agent: Agent, zone: str, now: float) -> None:
        """Another zone hears an agent that we have given up for its silence: correct the cause, and withdraw what was
        ordered for it."""
        found = agent.finding(Kind.SILENCE)
        if (
            found is None
            or found.severity is not Severity.DISCONNECTED
            or agent.finding(Kind.EXIT) is not None
        ):
            return
        self._cut_off(agent, second_opinion.Doubt(heard_in=(zone,)), now)

    def _cut_off(self, agent: Agent, doubt: second_opinion.Doubt, now: float) -> None:
        context, found = self._context, agent.finding(Kind.SILENCE)
        asked = 0 if found is None else int(found.numbers["pings"])
        finding = silence.finding(agent, asked, now, over=True, doubt=doubt)
        context.judge.note(agent, finding, now)
        if agent.cause in (Cause.UNKNOWN, Cause.CRASH):
            agent.cause = Cause.PARTITION
        context.ladder.heard_elsewhere(agent, finding.text, now)
        lineage = context.beliefs.lineages.get(agent.id)
        if lineage is not None and lineage.phase in ON_ITS_WAY and not lineage.requested:
            context.respawns.returned(lineage, now)

    def _cause(self, agent: Agent, suspicion: Suspicion, *, nobody: bool) -> Cause:
        if (
            nobody
            or (suspicion.held and self._host_may_be_away(agent, suspicion))
            or self._context.fleet.silent_together(agent)
        ):
            return Cause.PARTITION
        return Cause.CRASH if suspicion.why == CONNECTION_CLOSED else Cause.UNKNOWN

    def _host_may_be_away(self, agent: Agent, suspicion: Suspicion) -> bool:
        """Whether nobody on its host was heard since an agent was suspected, and the host is not our own."""
        context = self._context
        return agent.host != context.host and context.fleet.host_is_silent(agent, suspicion.since)


def _is_well(agent: Agent) -> bool:
    return (
        agent.health is Health.HEALTHY
        and not agent.findings
        and agent.suspicion is None
        and agent.case is None
        and not agent.overloaded
    )


def _is_calm(agent: Agent) -> bool:
    return (
        _is_well(agent)
        # A beat of an agent that declared itself busy ends its longer silence: its deadline moves closer.
        and agent.doing is not Doing.BUSY
        and not agent.beatless  # From its first beat on its silence has a deadline.
        and (agent.beats > 0 or not agent.claims)  # From its first beat on its claims have an earlier one.
    )


def gone(agent: Agent) -> bool:
    """Terminated, or known to be absent: its silence means nothing."""
    if agent.health is Health.TERMINATED:
        return True
    return agent.health is Health.DISCONNECTED and any(
        f.severity is Severity.DISCONNECTED and f.kind is not Kind.FREEZE for f in agent.findings
    )


def grace(agent: Agent, policy: Policy) -> float:
    """How long this agent may take to speak for the first time."""
    return policy.silence.grace if agent.grace is None else agent.grace
