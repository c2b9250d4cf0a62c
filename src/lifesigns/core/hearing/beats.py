"""Beats: what a beat says beyond "I live", and the short way of one that says nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lifesigns.core import signals as s
from lifesigns.core.agent import Agent, Outcomes, Spending, Work
from lifesigns.core.desk import Desk
from lifesigns.core.detectors import freeze, overload, silence, stall
from lifesigns.core.effects import Kind
from lifesigns.core.health import Cause, Health
from lifesigns.core.hearing.admission import LEAP_MAX
from lifesigns.core.hearing.work import WorkHearing
from lifesigns.core.policy import FreezePolicy, Policy, StallPolicy
from lifesigns.core.policy_changes import merged
from lifesigns.errors import PolicyError


def receive(agent: Agent, beat: s.Beat, now: float, pages: Sequence[Policy] | None = None) -> bool:
    """Note that a beat came. With `pages` only if it says nothing beyond that: else False, and nothing is noted.

    One function for both, because a call costs as much as a tenth of what is done here.
    """
    seq, life = beat.seq, beat.incarnation
    if pages is not None and (
        life != agent.incarnation
        or (seq is not None and not 0 < seq - agent.seq <= LEAP_MAX)
        or (beat.doing is not None and beat.doing is not agent.doing)
        or (beat.task_id is not None and beat.task_id != agent.task_id)
        or (beat.host is not None and beat.host != agent.host)
        or (beat.role is not None and beat.role != agent.role)
        or beat.token_count is not None
        or beat.cost_usd is not None
        or beat.error_count is not None
        or beat.metadata is not None
        or (beat.loop_lag_ms is not None and _frozen(beat.loop_lag_ms, pages[agent.policy_no].freeze))
        or (beat.metrics is not None and _strained(agent, beat.metrics, pages[agent.policy_no]))
    ):
        return False
    agent.beats = beats = agent.beats + 1
    if beats >= agent.teach_at:
        silence.learn(agent, seq, now)
    if seq is not None:
        agent.seq = seq
    agent.heard_at = now
    if life is None:
        agent.sent_at = beat.sent_at  # Nothing else tells a restart of it from a replay.
    agent.load = beat.load
    agent.capacity = beat.capacity_available
    return True


def _frozen(lag_ms: float, policy: FreezePolicy) -> bool:
    return lag_ms >= 1000.0 * policy.after


def _strained(agent: Agent, metrics: s.Gauges, policy: Policy) -> bool:
    """Whether its load is worth a second look."""
    return overload.over(metrics, policy.overload) or (
        agent.work is not None and _changed_heat(agent.work, metrics, policy.stall)
    )


def _changed_heat(work: Work, metrics: s.Gauges, policy: StallPolicy) -> bool:
    """Whether a program that is judged by its output works in another way than before."""
    cpu = metrics.cpu_percent
    return work.output_at is not None and cpu is not None and stall.heat_of(cpu, policy) is not work.heat


class BeatHearing:
    """Hears beats closely, and who announces itself."""

    def __init__(self, desk: Desk, work: WorkHearing) -> None:
        self._desk = desk
        self._work = work

    @property
    def handlers(self) -> Mapping[type, Callable[[Agent, Any, float], None]]:
        return {s.AgentRegistered: self._registered}

    def beat(self, agent: Agent, beat: s.Beat, now: float) -> None:
        desk = self._desk
        receive(agent, beat, now)
        if (beat.role or agent.role) != agent.role or (beat.host or agent.host) != agent.host:
            self._moved(agent, beat.role, beat.host, now)
        provider = beat.metadata.get("provider") if beat.metadata else None
        if provider is not None and provider != agent.provider:
            desk.fleet.regroup(agent, agent.host, provider[:128], now, desk.outbox)
        task = beat.task_id or (beat.tasks[0] if beat.tasks else None)
        if task is not None and task != agent.task_id:
            self._work.take_task(agent, task, now)
        if beat.doing is not None and beat.doing is not agent.doing:
            self._work.do(agent, beat.doing, beat.until, "", now)
        if beat.token_count is not None or beat.cost_usd is not None:
            self._totals(agent, beat, now)
        elif agent.spending is not None and agent.finding(Kind.SPENDING) is not None:
            self._work.spend(agent, agent.spending, 0, 0.0, now)  # The hour of its cap may be over.
        if beat.error_count is not None:
            self._error_total(agent, beat.error_count, now)
        if beat.loop_lag_ms is not None and not agent.busy:
            found = freeze.examine(beat.loop_lag_ms, desk.policy(agent).freeze, now)
            if found is not None:
                desk.judge.note(agent, found, now, Cause.FREEZE)
            else:
                desk.judge.clear(agent, Kind.FREEZE, now)
        self._load(agent, beat, now)

    def _registered(self, agent: Agent, signal: s.AgentRegistered, now: float) -> None:
        desk = self._desk
        if signal.policy:
            # A supervisor and the agent in it both speak for one life: what one says does not undo the other's word.
            said = merged(desk.beliefs.own_policies.get(agent.id, {}), signal.policy)
            try:
                agent.policy_no = desk.book.number(agent.id, signal.role or agent.role, said)
            except PolicyError as error:
                desk.refuse(agent.id, f"policy {error}", now)
            else:
                desk.beliefs.own_policies[agent.id] = said
                self._expect(agent)
        self._moved(agent, signal.role, signal.host, now)
        if agent.health is Health.STARTING and signal.grace is not None:
            agent.grace = signal.grace
        if signal.task_id is not None:
            self._work.take_task(agent, signal.task_id, now)

    def _moved(self, agent: Agent, role: str | None, host: str | None, now: float) -> None:
        desk = self._desk
        if role is not None and role != agent.role:
            agent.role = role
            desk.look_up_policy(agent, now)
            self._expect(agent)
        if host is not None and host != agent.host:
            desk.fleet.regroup(agent, host, agent.provider, now, desk.outbox)

    def _expect(self, agent: Agent) -> None:
        """Another policy, another rhythm, until the agent has shown its own."""
        if not agent.beats:
            agent.interval = self._desk.policy(agent).silence.interval

    def _load(self, agent: Agent, beat: s.Beat, now: float) -> None:
        if beat.metrics is None:
            return  # Not to know is not to be well.
        cpu, work = beat.metrics.cpu_percent, agent.work
        if cpu is not None and work is not None and work.output_at is not None:
            self._work.heated(agent, work, cpu, now)
        policy = self._desk.policy(agent).overload
        found = overload.examine(beat.metrics, policy, now)
        if found is None:
            agent.overloaded = 0
            self._desk.judge.clear(agent, Kind.OVERLOAD, now)
        else:
            agent.overloaded += 1
            if agent.overloaded >= policy.beats:
                self._desk.judge.note(agent, found, now)

    def _totals(self, agent: Agent, beat: s.Beat, now: float) -> None:
        """A beat's totals; what was used since the last one is the difference."""
        spent = agent.spending
        if spent is None:
            agent.spending = Spending(
                by_beat=True, reported=beat.token_count or 0, reported_cost=beat.cost_usd or 0.0
            )
            return
        if not spent.by_beat:  # What its calls reported so far is in this total already.
            spent.by_beat = True
            spent.reported, spent.reported_cost = beat.token_count or 0, beat.cost_usd or 0.0
        tokens = max(0, (beat.token_count or 0) - spent.reported)
        cost = max(0.0, (beat.cost_usd or 0.0) - spent.reported_cost)
        if beat.token_count is not None:
            spent.reported = beat.token_count
        if beat.cost_usd is not None:
            spent.reported_cost = beat.cost_usd
        self._work.spend(agent, spent, tokens, cost, now)

    def _error_total(self, agent: Agent, count: int, now: float) -> None:
        """A beat's error count: each beat with new ones is a failure, each without a success."""
        outcomes = agent.outcomes
        if outcomes is None:
            agent.outcomes = Outcomes(reported=count)
            return
        if count > outcomes.reported:
            what = f"{count - outcomes.reported} errors since the last beat"
            self._work.failed(agent, what, None, now)
        elif outcomes.consecutive or outcomes.bits:
            self._work.succeeded(agent, now)
        outcomes.reported = count
