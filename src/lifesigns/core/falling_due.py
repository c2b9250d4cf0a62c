"""Falling due: whose turn it is when a deadline comes up, and what becomes of it.

While we are blind nothing is judged: agents and everything else are put off until we have had time to see.
"""

from __future__ import annotations

from lifesigns.core.agent import Agent
from lifesigns.core.canary import Canary
from lifesigns.core.claims import Hold
from lifesigns.core.deadlines import Timed
from lifesigns.core.desk import Desk
from lifesigns.core.effects import Rung
from lifesigns.core.errands import Errand
from lifesigns.core.messages import Letter
from lifesigns.core.policy import HOUR
from lifesigns.core.respawn import Lineage, Phase
from lifesigns.core.tasks import Task
from lifesigns.core.watching import ASLEEP, Watching


class FallingDue:
    """Knows what to do with each kind of thing that has a deadline."""

    def __init__(self, desk: Desk, watching: Watching) -> None:
        self._desk = desk
        self._watching = watching

    def fall_due(self, item: Timed, at: float, now: float) -> None:
        """`item` fell due at `at`; what has to leave the house leaves at `now`."""
        if isinstance(item, Agent) and self._desk.limits.judging:
            self._agent(item, at, now)
        elif isinstance(item, Agent):
            self._unjudged(item, now)
        elif isinstance(item, Canary):
            item.fall_due(now)
        elif self._desk.awareness.blind and self._unseen(item):
            self._desk.deadlines.arm(item, now + self._desk.limits.canary_late_after)
        elif isinstance(item, Lineage):
            self._lineage(item, now)
        elif isinstance(item, Hold):
            self._hold(item, now)
        elif isinstance(item, Letter):
            self._letter(item, at, now)
        elif isinstance(item, Task):
            self._task(item, at, now)
        elif isinstance(item, Errand):
            self._errand(item, at, now)

    def _unseen(self, item: Timed) -> bool:
        """Whether we are blind to the agent this is about."""
        agent_id = item.sender if isinstance(item, Letter) else getattr(item, "agent_id", "")
        agent = self._desk.beliefs.agents.get(agent_id)
        return agent is None or self._desk.awareness.blind_to(agent)

    def _agent(self, agent: Agent, at: float, now: float) -> None:
        desk, policy = self._desk, self._desk.policy(agent)
        lineage = desk.beliefs.lineages.get(agent.id)
        if agent.poisoned:
            return
        if desk.awareness.blind_to(agent):
            # Silence starts anew when we see again, so nothing can fall due before that much later.
            agent.suspicion = None
            desk.deadlines.arm(agent, now + policy.silence.suspect_after)
        elif self._watching.ripen(agent, policy, at, now):
            self._watching.arm(agent, at)
        elif lineage is not None and lineage.waits_for_a_person:
            desk.deadlines.arm(agent, now + policy.silence.forget_after)
        else:
            self._forget(agent, now)

    def _unjudged(self, agent: Agent, now: float) -> None:
        """Nobody is judged here: what people ordered is carried out, and an agent is forgotten when nothing was heard of it
        for long."""
        desk, policy = self._desk, self._desk.policy(agent)
        forget_at = max(agent.since, agent.heard_at) + policy.silence.forget_after
        if now >= forget_at:
            self._forget(agent, now)
            return
        if agent.case is not None and agent.case.by and desk.ladder.due_at(agent) <= now:
            desk.ladder.step(agent, policy.ladder, now)
        ordered = agent.case is not None and bool(agent.case.by)
        desk.deadlines.arm(agent, min(forget_at, desk.ladder.due_at(agent)) if ordered else forget_at)

    def _forget(self, agent: Agent, now: float) -> None:
        beliefs = self._desk.beliefs
        if agent.letters:
            for letter in [one for one in beliefs.letters.values() if one.sender == agent.id]:
                self._desk.close_letter(letter)
        self._desk.errands.drop(agent, now, "forgotten", Rung.BREAKER, Rung.CLEANUP)
        self._desk.fleet.leave(agent, now, self._desk.outbox)
        del beliefs.agents[agent.id]
        for table in (beliefs.lineages, beliefs.own_policies, beliefs.breakers):
            table.pop(agent.id, None)

    def _lineage(self, lineage: Lineage, now: float) -> None:
        agent, respawns = self._desk.beliefs.agents.get(lineage.agent_id), self._desk.respawns
        if agent is None:
            self._desk.beliefs.lineages.pop(lineage.agent_id, None)
            return
        due = respawns.due_at(lineage) <= now
        unasked = lineage.phase is Phase.WAITING and not lineage.requested
        if due and unasked and self._watching.may_be_well(agent):  # Its host was there a moment ago.
            respawns.ask(lineage, f"{lineage.why} {ASLEEP}", now, doubted=True)
        elif due:
            respawns.step(lineage, agent, self._desk.policy(agent).respawn, now)
        self._desk.deadlines.arm(lineage, respawns.due_at(lineage))

    def _hold(self, hold: Hold, now: float) -> None:
        agent = self._desk.beliefs.agents.get(hold.agent_id)
        if agent is None:
            self._desk.beliefs.holds.pop(hold.task_id, None)
            return
        policy = self._desk.policy(agent).claim
        if self._desk.claims.look(hold, agent, policy, now):
            del self._desk.beliefs.holds[hold.task_id]
            agent.claims = tuple(task for task in agent.claims if task != hold.task_id)
        else:
            self._desk.deadlines.arm(hold, self._desk.claims.due_at(hold, agent, policy))

    def _letter(self, letter: Letter, at: float, now: float) -> None:
        agents, messages = self._desk.beliefs.agents, self._desk.messages
        sender = agents.get(letter.sender)
        if sender is None:
            self._desk.close_letter(letter)
            return
        policy = self._desk.policy(sender).message
        if messages.due_at(letter, policy) <= now and messages.overdue(
            letter, sender, agents.get(letter.to), at, now
        ):
            letter.watched = False
        self._desk.deadlines.arm(letter, messages.due_at(letter, policy))

    def _task(self, task: Task, at: float, now: float) -> None:
        agent, tasks = self._desk.beliefs.agents.get(task.agent_id), self._desk.tasks
        if agent is None:
            self._desk.beliefs.tasks.pop(task.id, None)
            return
        if not self._desk.limits.judging:
            self._desk.deadlines.arm(task, now + HOUR)
            return
        policy = self._desk.policy(agent).task
        if tasks.due_at(task, policy) <= now and tasks.look(task, agent, policy, at, now):
            del self._desk.beliefs.tasks[task.id]
        else:
            self._desk.deadlines.arm(task, tasks.due_at(task, policy))
        self._watching.follow_up(agent, now)

    def _errand(self, errand: Errand, at: float, now: float) -> None:
        desk = self._desk
        if desk.errands.due_at(errand) > now:
            desk.deadlines.arm(errand, desk.errands.due_at(errand))
            return
        desk.errands.overdue(errand, at)
        lineage = desk.beliefs.lineages.get(errand.agent_id)
        if lineage is not None:
            desk.respawns.cleaned_up(lineage, now)
            desk.deadlines.arm(lineage, desk.respawns.due_at(lineage))
