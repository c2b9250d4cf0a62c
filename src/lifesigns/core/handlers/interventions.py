"""Interventions: what happens to an agent from outside: its process ends, an order has an outcome, a person decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from lifesigns.core import recovery_breaker, second_opinion
from lifesigns.core import signals as s
from lifesigns.core.agent import NEVER, Agent, Case
from lifesigns.core.context import EngineContext
from lifesigns.core.effects import (
    Clearance,
    Finding,
    Intervention,
    Kind,
    NeedsHuman,
    Pause,
    RecoveryRequest,
    Resumption,
    Rung,
    Severity,
    Stage,
)
from lifesigns.core.handlers.incarnations import Incarnations, ended
from lifesigns.core.handlers.work import WorkHandlers
from lifesigns.core.health import Cause, FailureClass, Health, Phase
from lifesigns.core.ladder import WITHDRAWN_TOO_LATE, spent
from lifesigns.core.respawn import Checkpoint
from lifesigns.core.side_orders import turn_text
from lifesigns.core.watching import CONNECTION_CLOSED, NOT_UNASKED, Watching

SOMEBODY: Final = "a person"
"""The name of a person who gives none, so that a person's act never counts as ours."""


class InterventionHandlers:
    """Handles the world's signals, the outcomes of orders, and people's acts."""

    def __init__(
        self, context: EngineContext, watching: Watching, incarnations: Incarnations, work: WorkHandlers
    ) -> None:
        self._context = context
        self._watching = watching
        self._incarnations = incarnations
        self._work = work

    @property
    def handlers(self) -> Mapping[type, Callable[[Agent, Any, float], None]]:
        return {
            s.AgentLeft: self._left,
            s.ProcessExited: self._exited,
            s.ConnectionClosed: self._connection_closed,
            s.OpinionGiven: self._opinion_given,
            s.NudgeDelivered: self._nudge_delivered,
            s.NudgeFailed: self._nudge_failed,
            s.NudgeSeen: self._nudge_seen,
            s.NudgeAnswered: self._nudge_answered,
            s.EscalationDecided: self._decided,
            s.TerminationDone: self._terminated,
            s.TerminationFailed: self._termination_failed,
            s.CheckpointVerified: self._verified,
            s.RespawnStarted: self._respawn_started,
            s.RespawnFailed: self._respawn_failed,
            s.BreakerTurned: self._breaker_turned,
            s.BreakerNotTurned: self._breaker_not_turned,
            s.CleanedUp: self._cleaned_up,
            s.CleanUpFailed: self._clean_up_failed,
            s.NudgeRequested: self._nudge_requested,
            s.EscalationRequested: self._escalation_requested,
            s.TerminationRequested: self._termination_requested,
            s.PauseRequested: self._pause,
            s.ResumeRequested: self._resume,
            s.ClearRequested: self._clear,
            s.RecoveryRequested: self._recovery_requested,
            s.BreakerTurnRequested: self._breaker_turn_requested,
        }

    def _left(self, agent: Agent, signal: s.AgentLeft, now: float) -> None:
        case = agent.case
        if case is not None and not case.on_silence and self._context.ladder.is_ending(agent):
            # It left because we told it to: that is the outcome we wait for, whichever signal brings it first. In a
            # case for silence it ended by itself instead, and its good-bye was delayed.
            self._terminated(agent, s.TerminationDone(agent_id=agent.id, order_id=case.order_id), now)
            return
        self._incarnations.end(agent, f"left: {signal.reason}" if signal.reason else "left", now)
        lineage = self._context.beliefs.lineages.get(agent.id)
        if lineage is not None:
            self._context.respawns.stop(lineage, now)

    def _exited(self, agent: Agent, signal: s.ProcessExited, now: float) -> None:
        context = self._context
        if signal.incarnation is not None and signal.incarnation != agent.incarnation:
            self._died_unborn(agent, signal.incarnation, now)
            return
        case, told_by_itself = agent.case, signal.status is None and not signal.signal
        unheard = case is not None and case.on_silence and not told_by_itself
        if agent.health is Health.TERMINATED or (context.ladder.is_ending(agent) and not unheard):
            return  # We wanted it to end; the outcome of that order brings the rest.
        if signal.status == 0 and not signal.signal:
            self._incarnations.end(agent, "exited with status 0", now)
            return
        if case is not None and context.ladder.is_ending(agent):
            # Silent, and now known to be gone: the executor that was to end it may never report.
            self._terminated(agent, s.TerminationDone(agent_id=agent.id, order_id=case.order_id), now)
            return
        how, text = _how_it_ended(signal)
        if not context.limits.judging:
            self._incarnations.end(agent, text, now)
            return
        agent.suspicion = None
        found = Finding(Kind.EXIT, now, Severity.DISCONNECTED, text, {"exit": how}, conclusive=True)
        context.judge.note(agent, found, now, Cause.CRASH)
        if agent.cause is not Cause.CRASH:
            agent.cause = Cause.CRASH  # It was already disconnected; now we know why.
        context.ladder.drop(agent, now, "the process ended")
        self._incarnations.clean_up_after(agent, text, now)
        lineage = context.lineage(agent)
        lineage.supervisor_gone = lineage.supervisor_gone or signal.orphaned
        if (over_limit := spent(agent)) is not None:
            context.respawns.ask(lineage, f"{text} {NOT_UNASKED}: {over_limit.text}", now)
            return
        context.respawns.begin(
            lineage, agent, text, context.policy(agent).respawn, now, hesitate=told_by_itself
        )

    def _died_unborn(self, agent: Agent, life: str, now: float) -> None:
        """A life we started ended before it spoke."""
        lineage, policy = self._context.lineage(agent), self._context.policy(agent).respawn
        reason = "the new life ended before its first word"
        self._context.respawns.start_failed(lineage, lineage.starts[life], reason, policy, now)

    def _connection_closed(self, agent: Agent, signal: s.ConnectionClosed, now: float) -> None:
        if agent.suspicion is None and agent.alive:
            self._watching.suspect(agent, self._context.policy(agent), CONNECTION_CLOSED, now, now)

    def _opinion_given(self, agent: Agent, signal: s.OpinionGiven, now: float) -> None:
        doubted = agent.suspicion or (None if agent.case is None else agent.case.last_look)
        if doubted is not None:
            second_opinion.note(doubted, signal.zone, signal.opinion)
        elif signal.opinion is s.Opinion.HEARD:
            self._watching.hear_of(agent, signal.zone, now)

    def _nudge_delivered(self, agent: Agent, signal: s.NudgeDelivered, now: float) -> None:
        self._context.ladder.reached(agent, signal.order_id, Stage.DELIVERED, now)

    def _nudge_failed(self, agent: Agent, signal: s.NudgeFailed, now: float) -> None:
        self._context.ladder.reached(agent, signal.order_id, Stage.FAILED, now, signal.reason)

    def _nudge_seen(self, agent: Agent, signal: s.NudgeSeen, now: float) -> None:
        self._context.ladder.reached(agent, signal.nudge_id, Stage.SEEN, now)

    def _nudge_answered(self, agent: Agent, signal: s.NudgeAnswered, now: float) -> None:
        policy = self._context.policy(agent).ladder
        self._context.ladder.answered(agent, signal.nudge_id, signal.answer, signal.note, policy, now)
        self._work.progressed(agent, now)

    def _decided(self, agent: Agent, signal: s.EscalationDecided, now: float) -> None:
        policy = self._context.policy(agent).ladder
        if not self._context.ladder.decided(agent, signal, policy, now):
            self._context.refuse(agent.id, f"escalation {signal.order_id} is no longer open", now)

    def _terminated(self, agent: Agent, signal: s.TerminationDone, now: float) -> None:
        context = self._context
        newest = context.beliefs.newest_checkpoint(agent.id)
        case = context.ladder.terminated(
            agent, signal.order_id, now, signal.checkpoint_id or newest, forced=signal.forced
        )
        if case is None:
            self._ended_anyway(agent, signal, now)
            return
        lineage, policy = context.lineage(agent), context.policy(agent).respawn
        if signal.checkpoint_id is not None:
            # Its supervisor found what it had saved; an agent that reports for itself has already told us.
            saved = Checkpoint(signal.checkpoint_id, newest, "", now, 0)
            context.respawns.saved(lineage, saved, policy)
        failure, over_limit = agent.failure, spent(agent)
        self._incarnations.end(agent, case.reason, now)
        terminal = failure is not None and failure.failure_class is FailureClass.TERMINAL
        if over_limit is not None and case.respawn:
            # Whatever it was ended for: whoever continues its task begins over the limit, and would be ended for that.
            context.respawns.ask(lineage, f"{case.reason} {NOT_UNASKED}: {over_limit.text}", now)
        elif failure is not None and terminal and case.respawn and not case.by:
            context.respawns.ask(lineage, f"{case.reason} {NOT_UNASKED}: {failure.reason}", now)
        elif case.respawn:
            context.respawns.begin(lineage, agent, case.reason, policy, now, wanted=bool(case.by))
        elif not case.by:
            text = f"{agent.id} was stopped and not respawned: {case.reason}"
            context.outbox.fact(NeedsHuman(now, agent.id, "stopped", text))

    def _ended_anyway(self, agent: Agent, signal: s.TerminationDone, now: float) -> None:
        """A withdrawn termination was carried out all the same. We restart what we ended wrongly, and tell people."""
        context = self._context
        saved = signal.checkpoint_id or context.beliefs.newest_checkpoint(agent.id)
        case = agent.case
        if case is not None and context.ladder.is_ending(agent) and signal.order_id == agent.past.withdrawn:
            # Another termination replaced this one, but this one was quicker.
            agent.past = replace(agent.past, withdrawn="")
            self._terminated(agent, replace(signal, order_id=case.order_id), now)
            return
        if not context.ladder.carried_out_anyway(agent, signal.order_id, now, saved):
            return
        if agent.health is not Health.TERMINATED:
            self._incarnations.end(agent, WITHDRAWN_TOO_LATE, now)
        context.outbox.fact(NeedsHuman(now, agent.id, "stopped", f"{agent.id}: {WITHDRAWN_TOO_LATE}"))
        context.respawns.begin(
            context.lineage(agent), agent, WITHDRAWN_TOO_LATE, context.policy(agent).respawn, now
        )

    def _termination_failed(self, agent: Agent, signal: s.TerminationFailed, now: float) -> None:
        policy = self._context.policy(agent).ladder
        self._context.ladder.termination_failed(agent, signal.order_id, signal.reason, policy, now)

    def _verified(self, agent: Agent, signal: s.CheckpointVerified, now: float) -> None:
        context = self._context
        lineage = context.lineage(agent)
        if lineage.order_id == signal.order_id:
            lineage.read_back = signal.read_back
            context.respawns.verified(lineage, signal.checkpoint_id, now, valid=signal.valid)

    def _respawn_started(self, agent: Agent, signal: s.RespawnStarted, now: float) -> None:
        lineage = self._context.lineage(agent)
        # The executor may report the start after the new life has spoken, or twice: then it is no news.
        if lineage.order_id == signal.order_id and lineage.phase is Phase.STARTING:
            self._context.respawns.start_acknowledged(lineage, now)

    def _respawn_failed(self, agent: Agent, signal: s.RespawnFailed, now: float) -> None:
        context, policy = self._context, self._context.policy(agent).respawn
        context.respawns.start_failed(context.lineage(agent), signal.order_id, signal.reason, policy, now)

    def _breaker_turned(self, agent: Agent, signal: s.BreakerTurned, now: float) -> None:
        self._context.side_orders.done(agent, signal.order_id, now)

    def _breaker_not_turned(self, agent: Agent, signal: s.BreakerNotTurned, now: float) -> None:
        self._context.side_orders.failed(agent, signal.order_id, signal.reason, now)

    def _cleaned_up(self, agent: Agent, signal: s.CleanedUp, now: float) -> None:
        if self._context.side_orders.done(agent, signal.order_id, now):
            self._context.respawns.cleaned_up(self._context.lineage(agent), now)

    def _clean_up_failed(self, agent: Agent, signal: s.CleanUpFailed, now: float) -> None:
        if self._context.side_orders.failed(agent, signal.order_id, signal.reason, now):
            self._context.respawns.cleaned_up(self._context.lineage(agent), now)

    def _nudge_requested(self, agent: Agent, signal: s.NudgeRequested, now: float) -> None:
        self._start(agent, Rung.NUDGE, signal, signal.message, now)

    def _escalation_requested(self, agent: Agent, signal: s.EscalationRequested, now: float) -> None:
        self._start(agent, Rung.ESCALATE, signal, signal.reason, now)

    def _termination_requested(self, agent: Agent, signal: s.TerminationRequested, now: float) -> None:
        case = self._start(agent, Rung.TERMINATE, signal, signal.reason or "requested", now)
        if case is not None:
            case.respawn = signal.respawn

    def _start(self, agent: Agent, rung: Rung, act: s.PersonActed, reason: str, now: float) -> Case | None:
        """A person's order goes onto the ladder at the rung they chose, once per key."""
        if agent.health is Health.TERMINATED:
            self._context.refuse(agent.id, "is terminated already", now)
            return None
        if act.key and agent.case is not None and agent.case.key == act.key:
            return None
        case = self._context.ladder.start(agent, rung, now, reason=reason, by=act.by or SOMEBODY)
        case.key = act.key
        return case

    def _pause(self, agent: Agent, signal: s.PauseRequested, now: float) -> None:
        until = NEVER if signal.pause_for is None else now + max(0.0, signal.pause_for)
        agent.past = replace(agent.past, paused_until=until)
        self._context.outbox.fact(Pause(now, agent.id, signal.by or SOMEBODY, signal.pause_for))

    def _resume(self, agent: Agent, signal: s.ResumeRequested, now: float) -> None:
        agent.past = replace(agent.past, paused_until=0.0)
        self._context.outbox.fact(Resumption(now, agent.id, signal.by or SOMEBODY))

    def _clear(self, agent: Agent, signal: s.ClearRequested, now: float) -> None:
        context = self._context
        context.outbox.fact(Clearance(now, agent.id, signal.by or SOMEBODY))
        agent.past = replace(agent.past, poisoned=False, paused_until=0.0)
        context.ladder.drop(agent, now, f"cleared by {signal.by or SOMEBODY}")
        self._work.rest(agent, now)
        lineage = context.beliefs.lineages.get(agent.id)
        if lineage is not None:
            context.respawns.clear(lineage, now)

    def _recovery_requested(self, agent: Agent, signal: s.RecoveryRequested, now: float) -> None:
        context = self._context
        if agent.alive:
            context.refuse(agent.id, "is alive: terminate it before its task is recovered", now)
            return
        by, reason = signal.by or SOMEBODY, signal.reason
        context.outbox.fact(RecoveryRequest(now, agent.id, signal.task_id, by, reason))
        why = f"requested by {by}{': ' + reason if reason else ''}"
        context.respawns.request(context.lineage(agent), agent, why, context.policy(agent).respawn, now)

    def _breaker_turn_requested(self, agent: Agent, signal: s.BreakerTurnRequested, now: float) -> None:
        if signal.name == recovery_breaker.NAME and self._turn_recovery_breaker(agent, signal, now):
            return
        if ended(agent):
            self._context.refuse(agent.id, "has ended, and its breakers with it", now)
        elif signal.name not in self._context.beliefs.breakers.get(agent.id, {}):
            self._context.refuse(agent.id, f"has no breaker {signal.name!r}", now)
        else:
            self._context.side_orders.turn_breaker(agent, signal, now)

    def _turn_recovery_breaker(self, agent: Agent, signal: s.BreakerTurnRequested, now: float) -> bool:
        """The breaker of its recoveries is ours, so we turn it here and now. False if there is none."""
        context, lineage = self._context, self._context.beliefs.lineages.get(agent.id)
        if lineage is None or recovery_breaker.seen_as_breaker(lineage) is None:
            return False
        number, text = context.outbox.number(), turn_text(signal.act, signal.name, signal.reason)
        by = signal.by or SOMEBODY

        def record(stage: Stage, words: str, key: str = "") -> None:
            context.outbox.fact(Intervention(now, agent.id, number, Rung.BREAKER, stage, 1, words, by, key))

        record(Stage.ORDERED, text, signal.key)
        agent.past = replace(agent.past, interventions=agent.past.interventions + 1)
        if signal.act is s.BreakerAct.OPEN:
            record(Stage.FAILED, "only failed recoveries open it; pause the agent to leave it alone")
        else:
            policy = context.policy(agent).respawn
            context.respawns.forget_failures(lineage, agent, f"{text}, by {by}", policy, now)
            record(Stage.DONE, text)
        return True


def _how_it_ended(signal: s.ProcessExited) -> tuple[str, str]:
    """The end in two words and as a sentence. An agent that reports its own crash knows the error, but not yet the status."""
    if signal.signal:
        how = f"signal {signal.signal}"
    elif signal.status is not None:
        how = f"status {signal.status}"
    else:
        return "error", f"It crashed. {signal.detail}" if signal.detail else "It crashed."
    return how, f"The process ended with {how}.{' ' + signal.detail if signal.detail else ''}"
