"""Beats: what a beat says beyond "I live", and the fast path for one that says nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from lifesigns.core import signals as s
from lifesigns.core.agent import Agent, Outcomes, Spending, Work
from lifesigns.core.awareness import Awareness
from lifesigns.core.context import POLICY, EngineContext
from lifesigns.core.detectors import forecast, freeze, overload, silence, spending, stall
from lifesigns.core.effects import Kind
from lifesigns.core.handlers.admission import LEAP_MAX
from lifesigns.core.handlers.work import WorkHandlers
from lifesigns.core.health import Cause, Health
from lifesigns.core.policy import SpendingPolicy
from lifesigns.core.policy_bounds import OwnPolicy
from lifesigns.core.policy_changes import merged
from lifesigns.core.profiles import PolicyBook
from lifesigns.errors import PolicyError

Amount = TypeVar("Amount", int, float)

RESTART_SHARE: Final = 0.5
"""A total below this fraction of the last one belongs to a new life; a total between the two came late."""


def receive_calm(
    beats: Iterable[s.Beat],
    agents: Mapping[str, Agent],
    book: PolicyBook,
    aware: Awareness,
    now: float,
) -> s.Beat | None:
    """Note calm agents' beats that say nothing new, up to the first other beat, which is returned and not noted.

    A large fleet spends its time here. So this is one function whose common path calls nothing, because a call costs
    a tenth of the work done here; and it looks a policy up once for all agents that share it.
    """
    policy_no, policy, (lag_from, cpu_from, memory_from, follow_from) = 0, book.policies[0], book.lines[0]
    for beat in beats:
        try:
            agent = agents[beat.agent_id]
            if not agent.calm:
                return beat
            seq, life = beat.seq, beat.incarnation
            metrics, lag = beat.metrics, beat.loop_lag_ms
            if agent.policy_no != policy_no:
                policy_no = agent.policy_no
                policy, (lag_from, cpu_from, memory_from, follow_from) = (
                    book.policies[policy_no],
                    book.lines[policy_no],
                )
            if (
                life != agent.incarnation
                or (seq is not None and not 0 < seq - agent.seq <= LEAP_MAX)
                or ((doing := beat.doing) is not None and doing is not agent.doing)
                or ((task_id := beat.task_id) is not None and task_id != agent.task_id)
                or ((host := beat.host) is not None and host != agent.host)
                or ((role := beat.role) is not None and role != agent.role)
                or ((status := beat.status) is not None and status != agent.status)
                or (lag is not None and lag >= lag_from)
                or (beat.error_count is not None and not _erred_before(agent.outcomes, beat.error_count))
                or (beat.metadata is not None and _changed_provider(agent, beat.metadata))
                or (beat.last_tool_call is not None and _called(agent.work, beat.last_tool_call))
            ):
                return beat
            cpu = memory = None
            if metrics is not None:
                cpu, memory, work = metrics.cpu_percent, metrics.memory_mb, agent.work
                if (
                    (cpu is not None and cpu >= cpu_from)
                    or (
                        memory is not None
                        and memory >= follow_from
                        and (memory >= memory_from or agent.trend is None)
                    )
                    or (
                        work is not None
                        and work.output_at is not None
                        and cpu is not None
                        and stall.cpu_level_of(cpu, policy.stall) is not work.cpu_level
                    )
                ):
                    return beat
            tokens, cost = beat.token_count, beat.cost_usd
            if (tokens is not None or cost is not None) and not _spent_calmly(
                agent, tokens, cost, policy.spending, now
            ):
                return beat
            # From here on this repeats `receive` exactly.
            agent.beats = count = agent.beats + 1
            if count >= agent.teach_at:
                silence.learn(agent, seq, now)
            if seq is not None:
                agent.seq = seq
            agent.heard_at = aware.heard_at = now
            if life is None:
                agent.sent_at = beat.sent_at
            agent.load, agent.capacity = beat.load, beat.capacity_available
            agent.cpu_percent, agent.memory_mb = cpu, memory
            agent.strays = 0
            agent.via = beat.source
        except Exception:  # noqa: BLE001 -- a new agent; or one that fails once more when heard closely, and is set aside
            return beat
    return None


def receive(agent: Agent, beat: s.Beat, now: float) -> None:
    """Note that a beat came."""
    agent.beats = count = agent.beats + 1
    if count >= agent.teach_at:
        silence.learn(agent, beat.seq, now)
    if beat.seq is not None:
        agent.seq = beat.seq
    agent.heard_at = now
    if beat.incarnation is None:
        agent.sent_at = beat.sent_at  # Nothing else distinguishes its restart from a replay.
    agent.load, agent.capacity = beat.load, beat.capacity_available
    metrics = beat.metrics
    agent.cpu_percent = None if metrics is None else metrics.cpu_percent
    agent.memory_mb = None if metrics is None else metrics.memory_mb


def _erred_before(outcomes: Outcomes | None, count: int) -> bool:
    """Whether its error count is the one we know and its record is clean: then this is no news."""
    return (
        outcomes is not None and count == outcomes.reported and not outcomes.consecutive and not outcomes.bits
    )


def _changed_provider(agent: Agent, metadata: Mapping[str, str]) -> bool:
    """Whether it uses another provider now: everything else in the metadata is for people."""
    provider = metadata.get("provider")
    return provider is not None and provider != agent.provider


def _called(work: Work | None, told: str) -> bool:
    """Whether this beat names another tool call than the last one; an agent that reports its calls one by one says so
    there."""
    return work is not None and told != work.tool_told and not work.last_tool


def _spent_calmly(
    agent: Agent, tokens: int | None, cost: float | None, policy: SpendingPolicy, now: float
) -> bool:
    """Count the usage since the last beat if no verdict depends on it; otherwise count nothing."""
    spent, work = agent.spending, agent.work
    if spent is None or not spent.by_beat:
        return False
    more = 0 if tokens is None else tokens - spent.reported
    dearer = 0.0 if cost is None else cost - spent.reported_cost
    if more and work is not None and work.tokens_at is None:
        return False  # From now on we expect it to use tokens.
    if more < 0 or dearer < 0.0 or not spending.spend_unnoticed(spent, more, dearer, policy, now):
        return False
    if tokens is not None:
        spent.reported = tokens
    if cost is not None:
        spent.reported_cost = cost
    if more and work is not None:
        work.tokens_at = now
    return True


def _growth(total: Amount | None, known: Amount, *, nameless: bool) -> tuple[Amount, Amount]:
    """The usage since the last total, and the total to compare the next one with.

    Totals of one life only grow: a smaller one came late. But a restarted life without an incarnation counts from
    zero again, far below its last total.
    """
    if total is None:
        return known - known, known
    if total >= known:
        return total - known, total
    if nameless and total < RESTART_SHARE * known:
        return total, total
    return known - known, known


def _with_words(
    known: OwnPolicy | None, signal: s.AgentRegistered, policy: Mapping[str, object]
) -> OwnPolicy:
    """A supervisor and the agent in it both speak for one life: neither undoes what the other says."""
    known = known or OwnPolicy({}, {})
    if signal.bounded:
        return OwnPolicy(merged(known.words, policy), known.granted, signal.source)
    return OwnPolicy(known.words, merged(known.granted, policy), known.source)


class BeatHandlers:
    """Handles beats with news, and announcements."""

    def __init__(self, context: EngineContext, work: WorkHandlers) -> None:
        self._context = context
        self._work = work

    @property
    def handlers(self) -> Mapping[type, Callable[[Agent, Any, float], None]]:
        return {s.AgentRegistered: self._registered}

    def beat(self, agent: Agent, beat: s.Beat, now: float) -> None:
        context = self._context
        agent.beatless = False
        receive(agent, beat, now)
        if (beat.role or agent.role) != agent.role or (beat.host or agent.host) != agent.host:
            self._moved(agent, beat.role, beat.host, now)
        provider = beat.metadata.get("provider") if beat.metadata else None
        if provider is not None and provider != agent.provider:
            context.fleet.regroup(agent, agent.host, provider[:128], now, context.outbox)
        task = beat.task_id or (beat.tasks[0] if beat.tasks else None)
        if task is not None and (task != agent.task_id or agent.work is None):
            self._work.take_task(agent, task, now)
        if beat.doing is not None and beat.doing is not agent.doing:
            self._work.do(agent, beat.doing, beat.until, "", now)
        if beat.status is not None and beat.status != agent.status:
            self._work.say_status(agent, beat.status, now)
        if (
            beat.last_tool_call is not None
            and agent.work is not None
            and _called(agent.work, beat.last_tool_call)
        ):
            self._work.told_of_call(agent, agent.work, beat.last_tool_call, now)
        if beat.token_count is not None or beat.cost_usd is not None:
            self._totals(agent, beat, now)
        elif agent.spending is not None and agent.finding(Kind.SPENDING) is not None:
            self._work.spend(agent, agent.spending, 0, 0.0, now)  # The hour of its spending cap may be over.
        if beat.error_count is not None:
            self._error_total(agent, beat.error_count, now)
        if beat.loop_lag_ms is not None and not stall.may_block(agent, now):
            found = freeze.examine(beat.loop_lag_ms, context.policy(agent).freeze, now, beat.metadata)
            if found is not None:
                context.judge.note(agent, found, now, Cause.FREEZE)
            else:
                context.judge.clear(agent, Kind.FREEZE, now)
        self._load(agent, beat, now)
        self._follow(agent, beat, now)

    def _follow(self, agent: Agent, beat: s.Beat, now: float) -> None:
        """Follow an agent with much memory."""
        policy = self._context.policy(agent)
        if agent.trend is not None or not policy.forecast.enabled:
            return
        memory = None if beat.metrics is None else beat.metrics.memory_mb
        if memory is not None and memory >= forecast.memory_from(policy):
            agent.trend = forecast.begin(policy, agent.beats, agent.heard_at, now)

    def _registered(self, agent: Agent, signal: s.AgentRegistered, now: float) -> None:
        context = self._context
        if signal.policy:
            said = _with_words(context.beliefs.own_policies.get(agent.id), signal, signal.policy)
            try:
                role = context.book.role_of(agent.id, signal.role or agent.role)
                number = context.book.number(agent.id, role, said)
            except PolicyError as error:
                context.refuse(agent.id, f"{POLICY} {error}", now, about=POLICY)
            else:
                context.use_policy(agent, number)
                context.beliefs.own_policies[agent.id] = said
                self._expect(agent)
                if why := context.book.refused[number]:
                    context.refuse(agent.id, f"{POLICY} {'; '.join(why)}", now, about=POLICY)
        if signal.follows_interval and agent.told_interval is None:
            agent.told_interval = 0.0
        self._moved(agent, signal.role, signal.host, now)
        if signal.role is not None and signal.role != agent.role:
            why = f"role stays {agent.role!r}, as the administrator set it: not {signal.role!r}"
            context.refuse(agent.id, f"{POLICY} {why}", now, about=f"{POLICY} role")
        if agent.health is Health.STARTING and signal.grace is not None:
            agent.grace = signal.grace
        if signal.task_id is not None:
            self._work.take_task(agent, signal.task_id, now)

    def _moved(self, agent: Agent, role: str | None, host: str | None, now: float) -> None:
        context = self._context
        if role is not None and (role := context.book.role_of(agent.id, role)) != agent.role:
            agent.role = role
            context.look_up_policy(agent, now)
            self._expect(agent)
        if host is not None and host != agent.host:
            context.fleet.regroup(agent, host, agent.provider, now, context.outbox)

    def _expect(self, agent: Agent) -> None:
        """Another policy means another rhythm, until the agent has shown its own."""
        silence.expect(agent, self._context.policy(agent).silence.interval)

    def _load(self, agent: Agent, beat: s.Beat, now: float) -> None:
        if beat.metrics is None:
            return  # An unknown lag does not mean a healthy loop.
        cpu, work = beat.metrics.cpu_percent, agent.work
        if cpu is not None and work is not None and work.output_at is not None:
            self._work.heated(agent, work, cpu, now)
        policy = self._context.policy(agent).overload
        found = overload.examine(beat.metrics, policy, now)
        if found is None:
            agent.overloaded = 0
            self._context.judge.clear(agent, Kind.OVERLOAD, now)
        else:
            agent.overloaded += 1
            if agent.overloaded >= policy.beats:
                self._context.judge.note(agent, found, now)

    def _totals(self, agent: Agent, beat: s.Beat, now: float) -> None:
        """The totals of a life in its beat. The difference to the last total is the new usage; the first total counts
        from zero, less what the calls of this life have already reported."""
        spent = agent.spending
        if spent is None:
            spent = agent.spending = Spending()
        first, spent.by_beat = not spent.by_beat, True
        nameless = beat.incarnation is None
        tokens, spent.reported = _growth(beat.token_count, spent.reported, nameless=nameless)
        cost, spent.reported_cost = _growth(beat.cost_usd, spent.reported_cost, nameless=nameless)
        if first and (beat.seq is None or beat.seq > 1):
            # It may be old: we cannot know how much of this it used within the hour.
            spending.take_over(spent, tokens, cost)
            tokens, cost = 0, 0.0
        self._work.spend(agent, spent, tokens, cost, now)

    def _error_total(self, agent: Agent, count: int, now: float) -> None:
        """A beat's error count: a beat with new errors is a failure, one without is a success."""
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
