"""Hearing: what each signal changes.

Three questions before anything is believed. Who is it about: a known agent, or a voice that may introduce
itself? Which life of it: the current one, a new one, or a retired one, which is refused? Is it a sign of
life: only the agent's own voice is. Then one small method per signal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.agent import (
    CALLS_MAX,
    NEVER,
    RETIRED_MAX,
    Agent,
    Call,
    Case,
    Outcomes,
    Spending,
    Work,
)
from lifesigns.core.claims import Hold
from lifesigns.core.desk import Desk
from lifesigns.core.detectors import erring, freeze, looping, overload, silence, spending, stall
from lifesigns.core.effects import (
    BreakerFlip,
    Finding,
    Intervention,
    Kind,
    NeedsHuman,
    Rung,
    Severity,
    Stage,
    StopStranger,
)
from lifesigns.core.health import Cause, Doing, Health
from lifesigns.core.messages import Letter
from lifesigns.core.policy import MINUTE
from lifesigns.core.respawn import Checkpoint
from lifesigns.core.tasks import Task
from lifesigns.core.watching import CONNECTION_CLOSED, Watching
from lifesigns.errors import PolicyError

OWN_VOICE: Final = frozenset(
    {
        s.BeatReceived,
        s.ActivitySeen,
        s.ToolStarted,
        s.ToolFinished,
        s.ModelStarted,
        s.ModelFinished,
        s.CheckpointSaved,
        s.ProgressMade,
        s.ErrorReported,
        s.DoingChanged,
        s.PongReceived,
        s.NudgeSeen,
        s.NudgeAnswered,
        s.TaskDone,
        s.TaskFailed,
        s.TaskClaimed,
        s.TaskReleased,
        s.MessageSent,
        s.MessageAcked,
        s.BreakerReported,
        s.AgentLeft,
    }
)
"""What only the agent itself can have said: signs of life, which may also introduce it."""

INTRODUCES: Final = OWN_VOICE - {s.AgentLeft} | {s.AgentRegistered, s.TaskAssigned}

RETIRED: Final = "retired incarnation"

DECLARED: Final = "(declared)"
"""The call id of what an agent declares with `busy`."""

STRAYS_MAX: Final = 3
LEAP_MAX: Final = 1_000_000
"""A sequence may leap by the beats of a long outage, not by more than any outage could have held."""

BREAKERS_MAX: Final = 64
CLAIMS_MAX: Final = 256
TASKS_MAX: Final = 100_000

REST: Final = frozenset({*stall.KINDS, Kind.LOOPING, Kind.ERRORS, Kind.TASK_STALLED})
"""Findings about work; they end with it."""


class Hearing:
    """Believes signals, or refuses them."""

    def __init__(self, desk: Desk, watching: Watching) -> None:
        self._desk = desk
        self._watching = watching
        self._handlers: Mapping[type, Callable[[Agent, Any, float], None]] = {
            s.BeatReceived: self._beat,
            s.AgentRegistered: self._registered,
            s.ActivitySeen: self._nothing,
            s.ToolStarted: self._tool_started,
            s.ToolFinished: self._tool_finished,
            s.ModelStarted: self._model_started,
            s.ModelFinished: self._model_finished,
            s.CheckpointSaved: self._checkpoint,
            s.ProgressMade: self._progress,
            s.ErrorReported: self._error,
            s.DoingChanged: self._doing,
            s.PongReceived: self._pong,
            s.NudgeSeen: self._nudge_seen,
            s.NudgeAnswered: self._nudge_answered,
            s.TaskAssigned: self._task_assigned,
            s.TaskDone: self._task_done,
            s.TaskFailed: self._task_failed,
            s.TaskClaimed: self._task_claimed,
            s.TaskReleased: self._task_released,
            s.MessageSent: self._message_sent,
            s.MessageAcked: self._message_acked,
            s.BreakerReported: self._breaker,
            s.AgentLeft: self._left,
            s.ProcessExited: self._exited,
            s.ConnectionClosed: self._connection_closed,
            s.PeerHeard: self._peer_heard,
            s.NudgeDelivered: self._nudge_delivered,
            s.NudgeFailed: self._nudge_failed,
            s.EscalationDecided: self._decided,
            s.TerminationDone: self._terminated,
            s.TerminationFailed: self._termination_failed,
            s.CheckpointVerified: self._verified,
            s.RespawnStarted: self._respawn_started,
            s.RespawnFailed: self._respawn_failed,
            s.NudgeRequested: self._nudge_requested,
            s.EscalationRequested: self._escalation_requested,
            s.TerminationRequested: self._termination_requested,
            s.PauseRequested: self._pause,
            s.ResumeRequested: self._resume,
            s.ClearRequested: self._clear,
            s.RecoveryRequested: self._recovery_requested,
        }

    def hear(self, signal: s.AgentSignal | s.BeatReceived, now: float) -> Agent | None:
        """Believe a signal or refuse it; the agent it was about, if it was believed."""
        agent = self._address(signal, now)
        if agent is None:
            return None
        if type(signal) in OWN_VOICE:
            self._sign_of_life(agent, now)
        self._handlers[type(signal)](agent, signal, now)
        return agent

    # --- who is it, and which life of it --------------------------------------------------------------

    def _address(self, signal: Any, now: float) -> Agent | None:
        agent = self._desk.beliefs.agents.get(signal.agent_id)
        if agent is None:
            if type(signal) not in INTRODUCES:
                self._desk.refuse(signal.agent_id, "unknown agent", now)
                return None
            return self._meet(signal, now)
        if agent.poisoned and type(signal) is not s.ClearRequested:
            return None
        return agent if self._admit(agent, signal, now) else None

    def _meet(self, signal: Any, now: float) -> Agent | None:
        """A new voice: take it in, if there is room."""
        desk, source = self._desk, getattr(signal, "source", "")
        full = desk.fleet.may_join(source, len(desk.beliefs.agents))
        if full:
            desk.refuse(signal.agent_id, full, now, key=f"source {source}")
            return None
        agent = Agent(
            signal.agent_id,
            desk.beliefs.next_order(),
            role=getattr(signal, "role", None),
            host=getattr(signal, "host", None),
            source=source,
            incarnation=signal.incarnation,
            since=now,
            heard_at=now,
        )
        agent.policy_no = desk.book.number(agent.id, agent.role)
        agent.interval = desk.policy(agent).silence.interval
        desk.beliefs.agents[agent.id] = agent
        desk.fleet.join(agent)
        return agent

    def _admit(self, agent: Agent, signal: Any, now: float) -> bool:
        """Whether the signal belongs to the agent's current life, or begins a new one."""
        life, voice = signal.incarnation, type(signal)
        own = voice in OWN_VOICE
        begins = own or voice is s.AgentRegistered
        if life is not None and life in agent.retired:
            return self._stranger(agent, life, now)
        if life is not None and agent.incarnation is not None and life != agent.incarnation:
            if not begins:
                return self._refuse(agent, "unknown incarnation", now)
            self._reborn(agent, life, now)
        elif voice is s.BeatReceived and agent.seq >= 0 and (stray := self._stray(agent, signal)):
            return self._refuse(agent, stray, now)
        elif begins and _ended(agent):
            if own and (life is not None or now - agent.since < self._desk.policy(agent).silence.timeout):
                return self._refuse(agent, "this life has ended", now)
            self._reborn(agent, life, now)
        elif agent.incarnation is None:
            agent.incarnation = life
        return True

    def _stray(self, agent: Agent, beat: s.BeatReceived) -> str:
        """Why a beat of the same life does not follow the one before it; empty if it does.

        Without an incarnation a restarted sender counts from the beginning again. Its clock tells it from a
        replay; without one, a third beat in a row that counts upwards does.
        """
        seq = beat.seq
        if seq is None or agent.seq < seq <= agent.seq + LEAP_MAX:
            agent.strays = 0
            return ""
        if beat.incarnation is None and seq <= agent.seq:
            newer = beat.sent_at is not None and agent.sent_at is not None and beat.sent_at > agent.sent_at
            agent.strays += 1
            if newer or agent.strays >= STRAYS_MAX:
                agent.seq, agent.strays = seq - 1, 0
                return ""
        return "replayed, out of order or leaping sequence"

    def _stranger(self, agent: Agent, life: str, now: float) -> bool:
        """A retired life still speaks. If we replaced it, it is told so."""
        if agent.respawned:
            complaint = self._desk.beliefs.complaints.get(f"{agent.id} {RETIRED}")
            if complaint is None or now - complaint.told_at >= MINUTE:
                self._desk.outbox.order(StopStranger, agent, now, reason=f"{life} was replaced")
        return self._refuse(agent, RETIRED, now)

    def _refuse(self, agent: Agent, reason: str, now: float) -> bool:
        self._desk.refuse(agent.id, reason, now)
        return False

    def _reborn(self, agent: Agent, life: str | None, now: float) -> None:
        """A new life of a known agent: nothing of the old one is held against it."""
        desk = self._desk
        if agent.incarnation is not None:
            agent.retired = (*agent.retired, agent.incarnation)[-RETIRED_MAX:]
        desk.ladder.drop(agent, now, "a new life began")
        self._let_go(agent, now, "its holder was restarted")
        desk.judge.clear_all(agent, now)
        desk.judge.flip(agent, Health.STARTING, "a new life began", now)
        agent.incarnation, agent.seq, agent.sent_at, agent.strays = life, -1, None, 0
        agent.beats = agent.overloaded = 0
        agent.suspicion = agent.work = agent.tape = agent.outcomes = None
        agent.respawned = False
        agent.doing, agent.doing_until = Doing.UNKNOWN, NEVER
        if agent.spending is not None:
            agent.spending.by_beat, agent.spending.reported, agent.spending.reported_cost = False, 0, 0.0

    def _sign_of_life(self, agent: Agent, now: float) -> None:
        desk = self._desk
        desk.awareness.heard_at = now
        agent.heard_at = now
        if agent.suspicion is not None:
            agent.suspicion = None
            desk.awareness.refute(now, desk.fleet.size, desk.limits)
        if agent.findings:
            desk.judge.clear(agent, Kind.SILENCE, now)
            desk.judge.clear(agent, Kind.NEVER_STARTED, now)
        if agent.health is Health.STARTING:
            self._first_word(agent, now)

    def _first_word(self, agent: Agent, now: float) -> None:
        desk = self._desk
        agent.started_at = now
        lineage = desk.beliefs.lineages.get(agent.id)
        if lineage is not None:
            agent.respawned = desk.respawns.reborn(lineage, desk.policy(agent).respawn, now)
        desk.judge.hear(agent, now)

    # --- the agent's own voice ------------------------------------------------------------------------

    def _nothing(self, agent: Agent, signal: Any, now: float) -> None:
        """A sign of life and nothing else."""

    def _beat(self, agent: Agent, beat: s.BeatReceived, now: float) -> None:
        desk = self._desk
        receive(agent, beat, now)
        if (beat.role or agent.role) != agent.role or (beat.host or agent.host) != agent.host:
            self._moved(agent, beat.role, beat.host)
        provider = beat.metadata.get("provider") if beat.metadata else None
        if provider is not None and provider != agent.provider:
            desk.fleet.regroup(agent, agent.host, provider[:128])
        task = beat.task_id or (beat.tasks[0] if beat.tasks else None)
        if task is not None and task != agent.task_id:
            self._take_task(agent, task, now)
        if beat.doing is not None and beat.doing is not agent.doing:
            self._do(agent, beat.doing, beat.until, "", now)
        if beat.token_count is not None or beat.cost_usd is not None:
            self._totals(agent, beat, now)
        if beat.error_count is not None:
            self._error_total(agent, beat.error_count, now)
        if beat.loop_lag_ms is not None and not agent.busy:
            found = freeze.examine(beat.loop_lag_ms, desk.policy(agent).freeze, now)
            if found is not None:
                desk.judge.note(agent, found, now, Cause.FREEZE)
            else:
                desk.judge.clear(agent, Kind.FREEZE, now)
        self._load(agent, beat, now)

    def _moved(self, agent: Agent, role: str | None, host: str | None) -> None:
        desk = self._desk
        if role is not None and role != agent.role:
            agent.role = role
            own = desk.beliefs.own_policies.get(agent.id)
            agent.policy_no = desk.book.number(agent.id, role, own)
        if host is not None and host != agent.host:
            desk.fleet.regroup(agent, host, agent.provider)

    def _load(self, agent: Agent, beat: s.BeatReceived, now: float) -> None:
        policy = self._desk.policy(agent).overload
        found = overload.examine(beat.cpu_percent, beat.memory_mb, policy, now)
        if found is None:
            agent.overloaded = 0
            self._desk.judge.clear(agent, Kind.OVERLOAD, now)
        else:
            agent.overloaded += 1
            if agent.overloaded >= policy.beats:
                known = agent.finding(Kind.OVERLOAD)
                if known is not None:
                    found = replace(found, since=known.since)
                self._desk.judge.note(agent, found, now)

    def _totals(self, agent: Agent, beat: s.BeatReceived, now: float) -> None:
        """A beat's totals; what was used since the last one is the difference."""
        spent = agent.spending
        if spent is None:
            agent.spending = Spending(
                by_beat=True, reported=beat.token_count or 0, reported_cost=beat.cost_usd or 0.0
            )
            return
        spent.by_beat = True
        tokens = max(0, (beat.token_count or 0) - spent.reported)
        cost = max(0.0, (beat.cost_usd or 0.0) - spent.reported_cost)
        if beat.token_count is not None:
            spent.reported = beat.token_count
        if beat.cost_usd is not None:
            spent.reported_cost = beat.cost_usd
        self._spend(agent, spent, tokens, cost, now)

    def _spend(self, agent: Agent, spent: Spending, tokens: int, cost: float, now: float) -> None:
        policy = self._desk.policy(agent).spending
        spending.spend(spent, tokens, cost, policy, now)
        if tokens and agent.work is not None:
            agent.work.tokens_at = now
            if agent.findings:
                self._desk.judge.clear(agent, Kind.NO_TOKENS, now)
        self._desk.judge.settle(agent, Kind.SPENDING, spending.examine(spent, policy, now), now)

    def _error_total(self, agent: Agent, count: int, now: float) -> None:
        """A beat's error count: each beat with new ones is a failure, each without a success."""
        outcomes = agent.outcomes
        if outcomes is None:
            agent.outcomes = Outcomes(reported=count)
            return
        if count > outcomes.reported:
            what = f"{count - outcomes.reported} errors since the last beat"
            self._failed(agent, what, None, now)
        elif outcomes.consecutive or outcomes.bits:
            self._succeeded(agent, now)
        outcomes.reported = count

    def _registered(self, agent: Agent, signal: s.AgentRegistered, now: float) -> None:
        desk = self._desk
        if signal.policy:
            try:
                agent.policy_no = desk.book.number(agent.id, signal.role or agent.role, signal.policy)
            except PolicyError as error:
                desk.refuse(agent.id, f"policy {error}", now)
            else:
                desk.beliefs.own_policies[agent.id] = dict(signal.policy)
        self._moved(agent, signal.role, signal.host)
        if agent.health is Health.STARTING and signal.grace is not None:
            agent.doing_until = NEVER
            agent.grace = signal.grace
        if signal.task_id is not None:
            self._take_task(agent, signal.task_id, now)

    def _tool_started(self, agent: Agent, signal: s.ToolStarted, now: float) -> None:
        self._call(agent, signal.call_id, signal.tool, signal.bound, now)

    def _model_started(self, agent: Agent, signal: s.ModelStarted, now: float) -> None:
        self._call(agent, signal.call_id, "A model call", signal.bound, now)

    def _call(self, agent: Agent, call_id: str, what: str, bound: float | None, now: float) -> None:
        work = self._work(agent, now)
        if len(work.calls) >= CALLS_MAX:
            del work.calls[next(iter(work.calls))]
        limit = self._desk.policy(agent).stall.call_max
        work.calls[call_id] = Call(what, now, limit if bound is None else bound)
        self._settle_stall(agent, now)

    def _tool_finished(self, agent: Agent, signal: s.ToolFinished, now: float) -> None:
        work = self._work(agent, now)
        work.calls.pop(signal.call_id, None)
        work.repeats = work.repeats + 1 if signal.tool == work.last_tool else 1
        work.last_tool, work.tool_at = signal.tool, now
        work.tool_calls += 1
        if signal.ok:
            self._succeeded(agent, now)
        else:
            self._failed(agent, f"{signal.tool}: {signal.error or 'failed'}", signal.error_kind, now)
        if agent.tape is None:
            agent.tape = looping.Tape()
        found = looping.observe(agent.tape, signal, self._desk.policy(agent).looping, now)
        self._settle_loop(agent, found, now)
        self._settle_stall(agent, now)

    def _settle_loop(self, agent: Agent, found: Finding | None, now: float) -> None:
        before = agent.finding(Kind.LOOPING)
        self._desk.judge.settle(agent, Kind.LOOPING, found, now)
        if found is not None and found.numbers.get("people") and not (before and before.numbers.get("people")):
            self._desk.outbox.fact(NeedsHuman(now, agent.id, "looping", found.text))

    def _model_finished(self, agent: Agent, signal: s.ModelFinished, now: float) -> None:
        work = self._work(agent, now)
        work.calls.pop(signal.call_id, None)
        if agent.spending is None:
            agent.spending = Spending()
        if not agent.spending.by_beat:
            tokens = max(0, signal.tokens_in) + max(0, signal.tokens_out)
            self._spend(agent, agent.spending, tokens, max(0.0, signal.cost_usd), now)
        if not signal.ok:
            self._failed(agent, "A model call failed", signal.error_kind, now)
        self._settle_stall(agent, now)

    def _checkpoint(self, agent: Agent, signal: s.CheckpointSaved, now: float) -> None:
        desk = self._desk
        if signal.task_id is not None and signal.task_id != agent.task_id:
            self._take_task(agent, signal.task_id, now)
        self._work(agent, now).checkpoint_id = signal.checkpoint_id
        saved = Checkpoint(signal.checkpoint_id, signal.parent_id, signal.digest, now, signal.size)
        desk.respawns.saved(desk.lineage(agent), saved, desk.policy(agent).respawn)
        self._came_forward(agent, now)

    def _progress(self, agent: Agent, signal: s.ProgressMade, now: float) -> None:
        if signal.task_id is not None and signal.task_id != agent.task_id:
            self._take_task(agent, signal.task_id, now)
        self._came_forward(agent, now)

    def _came_forward(self, agent: Agent, now: float) -> None:
        self._work(agent, now).checkpoint_at = now
        self._word(agent, now)
        self._settle_stall(agent, now)

    def _error(self, agent: Agent, signal: s.ErrorReported, now: float) -> None:
        if signal.recoverable:
            self._failed(agent, signal.message, None, now)
        else:
            if agent.outcomes is None:
                agent.outcomes = Outcomes()
            erring.gave_up(agent.outcomes, signal.message, now)
            self._settle_errors(agent, agent.outcomes, now)

    def _doing(self, agent: Agent, signal: s.DoingChanged, now: float) -> None:
        self._do(agent, signal.doing, signal.until, signal.note, now)
        if signal.note:
            self._word(agent, now)

    def _do(self, agent: Agent, doing: Doing, until: float | None, note: str, now: float) -> None:
        """The agent does something else now."""
        was, agent.doing, agent.doing_until = agent.doing, doing, NEVER
        limit = self._desk.policy(agent).stall.call_max
        if agent.work is not None:
            agent.work.calls.pop(DECLARED, None)
            if was not in stall.AT_WORK:
                agent.work.since = now
        if doing is Doing.BUSY:
            bound = limit if until is None else max(0.0, until - now)
            self._call(agent, DECLARED, note or "A declared long operation", bound, now)
        elif doing is Doing.RATE_LIMITED:
            agent.doing_until = now + limit if until is None else max(now, until)
        elif doing is Doing.WAITING_FOR_HUMAN and was is not doing:
            text = f"{agent.id} waits for a human{': ' + note if note else '.'}"
            self._desk.outbox.fact(NeedsHuman(now, agent.id, "waiting_for_human", text))
        elif doing is Doing.IDLE:
            self._rest(agent, now)
        elif doing is Doing.WORKING:
            self._work(agent, now)
        self._settle_stall(agent, now)

    def _pong(self, agent: Agent, signal: s.PongReceived, now: float) -> None:
        if signal.status:
            self._word(agent, now)

    def _nudge_seen(self, agent: Agent, signal: s.NudgeSeen, now: float) -> None:
        self._desk.ladder.reached(agent, signal.nudge_id, Stage.SEEN, now)

    def _nudge_answered(self, agent: Agent, signal: s.NudgeAnswered, now: float) -> None:
        policy = self._desk.policy(agent).ladder
        self._desk.ladder.answered(agent, signal.nudge_id, signal.answer, signal.note, policy, now)
        self._word(agent, now)

    def _left(self, agent: Agent, signal: s.AgentLeft, now: float) -> None:
        self._end(agent, f"left: {signal.reason}" if signal.reason else "left", now)
        lineage = self._desk.beliefs.lineages.get(agent.id)
        if lineage is not None:
            self._desk.respawns.stop(lineage, now)

    def _breaker(self, agent: Agent, signal: s.BreakerReported, now: float) -> None:
        known = self._desk.beliefs.breakers.setdefault(agent.id, {})
        was = known.get(signal.name, s.BreakerState.CLOSED)
        if was is signal.state or (signal.name not in known and len(known) >= BREAKERS_MAX):
            return
        known[signal.name] = signal.state
        self._desk.outbox.fact(BreakerFlip(now, agent.id, signal.name, was, signal.state))
        if agent.outcomes is None:
            agent.outcomes = Outcomes()
        agent.outcomes.breaker_open = s.BreakerState.OPEN in known.values()
        self._settle_errors(agent, agent.outcomes, now)

    # --- tasks, claims, messages ----------------------------------------------------------------------

    def _task_assigned(self, agent: Agent, signal: s.TaskAssigned, now: float) -> None:
        self._take_task(agent, signal.task_id, now)
        tasks = self._desk.beliefs.tasks
        if signal.expected_for is not None and (signal.task_id in tasks or len(tasks) < TASKS_MAX):
            expected_at = now + max(0.0, signal.expected_for)
            order = self._desk.beliefs.next_order()
            task = Task(signal.task_id, agent.id, expected_at, now, order)
            tasks[signal.task_id] = task
            self._desk.deadlines.arm(task, self._desk.tasks.due_at(task, self._desk.policy(agent).task))

    def _task_done(self, agent: Agent, signal: s.TaskDone, now: float) -> None:
        self._close_task(agent, signal.task_id, "its task is done", now)

    def _task_failed(self, agent: Agent, signal: s.TaskFailed, now: float) -> None:
        task = self._desk.beliefs.tasks.get(signal.task_id)
        if task is not None:
            self._desk.tasks.failed(task, signal.reason, now)
        text = f"{agent.id} cannot finish {signal.task_id}: {signal.reason or 'it gave no reason'}"
        self._desk.outbox.fact(NeedsHuman(now, agent.id, "task_failed", text))
        self._close_task(agent, signal.task_id, "its task failed", now)

    def _close_task(self, agent: Agent, task_id: str, reason: str, now: float) -> None:
        desk = self._desk
        task = desk.beliefs.tasks.pop(task_id, None)
        if task is not None:
            task.armed_at = NEVER
        hold = desk.beliefs.holds.get(task_id)
        if hold is not None and hold.agent_id == agent.id:
            self._drop_hold(hold, agent)
            desk.claims.ended(hold, now, reason)
        if agent.task_id == task_id:
            agent.task_id = None
            self._rest(agent, now)
            lineage = desk.beliefs.lineages.get(agent.id)
            if lineage is not None:
                desk.respawns.new_task(lineage, None)

    def _take_task(self, agent: Agent, task_id: str, now: float) -> None:
        desk = self._desk
        if agent.task_id == task_id:
            return
        agent.task_id = task_id
        self._rest(agent, now)
        self._work(agent, now)
        if agent.spending is not None:
            spending.new_task(agent.spending)
        lineage = desk.beliefs.lineages.get(agent.id)
        if lineage is not None:
            desk.respawns.new_task(lineage, task_id)

    def _task_claimed(self, agent: Agent, signal: s.TaskClaimed, now: float) -> None:
        desk, holds = self._desk, self._desk.beliefs.holds
        hold = holds.get(signal.task_id)
        if hold is not None and (hold.agent_id != agent.id or hold.incarnation != agent.incarnation):
            desk.claims.refused(hold, agent.id, now)
            return
        if hold is None:
            if len(agent.claims) >= CLAIMS_MAX:
                desk.refuse(agent.id, f"more than {CLAIMS_MAX} claims", now)
                return
            desk.beliefs.tokens += 1
            hold = Hold(
                signal.task_id,
                agent.id,
                agent.incarnation,
                desk.beliefs.tokens,
                now,
                desk.beliefs.next_order(),
            )
            holds[signal.task_id] = hold
            agent.claims = (*agent.claims, signal.task_id)
            desk.deadlines.arm(hold, desk.claims.due_at(hold, agent, desk.policy(agent).claim))
        desk.claims.granted(hold, now)

    def _task_released(self, agent: Agent, signal: s.TaskReleased, now: float) -> None:
        hold = self._desk.beliefs.holds.get(signal.task_id)
        if hold is None or hold.agent_id != agent.id or hold.token != signal.token:
            self._desk.refuse(agent.id, f"does not hold {signal.task_id} with that token", now)
            return
        self._drop_hold(hold, agent)
        self._desk.claims.ended(hold, now, "given back")

    def _drop_hold(self, hold: Hold, agent: Agent) -> None:
        hold.armed_at = NEVER
        del self._desk.beliefs.holds[hold.task_id]
        agent.claims = tuple(task for task in agent.claims if task != hold.task_id)

    def _let_go(self, agent: Agent, now: float, reason: str) -> None:
        """Release everything a life that ended still holds."""
        for task_id in agent.claims:
            hold = self._desk.beliefs.holds[task_id]
            self._drop_hold(hold, agent)
            self._desk.claims.release(hold, agent, now, reason)

    def _message_sent(self, agent: Agent, signal: s.MessageSent, now: float) -> None:
        desk, letters = self._desk, self._desk.beliefs.letters
        policy = desk.policy(agent).message
        if signal.message_id in letters:
            return
        if len(letters) >= policy.open_max:
            desk.refuse(agent.id, f"more than {policy.open_max} open messages", now)
            return
        letter = Letter(
            signal.message_id, agent.id, signal.to, signal.priority, now, desk.beliefs.next_order()
        )
        letters[letter.id] = letter
        desk.deadlines.arm(letter, desk.messages.due_at(letter, policy))

    def _message_acked(self, agent: Agent, signal: s.MessageAcked, now: float) -> None:
        letter = self._desk.beliefs.letters.get(signal.message_id)
        if letter is not None and letter.to == agent.id:
            letter.armed_at = NEVER
            del self._desk.beliefs.letters[letter.id]
        elif letter is not None:
            self._desk.refuse(agent.id, "acknowledged a message to somebody else", now)

    # --- the world ------------------------------------------------------------------------------------

    def _exited(self, agent: Agent, signal: s.ProcessExited, now: float) -> None:
        desk = self._desk
        if agent.health is Health.TERMINATED or (agent.case and agent.case.rung is Rung.TERMINATE):
            return  # We wanted it to end; the outcome of that order tells the rest.
        if signal.status == 0 and not signal.signal:
            self._end(agent, "exited with status 0", now)
            return
        how = f"signal {signal.signal}" if signal.signal else f"status {signal.status}"
        text = f"The process ended with {how}.{' ' + signal.detail if signal.detail else ''}"
        agent.suspicion = None
        found = Finding(Kind.EXIT, now, Severity.DISCONNECTED, text, {"exit": how}, conclusive=True)
        desk.judge.note(agent, found, now, Cause.CRASH)
        if agent.cause is not Cause.CRASH:
            agent.cause = Cause.CRASH  # It was disconnected already; now we know why.
        desk.ladder.drop(agent, now, "the process ended")
        desk.respawns.begin(desk.lineage(agent), agent, text, desk.policy(agent).respawn, now)

    def _connection_closed(self, agent: Agent, signal: s.ConnectionClosed, now: float) -> None:
        if agent.suspicion is None and agent.alive:
            self._watching.suspect(agent, self._desk.policy(agent), CONNECTION_CLOSED, now, now)

    def _peer_heard(self, agent: Agent, signal: s.PeerHeard, now: float) -> None:
        agent.peer_at = now
        if agent.health is Health.DISCONNECTED and agent.cause is Cause.UNKNOWN:
            agent.cause = Cause.PARTITION

    # --- outcomes of orders -----------------------------------------------------------------------------

    def _nudge_delivered(self, agent: Agent, signal: s.NudgeDelivered, now: float) -> None:
        self._desk.ladder.reached(agent, signal.order_id, Stage.DELIVERED, now)

    def _nudge_failed(self, agent: Agent, signal: s.NudgeFailed, now: float) -> None:
        self._desk.ladder.reached(agent, signal.order_id, Stage.FAILED, now, signal.reason)

    def _decided(self, agent: Agent, signal: s.EscalationDecided, now: float) -> None:
        policy = self._desk.policy(agent).ladder
        if not self._desk.ladder.decided(agent, signal.order_id, signal.decision, signal.by, policy, now):
            self._desk.refuse(agent.id, f"escalation {signal.order_id} is no longer open", now)

    def _terminated(self, agent: Agent, signal: s.TerminationDone, now: float) -> None:
        desk = self._desk
        case = desk.ladder.terminated(agent, signal.order_id, now)
        if case is None:
            return
        self._end(agent, case.reason, now)
        if case.respawn:
            desk.respawns.begin(desk.lineage(agent), agent, case.reason, desk.policy(agent).respawn, now)
        elif not case.by:
            text = f"{agent.id} was stopped and not respawned: {case.reason}"
            desk.outbox.fact(NeedsHuman(now, agent.id, "stopped", text))

    def _termination_failed(self, agent: Agent, signal: s.TerminationFailed, now: float) -> None:
        self._desk.ladder.termination_failed(agent, signal.order_id, signal.reason, now)

    def _verified(self, agent: Agent, signal: s.CheckpointVerified, now: float) -> None:
        desk = self._desk
        desk.respawns.verified(desk.lineage(agent), signal.checkpoint_id, now, valid=signal.valid)

    def _respawn_started(self, agent: Agent, signal: s.RespawnStarted, now: float) -> None:
        lineage = self._desk.lineage(agent)
        if lineage.order_id == signal.order_id:
            self._desk.outbox.fact(
                Intervention(
                    now, agent.id, signal.order_id, Rung.RESPAWN, Stage.DELIVERED, lineage.attempts
                )
            )

    def _respawn_failed(self, agent: Agent, signal: s.RespawnFailed, now: float) -> None:
        desk, policy = self._desk, self._desk.policy(agent).respawn
        desk.respawns.start_failed(desk.lineage(agent), signal.order_id, signal.reason, policy, now)

    # --- people -----------------------------------------------------------------------------------------

    def _nudge_requested(self, agent: Agent, signal: s.NudgeRequested, now: float) -> None:
        self._start(agent, Rung.NUDGE, signal, signal.message, now)

    def _escalation_requested(self, agent: Agent, signal: s.EscalationRequested, now: float) -> None:
        self._start(agent, Rung.ESCALATE, signal, signal.reason, now)

    def _termination_requested(self, agent: Agent, signal: s.TerminationRequested, now: float) -> None:
        case = self._start(agent, Rung.TERMINATE, signal, signal.reason or "requested", now)
        if case is not None:
            case.respawn = signal.respawn

    def _start(
        self, agent: Agent, rung: Rung, act: s.PersonActed, reason: str, now: float
    ) -> Case | None:
        """A person's order goes onto the ladder at the rung they chose, once per key."""
        if agent.health is Health.TERMINATED:
            self._desk.refuse(agent.id, "is terminated already", now)
            return None
        if act.key and agent.case is not None and agent.case.key == act.key:
            return None
        case = self._desk.ladder.start(agent, rung, now, reason=reason, by=act.by or "a person")
        case.key = act.key
        return case

    def _pause(self, agent: Agent, signal: s.PauseRequested, now: float) -> None:
        agent.paused_until = NEVER if signal.pause_for is None else now + max(0.0, signal.pause_for)

    def _resume(self, agent: Agent, signal: s.ResumeRequested, now: float) -> None:
        agent.paused_until = 0.0

    def _clear(self, agent: Agent, signal: s.ClearRequested, now: float) -> None:
        desk = self._desk
        agent.poisoned, agent.paused_until = False, 0.0
        desk.ladder.drop(agent, now, f"cleared by {signal.by or 'a person'}")
        self._rest(agent, now)
        lineage = desk.beliefs.lineages.get(agent.id)
        if lineage is not None:
            desk.respawns.clear(lineage, now)

    def _recovery_requested(self, agent: Agent, signal: s.RecoveryRequested, now: float) -> None:
        desk = self._desk
        if agent.alive:
            desk.refuse(agent.id, "is alive: terminate it before its task is recovered", now)
            return
        desk.respawns.request(desk.lineage(agent), agent, desk.policy(agent).respawn, now)

    # --- parts ------------------------------------------------------------------------------------------

    def _end(self, agent: Agent, reason: str, now: float) -> None:
        """This life is over and that is known: no findings, no case, no claims."""
        desk = self._desk
        desk.ladder.drop(agent, now, reason)
        agent.suspicion = None
        self._let_go(agent, now, reason)
        desk.judge.flip(agent, Health.TERMINATED, reason, now)
        desk.judge.clear_all(agent, now)

    def _work(self, agent: Agent, now: float) -> Work:
        if agent.work is None:
            agent.work = Work(now)
        return agent.work

    def _rest(self, agent: Agent, now: float) -> None:
        """The work is over or a new one begins: what was found about it no longer holds."""
        agent.tape = None
        if agent.work is not None:
            agent.work = Work(now, checkpoint_id=agent.work.checkpoint_id, tool_calls=agent.work.tool_calls)
        if agent.outcomes is not None:
            agent.outcomes = Outcomes(reported=agent.outcomes.reported)
        for finding in agent.findings:
            if finding.kind in REST:
                self._desk.judge.clear(agent, finding.kind, now)

    def _word(self, agent: Agent, now: float) -> None:
        """Progress or an explanation: it counts for the agent's task."""
        task = self._desk.beliefs.tasks.get(agent.task_id) if agent.task_id else None
        if task is not None:
            self._desk.tasks.word(task, agent, now)

    def _settle_stall(self, agent: Agent, now: float) -> None:
        if agent.findings:
            self._watching.judge_stall(agent, self._desk.policy(agent), now)

    def _succeeded(self, agent: Agent, now: float) -> None:
        if agent.outcomes is None:
            agent.outcomes = Outcomes()
        erring.succeeded(agent.outcomes, self._desk.policy(agent).erring)
        self._settle_errors(agent, agent.outcomes, now)

    def _failed(self, agent: Agent, what: str, error_kind: str | None, now: float) -> None:
        if agent.outcomes is None:
            agent.outcomes = Outcomes()
        erring.failed(agent.outcomes, what, error_kind, self._desk.policy(agent).erring, now)
        self._settle_errors(agent, agent.outcomes, now)

    def _settle_errors(self, agent: Agent, outcomes: Outcomes, now: float) -> None:
        found = erring.examine(outcomes, self._desk.policy(agent).erring, now)
        self._desk.judge.settle(agent, Kind.ERRORS, found, now)


def receive(agent: Agent, beat: s.BeatReceived, now: float) -> None:
    """The part of a beat that every beat has: it came."""
    seq, last = beat.seq, agent.seq
    if agent.beats == 0:
        silence.begin(agent, agent.interval, now)
    elif seq is not None and last >= 0:
        silence.learn(agent, seq - last, now, agent.beat_at)
    else:
        silence.learn(agent, int((now - agent.beat_at) / agent.interval + 0.5) or 1, now, agent.beat_at)
    if seq is not None:
        agent.seq = seq
    agent.heard_at = agent.beat_at = now
    agent.sent_at = beat.sent_at
    agent.load = beat.load
    agent.capacity = beat.capacity_available


def _ended(agent: Agent) -> bool:
    """Whether this life is known to be over."""
    return agent.health is Health.TERMINATED or agent.finding(Kind.EXIT) is not None
