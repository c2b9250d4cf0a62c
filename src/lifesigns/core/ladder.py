"""Ladder: nudge, escalate, terminate. One rung at a time, each exactly once, none on a healthy agent.

The law: a case opens when an agent becomes unwell and is dropped the moment it is well again. We climb a rung only
when the wait of the one before is over, the fleet's brake and limits allow it, and the evidence reaches that far.
Only progress or an answer is success; a delivered nudge may be unread.

An open termination ends by its outcome or by a person's decision: effects of the stop itself (a cancelled call, a
last checkpoint) do not show that the agent is well. But any sign of life refutes a termination for silence and
withdraws the order, so that it does not hit an agent that comes back later.
"""

from __future__ import annotations

from msgspec.structs import replace

from lifesigns.core import judgement, templates
from lifesigns.core.agent import NEVER, Agent, Case
from lifesigns.core.awareness import Awareness
from lifesigns.core.effects import (
    Ending,
    Escalate,
    Finding,
    Intervention,
    Kind,
    NeedsHuman,
    Rung,
    SendNudge,
    Severity,
    Stage,
    Terminate,
)
from lifesigns.core.fleet import Fleet
from lifesigns.core.health import UNWELL, Cause, Doing, Health
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import LadderPolicy
from lifesigns.core.signals import Answer, Decision, EscalationDecided
from lifesigns.core.words import duration, sentence

LEFT_ALONE = frozenset({Doing.WAITING_FOR_HUMAN, Doing.RATE_LIMITED})
"""We never nudge agents in these states: a reminder does not help them."""

UNDECIDED = "undecided"
"""An unanswered escalation, on evidence too weak to act on."""

BY_FORCE = "it did not end when asked, and was killed"

CANNOT_STOP = "cannot stop"
"""A termination that no executor carried out, however often we ordered it."""

NO_ANSWER = "no answer"
HEARD_AGAIN = "it is heard again: it was not dead, only silent"
ANSWERED = "the agent answered"
"""Why we stopped waiting for an order."""

WITHDRAWN_TOO_LATE = "It was ended by an order that was withdrawn too late."

SILENT = frozenset({Kind.SILENCE, Kind.NEVER_STARTED})

NUDGE_IDS_MAX = 16
"""How many nudges of a case the agent may still answer."""

TERMINATE_TRIES = 3
"""How often we order a termination whose outcome nobody reports."""


