"""Work: calls, checkpoints, progress, errors and spending, and what an agent says it is doing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from lifesigns.core import signals as s
from lifesigns.core.agent import DECLARED, MODEL_CALL, NEVER, Agent, Call, Outcomes, Spending, Work
from lifesigns.core.beliefs import ReportedBreaker
from lifesigns.core.context import EngineContext
from lifesigns.core.detectors import context, erring, forecast, looping, spending, stall
from lifesigns.core.detectors.call_history import CallHistory, brought_nothing_new
from lifesigns.core.effects import BreakerFlip, Finding, Kind, NeedsHuman, Severity
from lifesigns.core.health import AILING_WORDS, Doing
from lifesigns.core.printable import clean
from lifesigns.core.respawn import Checkpoint
from lifesigns.core.tasks import NOTE_MAX, Task
from lifesigns.core.watching import Watching

BREAKERS_MAX: Final = 64
LINE_MAX: Final = 120
"""How much of a repeated line we keep."""

OUTPUT: Final = "output"
"""The kind of activity that is progress."""

REPETITION: Final = "repetition"
REPEATED_ERROR: Final = "repeated_error"
"""Kinds of activity that are none: output that only repeats itself."""

TURNS: Final = frozenset({OUTPUT, "message"})
"""Kinds of activity that give a model something new to talk about."""

REST: Final = frozenset({*stall.KINDS, Kind.LOOPING, Kind.ERRORS, Kind.CONTEXT, Kind.TASK_STALLED})
"""Findings about work; they end with it."""


class WorkHandlers:
    """Handles reports about an agent's work."""

    def __init__(self, context: EngineContext, watching: Watching) -> None:
        self._context = context
        self._watching = watching

    @property
    def handlers(self) -> Mapping[type, Callable[[Agent, Any, float], None]]:
        return {
            s.ActivitySeen: self._activity,
            s.ToolStarted: self._tool_started,
            s.ToolFinished: self._tool_finished,
            s.ModelStarted: self._model_started,
            s.ModelFinished: self._model_finished,
            s.CheckpointSaved: self._checkpoint,
            s.ProgressMade: self._progress,
            s.ErrorReported: self._error,
            s.DoingChanged: self._doing,
            s.PongReceived: self._pong,
            s.BreakerReported: self._breaker,
        }

    def _activity(self, agent: Agent, signal: s.ActivitySeen, now: float) -> None:
        """A sign of life and no more; output is the progress of a program watched from outside, and any other
        activity counts as output."""
        if signal.kind in TURNS:
            self.acted(agent, now)
        if signal.kind in (REPETITION, REPEATED_ERROR):
            self._repeats(agent, signal, now)
        elif signal.kind == OUTPUT or (agent.work is not None and agent.work.output_at is not None):
            work = self._begin(agent, now)
            work.output_at, work.repeated = now, ""
            self._settle_stall(agent, now)

    def _repeats(self, agent: Agent, signal: s.ActivitySeen, now: float) -> None:
        work = self._begin(agent, now)
        if work.output_at is None:
            work.output_at = now
        work.repeated = clean(signal.note, LINE_MAX) or signal.kind
        work.repeats_error = signal.kind == REPEATED_ERROR
        self._settle_stall(agent, now)

    def heated(self, agent: Agent, work: Work, cpu_percent: float, now: float) -> None:
        """How much CPU it uses now; we judge it only together with its output."""
        cpu_level = stall.cpu_level_of(cpu_percent, self._context.policy(agent).stall)
        if cpu_level is not work.cpu_level:
            work.cpu_level, work.cpu_level_at = cpu_level, now
            self._settle_stall(agent, now)

    def _tool_started(self, agent: Agent, signal: s.ToolStarted, now: float) -> None:
        self.acted(agent, now)
        self._call(agent, signal.call_id, signal.tool, signal.bound, now, args_digest=signal.args_digest)

    def _model_started(self, agent: Agent, signal: s.ModelStarted, now: float) -> None:
        self._call(agent, signal.call_id, MODEL_CALL, signal.bound, now)

    def _call(
        self,
        agent: Agent,
        call_id: str,
        what: str,
        bound: float | None,
        now: float,
        *,
        said: bool = False,
        args_digest: str = "",
    ) -> None:
        limit = self._context.policy(agent).stall.call_max
        call = Call(what, now, limit if bound is None else bound, said, args_digest)
        self._begin(agent, now).begin_call(call_id, call)
        self._settle_stall(agent, now)

    def _tool_finished(self, agent: Agent, signal: s.ToolFinished, now: float) -> None:
        work = self._begin(agent, now)
        if work.is_told_again(signal.call_id, now):
            return
        call = work.end_call(signal.call_id, now, self._context.awareness.lapsed)
        if call is not None and not signal.args_digest:
            signal = replace(signal, args_digest=call.args_digest)  # They were told when it began.
        told_now = signal.ended_at is None
        slept_for = self._context.awareness.lapsed(work.tool_at, now) if told_now and work.tool_at else 0.0
        work.repeats = work.repeats + 1 if signal.tool == work.last_tool else 1
        work.last_tool, work.tool_at = signal.tool, now
        work.tool_calls += 1
        if signal.ok:
            self.succeeded(agent, now)
        else:
            self._erred(agent, f"{signal.tool}: {signal.error or 'failed'}", signal.error_kind, now)
        if agent.call_history is None:
            agent.call_history = CallHistory()
        truce_until = self._truce_until(agent) if told_now else 0.0
        found = looping.observe(
            agent.call_history,
            signal,
            self._context.policy(agent).looping,
            _ended_at(signal, now),
            slept_for,
            truce_until,
        )
        self._settle_loop(agent, found, now)
        self._settle_stall(agent, now)

    def told_of_call(self, agent: Agent, work: Work, told: str, now: float) -> None:
        """A beat names another tool call than the last one. Only a time of the call starts the clock: an agent that
        sends just the tool's name may use the same tool all day."""
        work.tool_told = told
        if work.tool_at is not None or told[:4].isdecimal():
            work.tool_at = now
            self._settle_stall(agent, now)

    def acted(self, agent: Agent, now: float) -> None:
        """The agent did something, or a human took a turn: its model calls so far were not mere talk."""
        call_history = agent.call_history
        if call_history is not None and call_history.talk:
            call_history.talk = 0
            if agent.findings:
                self._settle_loop(
                    agent, looping.holding(call_history, self._context.policy(agent).looping), now
                )

    def _settle_loop(self, agent: Agent, found: Finding | None, now: float) -> None:
        if found is None and not agent.findings:
            return
        before = agent.finding(Kind.LOOPING)
        self._context.judge.settle(agent, Kind.LOOPING, found, now)
        if (
            found is not None
            and found.numbers.get("people")
            and not (before and before.numbers.get("people"))
        ):
            self._context.outbox.fact(NeedsHuman(now, agent.id, "looping", found.text))

    def _model_finished(self, agent: Agent, signal: s.ModelFinished, now: float) -> None:
        work = self._begin(agent, now)
        if work.is_told_again(signal.call_id, now):
            return
        call = work.end_call(signal.call_id, now, self._context.awareness.lapsed)
        if signal.call_id != s.TOKENS_ONLY:
            self._thought(agent, call, signal, now)
        if signal.context_window > 0:
            erring_policy = self._context.policy(agent).erring
            found = context.used(work, signal.context_tokens, signal.context_window, erring_policy, now)
            self._context.judge.settle(agent, Kind.CONTEXT, found, now)
        if agent.spending is None:
            agent.spending = Spending()
        if not agent.spending.by_beat:
            tokens, cost = max(0, signal.tokens_in) + max(0, signal.tokens_out), max(0.0, signal.cost_usd)
            agent.spending.reported += tokens  # This part of a beat's first total is already counted.
            agent.spending.reported_cost += cost
            self.spend(agent, agent.spending, tokens, cost, now, _ended_at(signal, now))
        if not signal.ok:
            self._erred(agent, "A model call failed", signal.error_kind, now)
        self._settle_stall(agent, now)

    def _truce_until(self, agent: Agent) -> float:
        """Signals that arrive before we see again were delayed together with our canary."""
        aware = self._context.awareness
        return NEVER if aware.blind_to(agent) else aware.truce_until

    def _thought(self, agent: Agent, call: Call | None, signal: s.ModelFinished, now: float) -> None:
        if agent.call_history is None:
            agent.call_history = CallHistory(acts=agent.work is not None and agent.work.tool_calls > 0)
        call_history, policy = agent.call_history, self._context.policy(agent).looping
        ended_at = _ended_at(signal, now)
        started_at = call.started_at if call is not None and call.what == MODEL_CALL else None
        if started_at is not None and now < max(call_history.backlog_until, self._truce_until(agent)):
            started_at = now  # It waited for us: when it ended, and how long the model thought, nobody knows.
        if started_at is None and signal.duration_s is not None:
            started_at = ended_at - signal.duration_s
        looping.thought(call_history, started_at, signal.ok, ended_at)
        if call_history.talk >= policy.talk_notice:
            self._settle_loop(agent, looping.holding(call_history, policy), now)

    def _checkpoint(self, agent: Agent, signal: s.CheckpointSaved, now: float) -> None:
        context = self._context
        if signal.task_id is not None and signal.task_id != agent.task_id:
            self.take_task(agent, signal.task_id, now)
        self._begin(agent, now).checkpoint_id = signal.checkpoint_id
        saved = Checkpoint(signal.checkpoint_id, signal.parent_id, signal.digest, now, signal.size)
        lineage = context.lineage(agent)
        context.respawns.saved(lineage, saved, context.policy(agent).respawn)
        context.beliefs.note_saver(lineage)
        self._came_forward(agent, now)

    def _progress(self, agent: Agent, signal: s.ProgressMade, now: float) -> None:
        if signal.task_id is not None and signal.task_id != agent.task_id:
            self.take_task(agent, signal.task_id, now)
        self._came_forward(agent, now)
        if (task := self._own_task(agent)) is not None:
            task.progress_at = now
            if signal.percent is not None:
                task.percent = min(100.0, max(0.0, signal.percent))
            task.note = signal.note[:NOTE_MAX]

    def _came_forward(self, agent: Agent, now: float) -> None:
        work = self._begin(agent, now)
        work.checkpoint_at, work.excused, work.unheard = now, 0.0, 0.0
        self.acted(agent, now)
        self.progressed(agent, now)
        self._settle_stall(agent, now)

    def _error(self, agent: Agent, signal: s.ErrorReported, now: float) -> None:
        if signal.recoverable:
            self._erred(agent, signal.message, None, now)
        else:
            if agent.outcomes is None:
                agent.outcomes = Outcomes()
            erring.gave_up(agent.outcomes, signal.message, now)
            self._settle_errors(agent, agent.outcomes, now)

    def _doing(self, agent: Agent, signal: s.DoingChanged, now: float) -> None:
        if Doing.WAITING_FOR_HUMAN in (agent.doing, signal.doing):
            self.acted(agent, now)
        self.do(agent, signal.doing, signal.until, signal.note, now)
        if signal.note:
            self.progressed(agent, now)

    def do(self, agent: Agent, doing: Doing, until: float | None, note: str, now: float) -> None:
        """The agent does something else now."""
        if doing is Doing.RATE_LIMITED and until is not None and until <= now:
            doing, until = Doing.WORKING, None  # A rate limit whose own end has passed is none.
            if agent.doing is doing:
                return
        was, agent.doing, agent.doing_until = agent.doing, doing, NEVER
        is_news = was is not doing or bool(
            note and not agent.doing_note
        )  # A beat may come before what it waits for.
        if was is not doing:
            agent.doing_from, agent.doing_note = now, note
        elif note:
            agent.doing_note = note
        limit = self._context.policy(agent).stall.call_max
        if agent.work is not None:
            agent.work.end_call(DECLARED, now, self._context.awareness.lapsed)
            if was not in stall.AT_WORK:
                agent.work.since = now
        if doing is Doing.BUSY:
            bound = limit if until is None else max(0.0, until - now)
            self._call(
                agent, DECLARED, note or "A declared long operation", bound, now, said=until is not None
            )
        elif doing is Doing.RATE_LIMITED:
            agent.doing_from = now
            agent.doing_until = now + limit if until is None else max(now, until)
        elif doing is Doing.WAITING_FOR_HUMAN and is_news:
            text = f"{agent.id} waits for a human{': ' + note if note else '.'}"
            self._context.outbox.fact(NeedsHuman(now, agent.id, "waiting_for_human", text))
        elif doing is Doing.IDLE:
            self.rest(agent, now)
        elif doing is Doing.WORKING:
            self._begin(agent, now)
        self._context.ladder.left_alone(agent)
        self._settle_stall(agent, now)

    def _pong(self, agent: Agent, signal: s.PongReceived, now: float) -> None:
        if signal.task_id is not None and not agent.beats:  # Who beats says it there, and in order.
            self.take_task(agent, signal.task_id, now)
        if signal.status:
            self.say_status(agent, signal.status, now)
            self.progressed(agent, now)

    def say_status(self, agent: Agent, status: str, now: float) -> None:
        """The agent reports its status. "busy" gets a longer silence (`detectors/silence.py`)."""
        agent.status = status
        if status in AILING_WORDS:
            text = f"It says itself that it is {status}."
            found = Finding(Kind.SELF_REPORTED, now, Severity.DEGRADED, text, {"status": status})
            self._context.judge.note(agent, found, now)
        else:
            self._context.judge.clear(agent, Kind.SELF_REPORTED, now)

    def _breaker(self, agent: Agent, signal: s.BreakerReported, now: float) -> None:
        known = self._context.beliefs.breakers.setdefault(agent.id, {})
        breaker = known.get(signal.name)
        if breaker is None:
            if len(known) >= BREAKERS_MAX:
                return
            breaker = known[signal.name] = ReportedBreaker(s.BreakerState.CLOSED, since=now)
        breaker.failures, breaker.half_open_at = signal.failures, signal.until
        if breaker.state is signal.state:
            return
        was, breaker.state, breaker.since = breaker.state, signal.state, now
        self._context.outbox.fact(BreakerFlip(now, agent.id, signal.name, was, signal.state))
        if agent.outcomes is None:
            agent.outcomes = Outcomes()
        erring.tripped(agent.outcomes, (one.state for one in known.values()), now)
        self._settle_errors(agent, agent.outcomes, now)

    def take_task(self, agent: Agent, task_id: str, now: float) -> None:
        context = self._context
        if agent.task_id == task_id:
            self._begin(agent, now)  # A new life may continue the last one's task.
            return
        agent.task_id = task_id
        self.rest(agent, now)
        self._begin(agent, now)
        if agent.spending is not None:
            spending.new_task(agent.spending)
        lineage = context.beliefs.lineages.get(agent.id)
        if lineage is not None:
            context.beliefs.forget_saver(lineage)
            context.respawns.new_task(lineage, task_id)

    def rest(self, agent: Agent, now: float) -> None:
        """The work is over or other work begins: findings about it no longer hold."""
        agent.call_history = None
        if agent.work is not None:
            was = agent.work
            agent.work = Work(
                now, checkpoint_id=was.checkpoint_id, tool_calls=was.tool_calls, tool_told=was.tool_told
            )
        if agent.outcomes is not None:
            agent.outcomes = Outcomes(reported=agent.outcomes.reported, heard=agent.outcomes.heard)
        for finding in agent.findings:
            if finding.kind in REST:
                self._context.judge.clear(agent, finding.kind, now)

    def progressed(self, agent: Agent, now: float) -> None:
        """Progress or an explanation: it counts for the agent's task."""
        if (task := self._own_task(agent)) is not None:
            self._context.changes.tasks[task.id] = None
            self._context.tasks.progressed(task, agent, now)

    def _own_task(self, agent: Agent) -> Task | None:
        """The task it works on and is expected to finish: another one's word about it does not count."""
        task = self._context.beliefs.tasks.get(agent.task_id) if agent.task_id else None
        return task if task is not None and task.agent_id == agent.id else None

    def spend(
        self,
        agent: Agent,
        spent: Spending,
        tokens: int,
        cost: float,
        now: float,
        used_at: float | None = None,
    ) -> None:
        """It used so much, at a moment that may be a while ago. A minute that has been judged is not opened again."""
        policy = self._context.policy(agent).spending
        calls = 0 if agent.work is None else agent.work.tool_calls
        spent_at = now if used_at is None else max(used_at, spent.minute_at)
        history = agent.call_history
        waits = history is not None and brought_nothing_new(history)
        spending.spend(spent, tokens, cost, policy, spent_at, calls, waits=waits)
        if tokens and agent.work is not None:
            agent.work.tokens_at = now
            self._settle_stall(agent, now)
        self._context.judge.settle(agent, Kind.SPENDING, spending.examine(spent, policy, now), now)

    def succeeded(self, agent: Agent, now: float) -> None:
        if agent.outcomes is None:
            agent.outcomes = Outcomes()
        erring.succeeded(agent.outcomes, self._context.policy(agent).erring, now)
        if agent.trend is not None:
            agent.trend.calls += 1
        if agent.findings or agent.outcomes.bits:
            self._settle_errors(agent, agent.outcomes, now)

    def _erred(self, agent: Agent, what: str, error_kind: str | None, now: float) -> None:
        """Count an error that was reported by itself; errors in beats are part of their total."""
        if agent.outcomes is None:
            agent.outcomes = Outcomes()
        agent.outcomes.heard += 1
        self.failed(agent, what, error_kind, now)

    def failed(self, agent: Agent, what: str, error_kind: str | None, now: float) -> None:
        if agent.outcomes is None:
            agent.outcomes = Outcomes()
        policy = self._context.policy(agent)
        erring.failed(agent.outcomes, what, error_kind, policy.erring, now)
        if agent.trend is None and policy.forecast.enabled:
            agent.trend = forecast.begin(policy, agent.beats, agent.heard_at, now)
        if agent.trend is not None:
            agent.trend.calls += 1
            agent.trend.failures += 1
        self._settle_errors(agent, agent.outcomes, now)

    def _settle_errors(self, agent: Agent, outcomes: Outcomes, now: float) -> None:
        found = erring.examine(outcomes, self._context.policy(agent).erring, now)
        self._context.judge.settle(agent, Kind.ERRORS, found, now)

    def _settle_stall(self, agent: Agent, now: float) -> None:
        if agent.work is not None:
            self._watching.judge_stall(agent, now)

    def _begin(self, agent: Agent, now: float) -> Work:
        if agent.work is None:
            agent.work = Work(now, saves=self._saved_before(agent))
        return agent.work

    def _saved_before(self, agent: Agent) -> bool:
        """Whether an earlier life of this agent saved checkpoints of its task."""
        lineage = self._context.beliefs.lineages.get(agent.id)
        return (
            lineage is not None
            and agent.task_id is not None
            and lineage.task_id == agent.task_id
            and bool(lineage.chain)
        )


def _ended_at(signal: s.ToolFinished | s.ModelFinished, now: float) -> float:
    """When a call ended: now, or before, if it is reported afterwards."""
    return now if signal.ended_at is None else min(now, signal.ended_at)
