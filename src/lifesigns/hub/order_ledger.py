"""The order ledger: each open order, and how far it came.

    Hub ── open ──► stored ──► offered to the agent's side ──► acknowledged ──► settled: its outcome arrived,
                      └─────► tried by an executor ───────────────────────────► or the engine no longer waits for it

Dispatcher, executors, long polls and the store share this one table. Every order ends by `settle`: the hub offers it no
more, no executor tries it, and the store does not return it after a restart. To fetch an order is not to take it: it
stays offered until the agent's side acknowledges it. A ping loses its worth at once, so the newest replaces the one
before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from lifesigns.core import effects as e
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import Order
from lifesigns.core.health import Phase
from lifesigns.core.signals import OrderOutcome, PongReceived, Signal
from lifesigns.hub.clock import Clock
from lifesigns.ports import StoredOrder

PER_AGENT_MAX: Final = 64
"""The ladder gives one order at a time; an agent with more open orders than this never fetches them."""

PING_FOR: Final = 60.0
UNANSWERED_FOR: Final = 600.0
"""An order without an outcome (`replaced`) is over after this."""

NOT_STORED: Final = (e.SendPing, e.SetInterval, e.Withdraw)
"""A ping and an interval lose their worth at once, and a `Withdraw` follows from what is stored."""

_KINDS: Final = {
    kind.__name__: kind
    for kind in (
        e.SendNudge,
        e.Escalate,
        e.Terminate,
        e.VerifyCheckpoint,
        e.Respawn,
        e.ReleaseClaim,
        e.Remind,
        e.EscalateMessage,
        e.AskStatus,
        e.OfferTask,
        e.AskBack,
        e.StopStranger,
        e.TurnBreaker,
        e.CleanUp,
    )
}
_encode: Final = msgspec.json.Encoder().encode


@dataclass(slots=True, eq=False)
class OpenOrder:
    """An open order."""

    order: Order
    published_at: float
    stored: bool
    """The store would return it after a restart."""
    offered: bool = False
    """Waiting for the agent's side to fetch it."""
    trying: asyncio.Task[None] | None = None
    """The task in which an executor carries it out."""