class Ladder:
    """Opens, climbs and drops cases."""

    def __init__(self, outbox: Outbox, fleet: Fleet, awareness: Awareness) -> None:
        self._outbox = outbox
        self._fleet = fleet
        self._awareness = awareness

    def due_at(self, agent: Agent) -> float:
        """When the next step of an agent's case falls due."""
        case = agent.case
        if case is None or case.wait == NEVER:
            return NEVER
        due_at = self._awareness.due(case.waited_from, case.wait)
        return due_at if case.by else max(due_at, agent.past.paused_until)

    def review(self, agent: Agent, policy: LadderPolicy, now: float) -> None:
        """An agent's health may have changed: open a case for the unwell, drop it for the well."""
        case = agent.case
        if case is None:
            self._open(agent, policy, now)
        elif case.by:
            return
        elif case.on_silence and not _is_silent(agent):
            # Other findings are another question: we can nudge the agent now, and we had asked people only about its
            # silence.
            self.drop(agent, now, HEARD_AGAIN)
            self._open(agent, policy, now)
        elif _is_out(case) and not self._outbox.holds(case.order_id):
            return
        elif agent.health not in UNWELL or _is_crash(agent):
            self.drop(agent, now, "well again" if agent.alive else "gone")
        elif not case.order_id or case.rung is not Rung.TERMINATE:
            self._reconsider(agent, case, policy, now)

    def _open(self, agent: Agent, policy: LadderPolicy, now: float) -> None:
        if agent.health in UNWELL and policy.enabled and not _is_crash(agent):
            rung = _first_rung(agent, policy)
            wait = policy.hesitate_for if agent.health is Health.DISCONNECTED else 0.0
            agent.case = Case(rung, _reason(agent), waited_from=now, wait=wait)
            agent.case.respawn = not spent(agent)
            agent.case.on_silence = _is_silent(agent)

    def drop(self, agent: Agent, now: float, why: str) -> None:
        """End a case without another step."""
        case = agent.case
        if case is not None:
            agent.case = None
            # An order of this very call has not left yet: take it back instead of withdrawing it.
            if not self._outbox.withdraw(case.order_id):
                self._drop_order(agent, case, now, why)

    def step(self, agent: Agent, policy: LadderPolicy, now: float) -> None:
        """The wait of an agent's case is over: climb, wait or park."""
        case = agent.case
        if case is None:
            return
        if case.rung is Rung.NUDGE:
            self._nudge(agent, case, policy, now)
        elif case.rung is Rung.ESCALATE:
            self._escalate(agent, case, policy, now)
        else:
            self._terminate(agent, case, policy, now)

    def ends_for_silence(self, agent: Agent, policy: LadderPolicy) -> bool:
        """Whether the next step is to end an agent of which we only know that it is silent."""
        case = agent.case
        if case is None or case.by or case.rung is not Rung.TERMINATE or case.attempt >= TERMINATE_TRIES:
            return False
        return _is_silent(agent) and not spent(agent) and self._may_end(agent, case, policy)

    def postpone(self, case: Case, now: float, wait: float) -> None:
        """Take the next step so much later."""
        self._wait(case, now, wait)

    def left_alone(self, agent: Agent) -> None:
        """The agent has just said that it waits for something else. Take back a nudge of this very call."""
        case = agent.case
        if case is None or case.by or case.rung is not Rung.NUDGE or agent.doing not in LEFT_ALONE:
            return
        if self._outbox.withdraw(case.order_id):
            case.attempt -= 1
            case.nudges -= 1
            case.nudge_ids, case.order_id = case.nudge_ids[:-1], ""
            agent.past = replace(agent.past, interventions=agent.past.interventions - 1)

    def heard_elsewhere(self, agent: Agent, text: str, now: float) -> None:
        """Somebody else hears an agent that we are ending for its silence: withdraw the order, and let people decide."""
        case = agent.case
        if case is None or case.by or case.rung is not Rung.TERMINATE or not case.on_silence or spent(agent):
            return
        if self._outbox.withdraw(case.order_id):
            case.order_id = ""
        self._stand_down(agent, case, now)
        self._outbox.fact(NeedsHuman(now, agent.id, UNDECIDED, text))

    def is_ending(self, agent: Agent) -> bool:
        """Whether a termination of this agent is open."""
        case = agent.case
        return case is not None and case.rung is Rung.TERMINATE and bool(case.order_id) and case.wait != NEVER

    # --- what people order ------------------------------------------------------------------------

    def start(
        self, agent: Agent, rung: Rung, now: float, *, reason: str, by: str, respawn: bool = False
    ) -> Case:
        """A person starts at any rung; the brake does not bind a person."""
        self.drop(agent, now, f"replaced by {by or 'a person'}")
        agent.case = case = Case(rung, reason, waited_from=now, by=by, respawn=respawn)
        return case

    # --- outcomes ---------------------------------------------------------------------------------

    def reached(self, agent: Agent, order_id: str, stage: Stage, now: float, text: str = "") -> None:
        """A nudge was delivered, failed or was seen."""
        case = agent.case
        if case is not None and case.order_id == order_id and stage not in case.reached:
            _reach(case, stage)
            self._record(agent, case, stage, now, text)

    def answered(
        self, agent: Agent, order_id: str, answer: Answer, note: str, policy: LadderPolicy, now: float
    ) -> None:
        """The agent answered a nudge."""
        case = agent.case
        if case is None or order_id not in case.nudge_ids or case.rung is Rung.TERMINATE:
            return
        said = f"{answer}: {note}" if note else str(answer)
        if case.said == f"{order_id} {said}":
            return
        case.said = f"{order_id} {said}"
        if case.order_id == order_id:
            _reach(case, Stage.ANSWERED)
        self._outbox.fact(
            Intervention(
                *(now, agent.id, order_id, Rung.NUDGE, Stage.ANSWERED, case.attempt, said),
                failure_class=agent.failure_class,
            )
        )
        case.nudges = 0
        if answer is Answer.HANDOFF:
            self._climb(agent, case, Rung.TERMINATE, now, ANSWERED)
            case.reason, case.by, case.respawn = "the agent asked for a handoff", agent.id, True
        elif answer is Answer.BLOCKED:
            text = f"{agent.id} is blocked: {note or 'it gave no reason'}"
            self._outbox.fact(NeedsHuman(now, agent.id, "blocked", text))
            if case.rung is Rung.NUDGE:
                self._climb(agent, case, Rung.ESCALATE, now, ANSWERED)
        else:
            # Its answer only buys time: without progress the ladder starts again. A person's nudge is done.
            self._climb(agent, case, Rung.NUDGE, now, ANSWERED)
            self._take_over(agent, case)
            case.escalated = False
            self._wait(case, now, policy.more_time_for)

    def decided(self, agent: Agent, answer: EscalationDecided, policy: LadderPolicy, now: float) -> bool:
        """A person or orchestrator decided an escalation. False if it is no longer open, or already decided."""
        case, decision, by = agent.case, answer.decision, answer.by
        if case is None or case.order_id != answer.order_id or case.rung is not Rung.ESCALATE:
            return False
        if Stage.ANSWERED in case.reached:
            return False
        said = f"{decision}: {answer.note}" if answer.note else str(decision)
        self._record(agent, case, Stage.ANSWERED, now, said, by)
        _reach(case, Stage.ANSWERED)
        case.said = f"{case.order_id} {said}"
        case.held = ""
        if decision is Decision.MORE_TIME:
            case.escalated = False
            self._wait(case, now, policy.more_time_for)
        elif decision is Decision.IGNORE:
            self._take_over(agent, case)
            self._wait(case, now, NEVER)
        else:
            self._climb(agent, case, Rung.TERMINATE, now)
            case.by = by or "orchestrator"
            case.respawn = True
        return True

    def terminated(
        self,
        agent: Agent,
        order_id: str,
        now: float,
        checkpoint_id: str | None = None,
        *,
        forced: bool = False,
    ) -> Case | None:
        """Our termination is done: close the case. None if it was not ours."""
        case = agent.case
        if case is None or case.order_id != order_id or case.rung is not Rung.TERMINATE:
            return None
        reason = f"{case.reason} ({BY_FORCE})" if forced else case.reason
        self._ended(agent, order_id, case.attempt, reason, now, case.by, checkpoint_id)
        agent.case = None
        return case

    def carried_out_anyway(
        self, agent: Agent, order_id: str, now: float, checkpoint_id: str | None = None
    ) -> bool:
        """Record that a termination was carried out after we had withdrawn it. False if we had not withdrawn this one."""
        if not order_id or order_id != agent.past.withdrawn:
            return False
        agent.past = replace(agent.past, withdrawn="")
        self._ended(agent, order_id, 1, WITHDRAWN_TOO_LATE, now, "", checkpoint_id)
        return True

    def _ended(
        self,
        agent: Agent,
        order_id: str,
        attempt: int,
        reason: str,
        now: float,
        by: str,
        checkpoint_id: str | None,
    ) -> None:
        ending = Ending(
            now,
            agent.id,
            order_id,
            Rung.TERMINATE,
            Stage.DONE,
            attempt,
            reason,
            by,
            failure_class=agent.failure_class,
            checkpoint_id=checkpoint_id,
        )
        self._outbox.fact(ending)

    def termination_failed(
        self, agent: Agent, order_id: str, reason: str, policy: LadderPolicy, now: float
    ) -> None:
        case = agent.case
        ours = case is not None and case.order_id == order_id and case.rung is Rung.TERMINATE
        if case is not None and ours and Stage.FAILED not in case.reached:
            self.reached(agent, order_id, Stage.FAILED, now, reason)
            self._wait(case, now, policy.confirm_for)

    # --- the rungs --------------------------------------------------------------------------------

    def _nudge(self, agent: Agent, case: Case, policy: LadderPolicy, now: float) -> None:
        if agent.doing in LEFT_ALONE and not case.by:
            self._wait(case, now, policy.nudge_every)
        elif case.by and case.attempt:
            # A person's nudge is one nudge and starts no ladder. It does not switch ours off either.
            self.drop(agent, now, NO_ANSWER)
            self._open(agent, policy, now)
        elif case.attempt >= policy.nudge_max:
            self._climb(agent, case, Rung.ESCALATE, now, NO_ANSWER)
        elif self._allowed(agent, case, now):
            self._drop_order(agent, case, now, NO_ANSWER)
            case.attempt += 1
            case.nudges += 1
            text = case.reason if case.by and case.reason else nudge_text(agent, now, policy.nudge_template)
            order = self._outbox.order(SendNudge, agent, now, attempt=case.attempt, text=text)
            case.nudge_ids = (*case.nudge_ids, order.order_id)[-NUDGE_IDS_MAX:]
            self._ordered(agent, case, order.order_id, now, text)
            self._wait(case, now, policy.nudge_every)

    def _escalate(self, agent: Agent, case: Case, policy: LadderPolicy, now: float) -> None:
        if not case.escalated:
            if not self._allowed(agent, case, now):
                return
            case.escalated = True
            case.grounds = self._may_end(agent, case, policy)
            case.on_silence = _is_silent(agent)
            case.attempt = 1
            reason = case.reason if case.by else _reason(agent)
            order = self._outbox.order(
                Escalate,
                agent,
                now,
                reason=reason,
                findings=agent.findings,
                checkpoint_id=agent.work.checkpoint_id if agent.work else None,
                answer_by=now + policy.escalation_timeout,
            )
            self._ordered(agent, case, order.order_id, now, reason)
            self._outbox.fact(NeedsHuman(now, agent.id, "escalation", reason))
            self._wait(case, now, policy.escalation_timeout)
        elif case.by:
            # The person asked others, and nobody answered: from here we decide, by the evidence.
            self._take_over(agent, case)
            self.review(agent, policy, now)
        elif self._may_end(agent, case, policy):
            # Ask people again when the evidence is stronger: their silence was about something else.
            case.escalated = case.grounds
            rung = Rung.TERMINATE if case.grounds else Rung.ESCALATE
            self._climb(agent, case, rung, now, "nobody decided in time")
        else:
            text = "Nobody decided, and the evidence is too weak to end this agent without a word."
            self._outbox.fact(NeedsHuman(now, agent.id, UNDECIDED, text))
            case.held = UNDECIDED
            self._wait(case, now, NEVER)

    def _terminate(self, agent: Agent, case: Case, policy: LadderPolicy, now: float) -> None:
        first = case.attempt == 0
        if case.attempt >= TERMINATE_TRIES:
            self._give_up(agent, case, now)
        elif not case.by and (first or not _is_out(case)) and not self._may_end(agent, case, policy):
            self._stand_down(agent, case, now)
        elif self._allowed(agent, case, now):
            case.attempt += 1
            if first:
                case.on_silence = not case.by and _is_silent(agent)
                case.reason = case.reason if case.by else _grounds(agent)
            order = self._outbox.order(
                Terminate,
                agent,
                now,
                order_id=None if first else case.order_id,
                reason=case.reason,
                save_for=policy.save_for,
                findings=agent.findings,
                seq_seen=agent.seq,
                by=case.by,
                on_silence=case.on_silence,
            )
            self._ordered(agent, case, order.order_id, now, case.reason)
            self._wait(case, now, policy.save_for + policy.confirm_for)

    def _give_up(self, agent: Agent, case: Case, now: float) -> None:
        """A termination has no outcome after all its tries. Withdraw ours: it must not hit the agent hours later. A
        person's order stays in force until a person takes it back."""
        if not case.by and agent.health not in UNWELL:
            self.drop(agent, now, "well again")
            return
        text = f"{agent.id} could not be stopped in {TERMINATE_TRIES} tries."
        if case.by:
            text += " It will be when it is reached, unless you clear it."
        self._outbox.fact(NeedsHuman(now, agent.id, CANNOT_STOP, text))
        case.held = CANNOT_STOP
        self._wait(case, now, NEVER)
        if not case.by:
            self._drop_order(agent, case, now, "it could not be stopped")
            case.order_id, case.reached = "", ()

    # --- parts ------------------------------------------------------------------------------------

    def _reconsider(self, agent: Agent, case: Case, policy: LadderPolicy, now: float) -> None:
        """The evidence changed while a case was open: it may belong on a higher rung."""
        if case.rung is Rung.TERMINATE:
            if not self._may_end(agent, case, policy):
                self._stand_down(agent, case, now)
        elif spent(agent):
            self._climb(agent, case, Rung.TERMINATE, now, "a limit is reached")
            case.reason, case.respawn = _grounds(agent), False
        elif case.rung is Rung.NUDGE and _first_rung(agent, policy) is Rung.ESCALATE:
            self._climb(agent, case, Rung.ESCALATE, now, "it answers no ping any more")
        elif case.held == UNDECIDED and self._may_end(agent, case, policy):
            case.escalated = False
            self._climb(agent, case, Rung.ESCALATE, now, "there is new evidence to decide about")

    def _take_over(self, agent: Agent, case: Case) -> None:
        """The person's order is done: from here on it is our case, by the evidence."""
        if case.by:
            case.by, case.respawn = "", not spent(agent)

    def _stand_down(self, agent: Agent, case: Case, now: float) -> None:
        """The evidence went away before the termination: go back to the unanswered escalation."""
        self._drop_order(agent, case, now, "the evidence is gone")
        case.rung, case.attempt, case.order_id, case.held = Rung.ESCALATE, 0, "", UNDECIDED
        self._wait(case, now, NEVER)

    def _may_end(self, agent: Agent, case: Case, policy: LadderPolicy) -> bool:
        """Whether an unanswered escalation may become a termination."""
        if agent.cause is Cause.PARTITION or agent.doing is Doing.WAITING_FOR_HUMAN:
            return False
        nudged = case.nudges >= policy.nudge_max or not policy.nudge_enabled
        return judgement.may_terminate(agent.findings, nudged=nudged, escalated=case.escalated)

    def _allowed(self, agent: Agent, case: Case, now: float) -> bool:
        if case.by:
            return True
        held = self._fleet.hold(agent, case.rung, now)
        if held is None:
            if case.rung is not Rung.ESCALATE:  # A question about an agent does nothing to it.
                self._fleet.acted(agent, case.rung, now)
            case.held = ""
            return True
        why, until = held
        if case.held != why:
            case.held = why
            self._record(agent, case, Stage.HELD, now, why)
        self._wait(case, now, max(1.0, until - now))
        return False

    def _climb(self, agent: Agent, case: Case, rung: Rung, now: float, why: str = "") -> None:
        self._drop_order(agent, case, now, why)
        case.rung, case.attempt, case.order_id, case.held = rung, 0, "", ""
        self._wait(case, now, 0.0)

    def _drop_order(self, agent: Agent, case: Case, now: float, why: str) -> None:
        """Stop waiting for the last order, and record it as dropped unless its outcome is on record already. A failed
        termination counts as open: its next try may still succeed, so it has to be withdrawn."""
        failed = Stage.FAILED in case.reached and case.rung is not Rung.TERMINATE
        if case.order_id and not failed and Stage.ANSWERED not in case.reached:
            self._record(agent, case, Stage.DROPPED, now, why)
            if case.rung is Rung.TERMINATE:
                agent.past = replace(agent.past, withdrawn=case.order_id)

    def _wait(self, case: Case, now: float, wait: float) -> None:
        case.waited_from, case.wait = now, wait

    def _ordered(self, agent: Agent, case: Case, order_id: str, now: float, text: str) -> None:
        case.order_id, case.reached = order_id, ()
        agent.past = replace(agent.past, interventions=agent.past.interventions + 1)
        self._record(agent, case, Stage.ORDERED, now, text, case.by, case.key)

    def _record(
        self, agent: Agent, case: Case, stage: Stage, now: float, text: str = "", by: str = "", key: str = ""
    ) -> None:
        self._outbox.fact(
            Intervention(
                *(now, agent.id, case.order_id, case.rung, stage, case.attempt, text, by, key),
                failure_class=agent.failure_class,
            )
        )


