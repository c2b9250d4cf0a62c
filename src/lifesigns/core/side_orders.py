"""Side orders: orders beside the ladder. A person turns an agent's breaker; the hub cleans up after a life.

The law: a side order is given once and is over with its outcome, or without an answer in time; every stage is on
record. The newest order about a breaker counts. There is one clean-up per life that is known to be over, none while
the agent lives: a successor waits for it, and a life that begins by itself cancels it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.deadlines import Deadlines
from lifesigns.core.effects import CleanUp, Intervention, NeedsHuman, Rung, Stage, TurnBreaker
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import MINUTE
from lifesigns.core.signals import BreakerAct, BreakerTurnRequested
from lifesigns.core.words import duration

TURN_FOR = 10 * MINUTE
"""How long an agent may take to turn a breaker. After a longer absence the order no longer fits the situation."""


@dataclass(slots=True)
class SideOrder:
    """An order without an outcome yet."""

    id: str
    agent_id: str
    rung: Rung
    order: int
    given_at: float
    wait: float
    text: str
    """The order in words."""
    name: str = ""
    """The breaker it is about."""
    key: str = ""
    """The idempotency key of a person's request."""
    armed_at: float = NEVER


Table = dict[str, dict[str, SideOrder]]
"""Open side orders by agent and order id."""


class SideOrders:
    """Gives side orders and handles their outcomes. `next_order` numbers items with deadlines."""

    def __init__(
        self,
        outbox: Outbox,
        awareness: Awareness,
        deadlines: Deadlines,
        table: Table,
        next_order: Callable[[], int],
    ) -> None:
        self._outbox = outbox
        self._awareness = awareness
        self._deadlines = deadlines
        self._table = table
        self._next_order = next_order
        self.cleans_up: Callable[[Agent], bool] = lambda _: False
        """Whether the hub cleans up after this agent's lives."""

    def due_at(self, side_order: SideOrder) -> float:
        """When we stop waiting for an answer."""
        return self._awareness.due(side_order.given_at, side_order.wait)

    # --- giving -------------------------------------------------------------------------------------

    def turn_breaker(self, agent: Agent, wish: BreakerTurnRequested, now: float) -> None:
        """A person wants a breaker turned, once per key; this cancels earlier orders about it."""
        text = turn_text(wish.act, wish.name, wish.reason)
        for known in self._of(agent, Rung.BREAKER):
            if known.name != wish.name:
                continue
            if wish.key and (known.key, known.text) == (wish.key, text):
                return
            self._end(known, Stage.DROPPED, now, f"replaced by {wish.by or 'a person'}")
        order = self._outbox.order(TurnBreaker, agent, now, name=wish.name, act=wish.act, by=wish.by)
        side_order = SideOrder(
            order.order_id,
            agent.id,
            Rung.BREAKER,
            self._next_order(),
            now,
            TURN_FOR,
            text,
            wish.name,
            wish.key,
        )
        self._give(side_order, wish.by)
        agent.past = replace(agent.past, interventions=agent.past.interventions + 1)

    def clean_up(
        self,
        agent: Agent,
        why: str,
        now: float,
        *,
        wait: float,
        task_id: str | None,
        checkpoint_id: str | None,
    ) -> bool:
        """This life is known to be over: order a clean-up, if the hub does that. Returns whether it was ordered."""
        if not self.cleans_up(agent):
            return False
        order = self._outbox.order(
            CleanUp, agent, now, task_id=task_id, checkpoint_id=checkpoint_id, reason=why
        )
        text = f"clean up: {why}"
        self._give(SideOrder(order.order_id, agent.id, Rung.CLEANUP, self._next_order(), now, wait, text))
        return True

    def is_cleaning_up(self, agent: Agent) -> bool:
        """Whether the clean-up after this agent's last life is still under way."""
        return any(True for _ in self._of(agent, Rung.CLEANUP))

    # --- outcomes -----------------------------------------------------------------------------------

    def done(self, agent: Agent, order_id: str, now: float) -> bool:
        """The order was carried out. False if it is not open."""
        side_order = self._table.get(agent.id, {}).get(order_id)
        if side_order is not None:
            self._end(side_order, Stage.DONE, now, side_order.text)
        return side_order is not None

    def failed(self, agent: Agent, order_id: str, reason: str, now: float) -> bool:
        """The order can never be carried out. False if it is not open."""
        side_order = self._table.get(agent.id, {}).get(order_id)
        if side_order is not None:
            self._give_up(side_order, reason, now)
        return side_order is not None

    def overdue(self, side_order: SideOrder, now: float) -> None:
        """Nobody answered in time."""
        self._give_up(side_order, f"no outcome within {duration(side_order.wait)}", now)

    def drop(self, agent: Agent, now: float, why: str, *rungs: Rung) -> None:
        """Cancel the side orders of a life that is over, or that a new life makes pointless."""
        for side_order in [one for rung in rungs for one in self._of(agent, rung)]:
            self._end(side_order, Stage.DROPPED, now, why)

    # --- parts --------------------------------------------------------------------------------------

    def _of(self, agent: Agent, rung: Rung) -> Iterator[SideOrder]:
        mine = self._table.get(agent.id)
        return iter([side_order for side_order in mine.values() if side_order.rung is rung] if mine else ())

    def _give(self, side_order: SideOrder, by: str = "") -> None:
        self._table.setdefault(side_order.agent_id, {})[side_order.id] = side_order
        self._deadlines.arm(side_order, self.due_at(side_order))
        self._record(side_order, Stage.ORDERED, side_order.given_at, side_order.text, by, side_order.key)

    def _give_up(self, side_order: SideOrder, reason: str, now: float) -> None:
        self._end(side_order, Stage.FAILED, now, reason)
        if side_order.rung is Rung.CLEANUP:
            text = f"What {side_order.agent_id} left behind was not cleaned up: {reason}"
            self._outbox.fact(NeedsHuman(now, side_order.agent_id, "not_cleaned_up", text))

    def _end(self, side_order: SideOrder, stage: Stage, now: float, text: str) -> None:
        side_order.armed_at = NEVER
        mine = self._table[side_order.agent_id]
        del mine[side_order.id]
        if not mine:
            del self._table[side_order.agent_id]
        self._record(side_order, stage, now, text)

    def _record(
        self, side_order: SideOrder, stage: Stage, now: float, text: str, by: str = "", key: str = ""
    ) -> None:
        self._outbox.fact(
            Intervention(now, side_order.agent_id, side_order.id, side_order.rung, stage, 1, text, by, key)
        )


def turn_text(act: BreakerAct, name: str, reason: str = "") -> str:
    """The fact that records this stage."""
    return f"{act} breaker {name!r}" + (f": {reason}" if reason else "")