class OrderLedger:
    """All open orders, by agent and id. `settle_stored` gets the ids that the store need not return."""

    def __init__(self, settle_stored: Callable[[str], None], clock: Clock) -> None:
        self.beliefs = Beliefs()
        """The engine's beliefs, which say what it waits for."""
        self._settle_stored = settle_stored
        self.now = clock
        self._open: dict[str, dict[str, OpenOrder]] = {}
        self.polls: dict[str, set[asyncio.Future[None]]] = {}
        """Long polls, by the agents they are for."""
        self._ended = False

    # --- an order's life ------------------------------------------------------------------------------

    def open(self, order: Order) -> OpenOrder | None:
        """Open an order for delivery. None if the engine withdrew it before it was stored, or by a hub that crashed
        before storing that."""
        if not self.awaits(order):
            self._settle_stored(order.order_id)
            return None
        opened = OpenOrder(order, self.now(), not isinstance(order, NOT_STORED))
        return self._open.setdefault(order.agent_id, {}).setdefault(order.order_id, opened)

    def offer(self, entry: OpenOrder) -> None:
        """Offer it to the agent's side, and wake the long polls for it."""
        agent_id = entry.order.agent_id
        if isinstance(entry.order, e.SendPing):
            self.drop_pings(agent_id, entry)
        elif isinstance(entry.order, e.SetInterval):
            self._drop_intervals(agent_id, entry)
        offered = [one for one in self.of(agent_id) if one.offered]
        for oldest in offered[: max(0, len(offered) + 1 - PER_AGENT_MAX)]:
            oldest.offered = False
            self.forget_idle(oldest)
        entry.offered = True
        for waiting in self.polls.pop(agent_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def acknowledge(self, agent_id: str, order_id: str) -> OpenOrder | None:
        """The agent's side has it and carries it out: do not offer it again. None if it was not offered."""
        entry = self.find(agent_id, order_id)
        if entry is None or not entry.offered:
            return None
        entry.offered = False
        self._unstore(entry)
        self.forget_idle(entry)
        return entry

    def note_report(self, report: Signal) -> None:
        """Settle the order whose outcome this is, if it is from the order's own agent."""
        if isinstance(report, PongReceived):
            self.drop_pings(report.agent_id, answered=report.seq)
        elif isinstance(report, OrderOutcome):
            self.settle(report.agent_id, report.order_id)

    def has_any_of(self, agent_id: str) -> bool:
        """Whether an order of this agent is open."""
        return agent_id in self._open

    def settle(self, agent_id: str, order_id: str) -> OpenOrder | None:
        """End it. None if it was over before."""
        mine = self._open.get(agent_id, {})
        entry = mine.pop(order_id, None)
        if entry is None:
            return None
        if not mine:
            del self._open[agent_id]
        entry.offered = False
        self._unstore(entry)
        self.stop_trying(entry)
        return entry

    def _unstore(self, entry: OpenOrder) -> None:
        if entry.stored:
            entry.stored = False
            self._settle_stored(entry.order.order_id)

    def stop_trying(self, entry: OpenOrder) -> None:
        task, entry.trying = entry.trying, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def forget_idle(self, entry: OpenOrder) -> None:
        """Settle it unless the store, the agent's side or an executor still has it."""
        if not (entry.stored or entry.offered or entry.trying):
            self.settle(entry.order.agent_id, entry.order.order_id)

    def drop_pings(
        self, agent_id: str, spare: OpenOrder | None = None, *, answered: int | None = None
    ) -> None:
        """Settle the pings of an agent, after a pong or for a newer ping: the agent's side does not acknowledge
        pings. A pong that says which one it answers does not settle a later one."""
        for one in self.of(agent_id):
            order = one.order
            if isinstance(order, e.SendPing) and one is not spare and not (answered and answered < order.seq):
                self.settle(agent_id, order.order_id)

    def _drop_intervals(self, agent_id: str, newest: OpenOrder) -> None:
        """Settle what was told before: only the newest word counts."""
        for one in self.of(agent_id):
            if isinstance(one.order, e.SetInterval) and one is not newest:
                self.settle(agent_id, one.order.order_id)

    def stand_down(self) -> None:
        """Another hub acts now: offer and try nothing more. What is stored is that hub's."""
        for entry in self:
            entry.offered = entry.stored = False
            self.stop_trying(entry)
        self._open.clear()

    # --- who asks -------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[OpenOrder]:
        return iter([entry for mine in self._open.values() for entry in mine.values()])

    def __bool__(self) -> bool:
        return bool(self._open)

    def of(self, agent_id: str) -> list[OpenOrder]:
        """The open orders of an agent, oldest first."""
        return list(self._open.get(agent_id, {}).values())

    def find(self, agent_id: str, order_id: str) -> OpenOrder | None:
        return self._open.get(agent_id, {}).get(order_id)

    def awaits(self, order: Order) -> bool:
        """Whether the engine still waits for the outcome of this order."""
        return awaited(order, self.beliefs, self.now())

    @property
    def offered(self) -> int:
        """How many orders wait to be fetched."""
        return sum(entry.offered for entry in self)

    def waiting_for(self, agent_ids: Collection[str], exclude: Sequence[str] = ()) -> dict[str, list[Order]]:
        """The offered orders of these agents, oldest first, without those they have declined. The answer to a beat that
        refutes an order comes without it."""
        found: dict[str, list[Order]] = {}
        for agent_id in agent_ids if self._open else ():
            if agent_id in self._open:
                orders = [one.order for one in self.of(agent_id) if one.offered and self.awaits(one.order)]
                if orders := [order for order in orders if order.order_id not in exclude]:
                    found[agent_id] = orders
        return found

    async def wait(self, agent_ids: Iterable[str], wait_for: float) -> None:
        """Return when one of these agents is offered an order, or after a while, or when the hub stops."""
        if self._ended:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        names = tuple(agent_ids)
        for name in names:
            self.polls.setdefault(name, set()).add(woken)
        try:
            async with asyncio.timeout(wait_for):
                await woken
        except TimeoutError:
            pass
        finally:
            for name in names:
                others = self.polls.get(name)
                if others is not None:
                    others.discard(woken)
                    if not others:
                        del self.polls[name]

    def end(self) -> None:
        """The hub stops: end all long polls."""
        self._ended = True
        for waiting in (one for many in self.polls.values() for one in many):
            if not waiting.done():
                waiting.set_result(None)


# --- orders as the store has them -----------------------------------------------------------------------


def stored_order(order: Order) -> StoredOrder:
    """An order encoded for the store."""
    data = _encode([type(order).__name__, order])
    return StoredOrder(order.order_id, order.at, order.agent_id, data)


def open_order(stored: StoredOrder) -> Order | None:
    """An order of the hub before us without an outcome. None if this lifesigns does not know its kind."""
    name, fields = msgspec.json.decode(stored.data, type=tuple[str, msgspec.Raw])
    kind: Any = _KINDS.get(name)
    if kind is None:
        return None
    order: Order = msgspec.json.decode(fields, type=kind)
    return order


def awaited(order: Order, beliefs: Beliefs, now: float) -> bool:
    """Whether the engine still waits for the outcome of this order."""
    match order:
        case e.SendPing() | e.SetInterval():
            return now - order.at <= PING_FOR
        case e.SendNudge() | e.Escalate() | e.Terminate():
            agent = beliefs.agents.get(order.agent_id)
            case = agent.case if agent is not None else None
            return case is not None and order.order_id == case.order_id
        case e.Respawn() | e.VerifyCheckpoint():
            lineage = beliefs.lineages.get(order.agent_id)
            return (
                lineage is not None
                and lineage.order_id == order.order_id
                and lineage.phase
                in (Phase.VERIFYING, Phase.STARTING)  # else the agent has recovered by itself
            )
        case e.TurnBreaker() | e.CleanUp():
            return order.order_id in beliefs.side_orders.get(order.agent_id, ())
        case e.AskStatus():
            return now < order.answer_by
        case e.OfferTask():
            return now < order.answer_by and order.task_id not in beliefs.claims
        case e.AskBack():
            claim = beliefs.claims.get(order.task_id)
            return now < order.answer_by and claim is not None and claim.token == order.token
        case e.Remind():
            return order.message_id in beliefs.messages and now - order.at < UNANSWERED_FOR
        case _:
            return now - order.at < UNANSWERED_FOR