def _reach(case: Case, stage: Stage) -> None:
    if stage not in case.reached:
        case.reached = (*case.reached, stage)


def nudge_text(agent: Agent, now: float, template: str) -> str:
    """What an agent is told of itself."""
    facts = [sentence(f.text) for f in agent.findings]
    work, tool = agent.work, ""
    if work is not None and work.tool_at is not None and work.last_tool:
        tool = f"{work.last_tool} x{work.repeats}" if work.repeats > 1 else work.last_tool
        facts.append(f"Last tool call {duration(now - work.tool_at)} ago: {tool}.")
    said = (agent.id, " ".join(facts), tool or "none", duration(now - agent.since))
    return templates.filled(template, dict(zip(templates.NUDGE_FACTS, said, strict=True))).strip()


def _is_crash(agent: Agent) -> bool:
    """A process that is known to be gone needs no ladder: there is nothing to nudge or stop."""
    return agent.finding(Kind.EXIT) is not None


def _first_rung(agent: Agent, policy: LadderPolicy) -> Rung:
    if spent(agent):
        return Rung.TERMINATE  # With a cap the user has decided that the agent ends here.
    if agent.health is Health.DISCONNECTED and agent.cause is not Cause.FREEZE:
        return Rung.ESCALATE  # An agent that does not answer a ping cannot be nudged.
    return Rung.NUDGE if policy.nudge_enabled else Rung.ESCALATE


