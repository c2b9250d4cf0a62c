"""Engine: signals in, effects out. The heart of lifesigns, and the place to start reading.

    hear(signal, now)   believe what was heard, after growing older up to now
    advance(now)        grow older: everything that fell due by now, in the order it fell due
    wake_at()           when to call advance() next if nothing is heard before

Deterministic: the same signals at the same times give the same effects, bit for bit. The way of a signal:

    hear ──► advance: agents that fell due      watching.py     silence, stalls, the ladder's waits
         └─► the signal                         hearing/        who is it, which life, what changes
                  │
                  ▼ findings                    detectors/      one file per way of being unwell
              judgement.py                      findings ──► health; how far the evidence lets us go
                  │
                  ▼ unwell
              ladder.py ──► respawn.py          nudge, escalate, terminate; start anew
                  │
                  ▼ outbox.py ──► effects       facts to store, orders to carry out

Everything on this way asks `awareness.py` first whether we ourselves can be trusted, and `fleet.py` whether
too much is happening at once. What is known is in `beliefs.py`; when it falls due, in `deadlines.py`.

A healthy beat takes none of that way: it is looked up, it is noted, and that was it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.claims import Hold
from lifesigns.core.deadlines import Timed
from lifesigns.core.desk import Desk
from lifesigns.core.effects import Effect, NeedsHuman, Poisoned, Sight
from lifesigns.core.fleet import least_loaded
from lifesigns.core.health import Health
from lifesigns.core.hearing import Hearing
from lifesigns.core.hearing.beats import has_news, receive
from lifesigns.core.messages import Letter
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.respawn import Lineage
from lifesigns.core.signals import CanaryReturned, GroupReleased, Signal, Word
from lifesigns.core.tasks import Task
from lifesigns.core.watching import Watching


@dataclass(slots=True)
class Canary:
    """Our own beat's deadline, among all the others."""

    order: int = 0
    armed_at: float = NEVER


