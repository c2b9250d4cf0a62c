"""The orders that a simulated agent gets, and what becomes of them.

It carries each out once, as a good agent or supervisor does: an order of an older hub is ignored, a repeated one gets the
same answer again. Stops, starts and checkpoints fail now and then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.simulation.truth import Illness

if TYPE_CHECKING:
    from lifesigns.simulation.simulated_agent import SimulatedAgent

NUDGE_HELPS: Final = {Illness.LOOP: 0.6, Illness.HANG: 0.4, Illness.ERRORS: 0.4, Illness.STALE: 0.6}
"""How often a nudge that an agent reads helps it."""

STOP_FAILS: Final = 0.03
START_FAILS: Final = 0.03
CHECKPOINT_ROTS: Final = 0.03

STOPPER_HANGS_FOR: Final = 300.0
"""Who ends a dead agent that never named its life reports it so late: its successor speaks by then."""


class SimulatedOrderHandler:
    """Carries out the orders for one agent."""

    def __init__(self, agent: SimulatedAgent) -> None:
        self._agent = agent
        self._epoch = 0
        self._obeyed: dict[str, s.Signal | None] = {}
        self._waiting: dict[str, e.Terminate] = {}
        """Terminations that wait while the agent is cut off. They are the first thing it gets when it returns."""

    def obey(self, order: e.Order) -> None:
        """Carry an order out. A repeated one gets the same answer again."""
        agent = self._agent
        if order.epoch < self._epoch:
            return
        self._epoch = order.epoch
        agent.world.invariants.arrived(order)
        if agent.cuts > agent.splits and isinstance(order, e.Terminate):
            self._waiting[order.order_id] = order
            return
        if order.order_id in self._obeyed:
            outcome = self._obeyed[order.order_id]
            if outcome is not None:
                agent.world.tell(outcome, 1.0)
            return
        self._obeyed[order.order_id] = None
        agent.world.invariants.reached(order, agent)
        self._carry_out(order)

    def _carry_out(self, order: e.Order) -> None:
        match order:
            case e.SendPing():
                self._answer_ping(order)
            case e.SetInterval():
                self._follow_interval(order)
            case e.SendNudge():
                self._receive_nudge(order)
            case e.Terminate():
                self._stop(order)
            case e.Respawn():
                self._respawn(order)
            case e.AskStatus():
                self._answer_status(order)
            case e.VerifyCheckpoint():
                self._verify(order)
            case e.OfferTask() | e.AskBack():
                self._think_over(order)
            case _:
                pass

    def obey_waiting(self) -> None:
        """It can be reached again: carry out the terminations that waited, unless nobody wants them any more."""
        waiting, self._waiting = self._waiting, {}
        for order in waiting.values():
            if self._agent.world.monitor.waits_for(order):
                self.obey(order)

    def _reachable(self, order: e.Order) -> bool:
        agent = self._agent
        return agent.speaking and not agent.cuts and order.incarnation == agent.incarnation

    def _think_over(self, order: e.OfferTask | e.AskBack) -> None:
        claims = self._agent.claims
        if claims is not None and self._reachable(order):
            claims.think_over(order)

    def _answer_ping(self, order: e.SendPing) -> None:
        """Answer by a pong, and by a beat on its own connection."""
        agent, bus = self._agent, self._agent.world.bus
        if self._reachable(order) and not bus.cut and not bus.loses():
            pong = s.PongReceived(agent_id=agent.id, incarnation=agent.incarnation, seq=order.seq)
            agent.say(pong)
            if not bus.loses():
                agent.send_beat()

    def _follow_interval(self, order: e.SetInterval) -> None:
        agent = self._agent
        if self._reachable(order) and not agent.world.bus.cut and not agent.world.bus.loses():
            agent.follow_interval(order.interval)

    def _answer_status(self, order: e.AskStatus) -> None:
        agent = self._agent
        if not self._reachable(order) or agent.failure is not None:
            return
        if order.task_id == agent.task_id:
            agent.say(s.ProgressMade(agent_id=agent.id, incarnation=agent.incarnation, task_id=order.task_id))
        else:
            agent.say(s.TaskDone(agent_id=agent.id, incarnation=agent.incarnation, task_id=order.task_id))

    def _receive_nudge(self, order: e.SendNudge) -> None:
        agent, life = self._agent, order.incarnation
        if not self._reachable(order) or agent.world.bus.cut:
            failed = s.NudgeFailed(
                agent_id=agent.id, incarnation=life, order_id=order.order_id, reason="unreachable"
            )
            agent.world.tell(failed, 5.0)
            return
        delivered = s.NudgeDelivered(agent_id=agent.id, incarnation=life, order_id=order.order_id)
        agent.world.tell(delivered, 0.1)
        agent.world.at(agent.now + agent.chance.uniform(5, 60), self._read_nudge, order)

    def _read_nudge(self, order: e.SendNudge) -> None:
        agent, failure = self._agent, self._agent.failure
        if (
            not agent.heeds
            or not self._reachable(order)
            or (failure and failure.illness in (Illness.FREEZE, Illness.HUNG_CALL))
        ):
            return  # An agent reads a nudge between two calls, and there is no next one.
        agent.say(s.NudgeSeen(agent_id=agent.id, incarnation=agent.incarnation, nudge_id=order.order_id))
        if failure is None:
            self._answer(order, s.Answer.PROGRESS)
        elif agent.chance.random() < NUDGE_HELPS.get(failure.illness, 0.0):
            self._answer(order, s.Answer.PROGRESS)
            agent.come_round()
        elif agent.chance.random() < 0.2:
            answers = (s.Answer.NEED_TIME, s.Answer.HANDOFF, s.Answer.BLOCKED)
            self._answer(order, agent.chance.choice(answers))

    def _answer(self, order: e.SendNudge, answer: s.Answer) -> None:
        agent = self._agent
        agent.say(
            s.NudgeAnswered(
                agent_id=agent.id, incarnation=agent.incarnation, nudge_id=order.order_id, answer=answer
            )
        )

    def _stop(self, order: e.Terminate) -> None:
        agent = self._agent
        # Behind a split somebody ends it who does not ask it.
        asked = agent.speaking and not agent.splits
        refuses = order.on_silence and asked and order.incarnation == agent.incarnation
        if refuses or agent.chance.random() < STOP_FAILS:
            reason = "it lives" if refuses else "permission denied"
            del self._obeyed[order.order_id]  # It may be tried again.
            failed = s.TerminationFailed(
                agent_id=agent.id, incarnation=order.incarnation, order_id=order.order_id, reason=reason
            )
            agent.world.tell(failed, 5.0)
            if refuses:
                agent.speak_at_once()
            return
        saves = agent.speaking and agent.failure is None
        wait = agent.chance.uniform(1, 8) if saves or not agent.running else order.save_for
        if agent.last_words is not None and self._reachable(order):
            agent.last_words()
            wait = 0.0
        if order.incarnation is None and not agent.running:
            wait = STOPPER_HANGS_FOR
        agent.world.at(agent.now + wait, self._stopped, order)

    def _stopped(self, order: e.Terminate) -> None:
        agent = self._agent
        if agent.running and order.incarnation == agent.incarnation:
            agent.world.invariants.ended_by(order, agent)
            agent.stop()
            agent.live(iter(()))
        done = s.TerminationDone(
            agent_id=agent.id,
            incarnation=order.incarnation,
            order_id=order.order_id,
            checkpoint_id=agent.checkpoints[-1] if agent.checkpoints else None,
        )
        self._obeyed[order.order_id] = done
        agent.world.tell(done, 0.1)

    def _verify(self, order: e.VerifyCheckpoint) -> None:
        agent = self._agent
        outcome = s.CheckpointVerified(
            agent_id=agent.id,
            incarnation=order.incarnation,
            order_id=order.order_id,
            task_id=order.task_id,
            checkpoint_id=order.checkpoint_id,
            valid=agent.chance.random() >= CHECKPOINT_ROTS,
        )
        self._obeyed[order.order_id] = outcome
        agent.world.tell(outcome, 0.5)

    def _respawn(self, order: e.Respawn) -> None:
        from lifesigns.simulation.lives import biography

        agent, life = self._agent, order.incarnation
        # A starter on its own host sees that it runs.
        why = "it runs already" if agent.running else "no room on the host"
        if agent.running or agent.chance.random() < START_FAILS:
            failed = s.RespawnFailed(agent_id=agent.id, incarnation=life, order_id=order.order_id, reason=why)
            self._obeyed[order.order_id] = failed
            agent.world.tell(failed, 2.0)
            return
        started = s.RespawnStarted(agent_id=agent.id, incarnation=life, order_id=order.order_id)
        self._obeyed[order.order_id] = started
        agent.world.tell(started, 0.5)
        agent.start(order.new_incarnation)
        agent.live(biography(agent, start_in=agent.chance.uniform(3, 40)))