def spent(agent: Agent) -> Finding | None:
    """That it has reached a limit of what it may spend, if it has."""
    spending = agent.finding(Kind.SPENDING)
    return spending if spending is not None and spending.conclusive else None


def _is_silent(agent: Agent) -> bool:
    """Whether it counts as gone because it is silent. Only a sign of life from the agent itself ends that."""
    return any(f.kind in SILENT and f.severity is Severity.DISCONNECTED for f in agent.findings)


def _is_out(case: Case) -> bool:
    """Whether we ordered a termination, know no outcome, and have not given it up."""
    ordered = case.rung is Rung.TERMINATE and bool(case.order_id) and case.wait != NEVER
    return ordered and Stage.FAILED not in case.reached


def _reason(agent: Agent) -> str:
    """The finding that weighs most: a conclusive one, if there is one."""
    conclusive = (finding for finding in agent.findings if finding.conclusive)
    decisive: Finding | None = judgement.worst(conclusive) or judgement.worst(agent.findings)
    return decisive.text if decisive else agent.health.value


def _grounds(agent: Agent) -> str:
    """The reasons to end it: the conclusive finding, or all the weak ones together."""
    if any(finding.conclusive for finding in agent.findings):
        return _reason(agent)
    weak = sorted(agent.findings, key=lambda finding: (-judgement.RANK[finding.severity], finding.since))
    texts = [sentence(finding.text) for finding in weak if finding.severity is not Severity.NOTICE]
    return " ".join(texts) or agent.health.value