class Engine:
    """Judges agents. Owns its beliefs; not thread-safe; never raises over an agent."""

    def __init__(
        self,
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        *,
        epoch: int = 1,
        beliefs: Beliefs | None = None,
    ) -> None:
        self.beliefs = beliefs or Beliefs()
        self._desk = Desk(self.beliefs, policies or PolicyBook(), fleet or FleetPolicy(), epoch)
        self._watching = Watching(self._desk)
        self._hearing = Hearing(self._desk, self._watching)
        self._agents = self.beliefs.agents
        self._awareness = self.beliefs.awareness
        self._deadlines = self._desk.deadlines
        self._outbox = self._desk.outbox
        self._pages = self._desk.book.pages
        self._canary = Canary()
        self._now = self.beliefs.at
        self._look_at = -NEVER
        """When to look next; a new engine looks at once, to learn what time it is."""
        self._tick_at = NEVER
        self._settled_at = -NEVER

    # --- the three calls ------------------------------------------------------------------------------

    def hear(self, signal: Signal, now: float) -> Sequence[Effect]:
        """Grow older up to `now`, then believe the signal or refuse it."""
        if now >= self._look_at:
            self._grow_older(now)
        elif now < self._now:
            now = self._now
        self._now = now
        if not isinstance(signal, Word):
            agent = self._agents.get(signal.agent_id)
            if agent is not None and agent.calm and not has_news(agent, signal, self._pages):
                receive(agent, signal, now)
                self._awareness.heard_at = now
                return self._outbox.take() if self._outbox.effects else ()
        self._hear_closely(signal, now)
        return self._outbox.take()

    def advance(self, now: float) -> Sequence[Effect]:
        """Grow older: everything that fell due by `now`."""
        if now >= self._look_at:
            self._grow_older(now)
        elif now > self._now:
            self._now = now
        return self._outbox.take()

    def wake_at(self) -> float:
        """When to look next. At least once a tick while anybody is watched, to know when we slept."""
        return self._look_at

    # --- for those who show it ------------------------------------------------------------------------

    def agent(self, agent_id: str) -> Agent | None:
        """What we believe about an agent. To be read, not written."""
        return self._agents.get(agent_id)

    def agents(self) -> Iterable[Agent]:
        return self._agents.values()

    def policy_of(self, agent: Agent) -> Policy:
        return self._desk.policy(agent)

    def least_loaded(self, count: int = 1) -> list[Agent]:
        """The agents best placed for more work."""
        return least_loaded(self._agents.values(), count)

    # --- snapshot and restore -------------------------------------------------------------------------

    def snapshot(self) -> Beliefs:
        """The whole memory, live: encode it before the next call."""
        self.beliefs.at = self._now
        self.beliefs.numbered = self._outbox.numbered
        self.beliefs.canary_due_at = self._canary.armed_at
        return self.beliefs

    @classmethod
    def restore(
        cls,
        beliefs: Beliefs,
        now: float,
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        *,
        epoch: int = 1,
    ) -> Engine:
        """An engine that continues from a snapshot. The time in between counts for nobody."""
        engine = cls(policies, fleet, epoch=epoch, beliefs=beliefs)
        now = max(now, beliefs.at)
        if now > beliefs.at:
            beliefs.awareness.resume(beliefs.at, now, engine._desk.limits)
        engine._now = now
        engine._rearm_everything()
        engine._tick_at = now + engine._desk.limits.tick_every
        engine._look_again()
        return engine

    # --- hearing --------------------------------------------------------------------------------------

    def _hear_closely(self, signal: Signal, now: float) -> None:
        if isinstance(signal, CanaryReturned):
            self._canary_returned(signal, now)
        elif isinstance(signal, GroupReleased):
            self._desk.fleet.release(signal.group, now, self._outbox)
        else:
            try:
                agent = self._hearing.hear(signal, now)
                if agent is not None:
                    self._follow_up(agent, now)
            except Exception as error:  # noqa: BLE001 -- as in `_run_due`
                self._poison(signal.agent_id, error, now)
        if self._tick_at == NEVER and self._agents:
            self._tick_at = now + self._desk.limits.tick_every
        self._look_again()

    def _follow_up(self, agent: Agent, now: float) -> None:
        """What a signal may have set in motion: a case on the ladder, earlier deadlines."""
        self._desk.ladder.review(agent, self._desk.policy(agent).ladder, now)
        self._arm(agent, now)
        lineage = self.beliefs.lineages.get(agent.id)
        if lineage is not None:
            self._deadlines.arm(lineage, self._desk.respawns.due_at(lineage))
        if self._deadlines.next_at <= now:
            self._run_due(now)

    # --- growing older ----------------------------------------------------------------------------------

    def _grow_older(self, now: float) -> None:
        """Everything that fell due up to `now`; first of all, whether we slept."""
        limits = self._desk.limits
        if self._look_at == -NEVER:
            self._start(now)
        elif now - max(self._look_at, self._now) > limits.tick_late_after:
            self._awareness.slept(self._now, now, limits)
        self._now = max(now, self._now)
        self._run_due(self._now)
        self._tick_at = self._now + limits.tick_every if self._agents else NEVER
        self._look_again()

    def _look_again(self) -> None:
        """Look again when something falls due, and once a tick while anybody is watched: to know when we slept."""
        self._look_at = min(self._deadlines.next_at, self._tick_at)

    def _start(self, now: float) -> None:
        if self._desk.limits.canary_every:
            self._deadlines.arm(self._canary, now)

    def _run_due(self, now: float) -> None:
        self._settled_at = self._awareness.settled_at
        while (due := self._deadlines.pop(now, self._later)) is not None:
            at, item = due
            try:
                self._fall_due(item, at, now)
            except Exception as error:  # noqa: BLE001 -- our bug, whatever it is, is one agent's and not all's
                self._poison(getattr(item, "agent_id", getattr(item, "id", "")), error, now)

    def _later(self, item: Timed) -> float:
        """When an item that comes up really falls due. A calm agent has usually beaten since it was armed."""
        if type(item) is not Agent or not item.calm:
            return -NEVER
        policy = self._pages[item.policy_no]
        fixed = policy.silence.suspect_after
        if item.margin >= fixed and item.beats < item.refit_at and item.heard_at > self._settled_at:
            at = item.heard_at + fixed  # What `silence_at` would say, for nearly everybody nearly always.
        else:
            at = self._watching.silence_at(item, policy)
        return at if at < item.other_at else item.other_at

    def _fall_due(self, item: Timed, at: float, now: float) -> None:
        if isinstance(item, Agent):
            self._agent_due(item, at, now)
        elif isinstance(item, Canary):
            self._canary_due(now)
        elif self._awareness.blind:
            self._deadlines.arm(item, now + self._desk.limits.canary_late_after)
        elif isinstance(item, Lineage):
            self._lineage_due(item, now)
        elif isinstance(item, Hold):
            self._hold_due(item, now)
        elif isinstance(item, Letter):
            self._letter_due(item, at, now)
        elif isinstance(item, Task):
            self._task_due(item, at, now)

    def _agent_due(self, agent: Agent, at: float, now: float) -> None:
        policy = self._desk.policy(agent)
        if agent.poisoned:
            return
        if self._awareness.blind:
            # Silence starts anew when we see again, so nothing can fall due before that much later.
            agent.suspicion = None
            self._deadlines.arm(agent, now + policy.silence.suspect_after)
        elif self._watching.ripen(agent, policy, at, now):
            self._arm(agent, at)
        elif (lineage := self.beliefs.lineages.get(agent.id)) is not None and lineage.waits_for_a_person:
            self._deadlines.arm(agent, now + policy.silence.forget_after)
        else:
            self._forget(agent, now)

    def _lineage_due(self, lineage: Lineage, now: float) -> None:
        agent, respawns = self._agents.get(lineage.agent_id), self._desk.respawns
        if agent is None:
            self.beliefs.lineages.pop(lineage.agent_id, None)
            return
        if respawns.due_at(lineage) <= now:
            respawns.step(lineage, agent, self._desk.policy(agent).respawn, now)
        self._deadlines.arm(lineage, respawns.due_at(lineage))

    def _hold_due(self, hold: Hold, now: float) -> None:
        agent = self._agents.get(hold.agent_id)
        if agent is None:
            self.beliefs.holds.pop(hold.task_id, None)
            return
        policy = self._desk.policy(agent).claim
        if self._desk.claims.look(hold, agent, policy, now):
            del self.beliefs.holds[hold.task_id]
            agent.claims = tuple(task for task in agent.claims if task != hold.task_id)
        else:
            self._deadlines.arm(hold, self._desk.claims.due_at(hold, agent, policy))

    def _letter_due(self, letter: Letter, at: float, now: float) -> None:
        sender = self._agents.get(letter.sender)
        if sender is None:
            self._desk.close_letter(letter)
            return
        policy = self._desk.policy(sender).message
        due_at = self._desk.messages.due_at(letter, policy)
        if due_at > now:
            self._deadlines.arm(letter, due_at)
        elif self._desk.messages.overdue(letter, sender, self._agents.get(letter.to), at, now):
            self._desk.close_letter(letter)
        else:
            self._deadlines.arm(letter, self._desk.messages.due_at(letter, policy))

    def _task_due(self, task: Task, at: float, now: float) -> None:
        agent = self._agents.get(task.agent_id)
        if agent is None:
            self.beliefs.tasks.pop(task.id, None)
            return
        policy = self._desk.policy(agent).task
        due_at = self._desk.tasks.due_at(task, policy)
        if due_at > now:
            self._deadlines.arm(task, due_at)
            return
        if self._desk.tasks.look(task, agent, policy, at, now):
            del self.beliefs.tasks[task.id]
        else:
            self._deadlines.arm(task, self._desk.tasks.due_at(task, policy))
        self._follow_up(agent, now)

    # --- the canary -------------------------------------------------------------------------------------

    def _canary_due(self, now: float) -> None:
        """Send our own beat; if the last ones did not come back, we are blind."""
        aware, limits = self._awareness, self._desk.limits
        if not aware.blind and now >= aware.due(aware.canary_at, limits.canary_late_after):
            aware.lose_sight(now)
            aware.doubt(now, limits)
            reason = f"our own beat has not come back for {now - aware.canary_at:.0f} s"
            self._outbox.fact(Sight(now, True, reason))
            self._outbox.fact(NeedsHuman(now, "hub", "blind", f"The hub is blind: {reason}."))
        self._desk.send_canary(now)
        self._deadlines.arm(self._canary, now + limits.canary_every)

    def _canary_returned(self, signal: CanaryReturned, now: float) -> None:
        aware = self._awareness
        if signal.seq > aware.canary_seq:
            return
        aware.canary_at = NEVER
        aware.heard_at = now
        if aware.blind:
            aware.regain_sight(now, self._desk.limits)
            self._outbox.fact(Sight(now, False, "our own beat came back"))

    # --- parts ------------------------------------------------------------------------------------------

    def _arm(self, agent: Agent, now: float) -> None:
        """Note when this agent falls due next, and whether its beats need a second look until then."""
        policy = self._desk.policy(agent)
        agent.calm = (
            agent.health is Health.HEALTHY
            and not agent.findings
            and agent.suspicion is None
            and agent.case is None
            and not agent.overloaded
        )
        agent.other_at = self._watching.other_at(agent, policy, now)
        self._deadlines.arm(agent, min(agent.other_at, self._watching.silence_at(agent, policy)))

    def _poison(self, agent_id: str, error: Exception, now: float) -> None:
        """Our bug must not stop the others: set this agent aside and say so."""
        agent = self._agents.get(agent_id)
        if agent is not None:
            agent.poisoned = True
            agent.calm = False
        self._outbox.fact(Poisoned(now, agent_id, f"{type(error).__name__}: {error}"))

    def _forget(self, agent: Agent, now: float) -> None:
        self._desk.fleet.leave(agent, now, self._outbox)
        del self._agents[agent.id]
        for table in (self.beliefs.lineages, self.beliefs.own_policies, self.beliefs.breakers):
            table.pop(agent.id, None)

    def _rearm_everything(self) -> None:
        """After a restore: policies are looked up again, deadlines stand as they were."""
        if self._desk.limits.canary_every:
            due_at = self.beliefs.canary_due_at
            self._deadlines.arm(self._canary, self._now if due_at == NEVER else due_at)
        for agent in self._agents.values():
            self._desk.look_up_policy(agent, self._now)
        timed: tuple[Timed, ...] = (
            *self._agents.values(),
            *self.beliefs.lineages.values(),
            *self.beliefs.holds.values(),
            *self.beliefs.letters.values(),
            *self.beliefs.tasks.values(),
        )
        for item in timed:
            armed_at, item.armed_at = item.armed_at, NEVER
            self._deadlines.arm(item, armed_at)
