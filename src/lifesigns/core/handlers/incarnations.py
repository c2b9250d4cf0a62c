"""Incarnations: how an agent is admitted, begins a new life, and ends one."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lifesigns.core.agent import NEVER, RETIRED_MAX, UNEVENTFUL, Agent
from lifesigns.core.context import EngineContext
from lifesigns.core.detectors.call_history import BACKLOG, CallHistory
from lifesigns.core.effects import BreakerFlip, Kind, Rung
from lifesigns.core.health import Doing, Health
from lifesigns.core.quotas import Quota
from lifesigns.core.rebalancing import ANSWER_WITHIN
from lifesigns.core.signals import BreakerState


class Incarnations:
    """Begins and ends the lives of agents."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    def admit_new(self, signal: Any, now: float) -> Agent | None:
        """Admit an unknown agent, if there is room."""
        context, source = self._context, signal.source
        full = context.fleet.may_join(source, len(context.beliefs.agents))
        if full:
            context.refuse_over_quota(Quota.AGENTS, signal.agent_id, source, full, now)
            return None
        agent = Agent(
            signal.agent_id,
            context.beliefs.next_order(),
            role=context.book.role_of(signal.agent_id, getattr(signal, "role", None)),
            host=getattr(signal, "host", None),
            source=source,
            via=source,
            incarnation=signal.incarnation,
            since=now,
            heard_at=now,
            beatless=not getattr(signal, "beats", True),
        )
        agent.policy_no = context.book.number(agent.id, agent.role)
        agent.interval = context.policy(agent).silence.interval
        context.beliefs.agents[agent.id] = agent
        context.fleet.join(agent)
        return agent

    def begin(self, agent: Agent, life: str | None, now: float) -> None:
        """A new life of a known agent: findings about the old one do not count against it."""
        context = self._context
        if agent.incarnation is not None:
            retired = (*agent.past.retired, agent.incarnation)[-RETIRED_MAX:]
            agent.past = replace(agent.past, retired=retired)
        context.ladder.drop(agent, now, "a new life began")
        if (
            agent.past is not UNEVENTFUL
        ):  # Whoever still carries out a withdrawn termination ends the old life.
            agent.past = replace(agent.past, withdrawn="", respawned=False)
        context.side_orders.drop(agent, now, "a new life began", Rung.BREAKER, Rung.CLEANUP)
        self.release_claims(agent, now, "its holder was restarted")
        self.drop_breakers(agent, now)
        if (lineage := context.beliefs.lineages.get(agent.id)) is not None:
            lineage.cleaned_up = False
        context.judge.clear_all(agent, now)
        context.judge.flip(agent, Health.STARTING, "a new life began", now)
        agent.incarnation, agent.seq, agent.sent_at, agent.strays = life, -1, None, 0
        agent.beats = agent.teach_at = agent.overloaded = 0
        agent.told_interval = agent.trend = None
        agent.slowing = False
        if agent.call_history is not None:
            # It may have called tools before we heard of it: on a link that was cut, say.
            agent.call_history = CallHistory(backlog_until=now + BACKLOG)
        agent.suspicion = agent.work = agent.outcomes = None
        agent.doing, agent.doing_until = Doing.UNKNOWN, NEVER
        agent.doing_from, agent.doing_note, agent.status = now, "", None
        if agent.spending is not None:
            agent.spending.by_beat, agent.spending.reported, agent.spending.reported_cost = False, 0, 0.0

    def note_first_signal(self, agent: Agent, now: float) -> None:
        """The new life has spoken."""
        context = self._context
        agent.started_at = now
        lineage = context.beliefs.lineages.get(agent.id)
        if lineage is not None:
            ours = context.respawns.new_life_spoke(
                lineage, agent.incarnation, context.policy(agent).respawn, now
            )
            agent.past = replace(agent.past, respawned=ours)
        context.judge.hear(agent, now)

    def end(self, agent: Agent, reason: str, now: float) -> None:
        """This life is known to be over: drop its findings, case and claims."""
        context = self._context
        context.ladder.drop(agent, now, reason)
        agent.suspicion = None
        self.release_claims(agent, now, reason)
        context.judge.flip(agent, Health.TERMINATED, reason, now)
        agent.doing, agent.doing_note = Doing.UNKNOWN, reason
        context.judge.clear_all(agent, now)
        self.clean_up_after(agent, reason, now)

    def clean_up_after(self, agent: Agent, reason: str, now: float) -> None:
        """This life is known to be over: its breakers are gone, and the hub may clean up after it, once."""
        context = self._context
        context.side_orders.drop(agent, now, reason, Rung.BREAKER)
        self.drop_breakers(agent, now)
        if not context.side_orders.cleans_up(agent):
            return
        lineage = context.lineage(agent)
        if not lineage.cleaned_up:
            lineage.cleaned_up = context.side_orders.clean_up(
                agent,
                reason,
                now,
                wait=context.policy(agent).ladder.cleanup_for,
                task_id=lineage.task_id,
                checkpoint_id=context.beliefs.newest_checkpoint(agent.id),
            )

    def drop_breakers(self, agent: Agent, now: float) -> None:
        """A breaker lives in its agent's process and ends with it: it no longer refuses calls."""
        for name, known in self._context.beliefs.breakers.pop(agent.id, {}).items():
            if known.state is not BreakerState.CLOSED:
                self._context.outbox.fact(BreakerFlip(now, agent.id, name, known.state, BreakerState.CLOSED))

    def release_claims(self, agent: Agent, now: float, reason: str) -> None:
        """Release every claim that an ended life still holds."""
        for task_id in agent.claims:
            claim = self._context.beliefs.claims[task_id]
            self._context.drop_claim(claim)
            self._context.claims.release(claim, agent, now, reason)
            # Its next life may claim it again, so nobody else is offered it at once.
            self._context.rebalancing.freed(claim, agent, reason, now, wait=ANSWER_WITHIN)


def ended(agent: Agent) -> bool:
    """Whether this life is known to be over."""
    return agent.health is Health.TERMINATED or (
        bool(agent.findings) and agent.finding(Kind.EXIT) is not None
    )
