"""Lives: how an agent is met, begins anew and ends."""

from __future__ import annotations

from typing import Any

from lifesigns.core.agent import NEVER, RETIRED_MAX, Agent
from lifesigns.core.claims import Hold
from lifesigns.core.desk import Desk
from lifesigns.core.effects import BreakerFlip, Kind, Rung
from lifesigns.core.health import Doing, Health
from lifesigns.core.signals import BreakerState


class Lives:
    """Begins and ends the lives of agents."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def meet(self, signal: Any, now: float) -> Agent | None:
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
            via=source,
            incarnation=signal.incarnation,
            since=now,
            heard_at=now,
        )
        agent.policy_no = desk.book.number(agent.id, agent.role)
        agent.interval = desk.policy(agent).silence.interval
        desk.beliefs.agents[agent.id] = agent
        desk.fleet.join(agent)
        return agent

    def reborn(self, agent: Agent, life: str | None, now: float) -> None:
        """A new life of a known agent: nothing of the old one is held against it."""
        desk = self._desk
        if agent.incarnation is not None:
            agent.retired = (*agent.retired, agent.incarnation)[-RETIRED_MAX:]
        desk.ladder.drop(agent, now, "a new life began")
        desk.errands.drop(agent, now, "a new life began", Rung.BREAKER, Rung.CLEANUP)
        self.let_go(agent, now, "its holder was restarted")
        self.lose_breakers(agent, now)
        if (lineage := desk.beliefs.lineages.get(agent.id)) is not None:
            lineage.cleaned_up = False
        desk.judge.clear_all(agent, now)
        desk.judge.flip(agent, Health.STARTING, "a new life began", now)
        agent.incarnation, agent.seq, agent.sent_at, agent.strays = life, -1, None, 0
        agent.beats = agent.teach_at = agent.overloaded = 0
        agent.suspicion = agent.work = agent.tape = agent.outcomes = None
        agent.respawned = False
        agent.doing, agent.doing_until = Doing.UNKNOWN, NEVER
        agent.doing_from, agent.doing_note, agent.status = now, "", None
        if agent.spending is not None:
            agent.spending.by_beat, agent.spending.reported, agent.spending.reported_cost = False, 0, 0.0

    def first_word(self, agent: Agent, now: float) -> None:
        desk = self._desk
        agent.started_at = now
        lineage = desk.beliefs.lineages.get(agent.id)
        if lineage is not None:
            agent.respawned = desk.respawns.reborn(
                lineage, agent.incarnation, desk.policy(agent).respawn, now
            )
        desk.judge.hear(agent, now)

    def end(self, agent: Agent, reason: str, now: float) -> None:
        """This life is over and that is known: no findings, no case, no claims."""
        desk = self._desk
        desk.ladder.drop(agent, now, reason)
        agent.suspicion = None
        self.let_go(agent, now, reason)
        desk.judge.flip(agent, Health.TERMINATED, reason, now)
        desk.judge.clear_all(agent, now)
        self.leave_behind(agent, reason, now)

    def leave_behind(self, agent: Agent, reason: str, now: float) -> None:
        """This life is known to be over: its breakers are gone with it, and somebody may clean up after it, once."""
        desk = self._desk
        desk.errands.drop(agent, now, reason, Rung.BREAKER)
        self.lose_breakers(agent, now)
        if not desk.errands.cleans_up(agent):
            return
        lineage = desk.lineage(agent)
        if not lineage.cleaned_up:
            lineage.cleaned_up = desk.errands.clean_up(
                agent,
                reason,
                now,
                wait=desk.policy(agent).ladder.cleanup_for,
                task_id=lineage.task_id,
                checkpoint_id=desk.beliefs.newest_checkpoint(agent.id),
            )

    def lose_breakers(self, agent: Agent, now: float) -> None:
        """A breaker lives in its agent's process. One that was open is not any more: nobody is refused by it."""
        for name, known in self._desk.beliefs.breakers.pop(agent.id, {}).items():
            if known.state is not BreakerState.CLOSED:
                self._desk.outbox.fact(BreakerFlip(now, agent.id, name, known.state, BreakerState.CLOSED))

    def let_go(self, agent: Agent, now: float, reason: str) -> None:
        """Release everything a life that ended still holds."""
        for task_id in agent.claims:
            hold = self._desk.beliefs.holds[task_id]
            self.drop_hold(hold, agent)
            self._desk.claims.release(hold, agent, now, reason)

    def drop_hold(self, hold: Hold, agent: Agent) -> None:
        hold.armed_at = NEVER
        del self._desk.beliefs.holds[hold.task_id]
        agent.claims = tuple(task for task in agent.claims if task != hold.task_id)


def ended(agent: Agent) -> bool:
    """Whether this life is known to be over."""
    return agent.health is Health.TERMINATED or agent.finding(Kind.EXIT) is not None
