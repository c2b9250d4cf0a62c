"""Executors: orders that are more than a message to the agent's side, carried out.

    Dispatcher ── take ──► which hand? ──► one task per order ──► Hand.carry_out ──► outcome ──► Hub.hear
                                               │ transient: again, a little later each time,
                                               └ while the engine waits for it

An order is tried by one task at a time, and only for as long as the engine waits for its outcome. What crashes in
between is given again with the same id, and the hand knows it by that. What can never be carried out has failed. A hand
that hangs is given up after `TRY_FOR` and asked again; at most `AT_ONCE` tries of one hand run at a time, and no hand waits for another.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from lifesigns.core.agent import Agent
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import CleanUp, Order, Respawn, SendNudge, Terminate
from lifesigns.core.signals import CleanUpFailed, NudgeFailed, RespawnFailed, Signal, TerminationFailed
from lifesigns.errors import AdapterError
from lifesigns.hub.order_ledger import OpenOrder, OrderLedger
from lifesigns.ports import NotExecuted, OrderExecutor

TRY_FOR: Final = 60.0
AT_ONCE: Final = 8
WAITS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
WAIT_MAX: Final = 300.0
"""A server may ask for patience, but somebody waits for the order it is about."""
HEAR_AGAIN_AFTER: Final = 1.0
FORCE_FOR: Final = 10.0
"""Whoever stands beside an agent (`lifesigns run`) forces it when its time to save is over, and needs a moment for that."""

log: Final = logging.getLogger("lifesigns.executors")


@dataclass(slots=True, eq=False)
class Assignment:
    """Which orders a hand carries out: of this kind, about these agents (patterns) or roles; empty is all."""

    kind: type[Order]
    executor: OrderExecutor
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tries: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    def fits(self, order: Order, role: str | None) -> bool:
        """Whether this order is for its hand."""
        return type(order) is self.kind and self.is_for(order.agent_id, role)

    def is_for(self, agent_id: str, role: str | None) -> bool:
        """Whether its hand is for this agent."""
        return (not self.agents or any(fnmatchcase(agent_id, one) for one in self.agents)) and (
            not self.roles or role in self.roles
        )


class Executors:
    """Carries open orders out. `hear` takes outcomes, and is False if there is no room for them."""

    def __init__(
        self, ledger: OrderLedger, hear: Callable[[Sequence[Signal]], bool], try_for: float = TRY_FOR
    ) -> None:
        self._ledger = ledger
        self._hear = hear
        self._try_for = try_for
        self._assignments: list[Assignment] = []

    def assign(
        self,
        kind: type[Order],
        executor: OrderExecutor,
        *,
        agents: Sequence[str] = (),
        roles: Sequence[str] = (),
    ) -> None:
        """Give orders of this kind to a hand. The first assignment that fits an order decides."""
        self._assignments.append(Assignment(kind, executor, tuple(agents), tuple(roles)))

    def cleans_up(self, agent: Agent) -> bool:
        """Whether somebody cleans up after this agent's lives. For the engine, which orders it only then."""
        return any(one.kind is CleanUp and one.is_for(agent.id, agent.role) for one in self._assignments)

    def take(self, entry: OpenOrder) -> bool:
        """Begin to carry an order out. False if that is nobody's here."""
        order = entry.order
        assignment = self._for(order)
        if assignment is None:
            return False
        if entry.trying is None:
            if isinstance(order, SendNudge):
                self._replace_nudge(order)
            entry.trying = asyncio.create_task(
                self._carry_out(order, assignment), name=f"lifesigns {order.order_id}"
            )
            entry.trying.add_done_callback(lambda task: self._ended(entry, task))
        return True

    async def close(self) -> None:
        """Stop, and close all executors. What is not done is given again by the next hub."""
        tasks = [entry.trying for entry in self._ledger if entry.trying is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for executor in {id(one.executor): one.executor for one in self._assignments}.values():
            await executor.close()

    # --- parts ----------------------------------------------------------------------------------------

    def _for(self, order: Order) -> Assignment | None:
        beliefs = self._ledger.beliefs
        if isinstance(order, Respawn) and has_supervisor(beliefs, order.agent_id):
            return None
        agent = beliefs.agents.get(order.agent_id)
        role = agent.role if agent is not None else None
        return next((one for one in self._assignments if one.fits(order, role)), None)

    def _replace_nudge(self, order: SendNudge) -> None:
        """One nudge is on its way to an agent, the newest: who was busy for half an hour is not told three times."""
        for older in self._ledger.of(order.agent_id):
            if isinstance(older.order, SendNudge) and older.trying is not None:
                self._ledger.stop_trying(older)
                if failed := given_up(older.order, "there was no moment for it before the next one"):
                    self._hear([failed])

    def _ended(self, entry: OpenOrder, task: asyncio.Task[None]) -> None:
        if entry.trying is task:
            entry.trying = None
            self._ledger.forget_idle(entry)

    async def _carry_out(self, order: Order, assignment: Assignment) -> None:
        if isinstance(order, Terminate) and self._may_save(order.agent_id):
            # It was asked by its own way, too. If it has ended by then, this is dropped.
            await asyncio.sleep(order.save_for + FORCE_FOR)
        failures = 0
        while self._ledger.awaits(order):
            try:
                outcome = await self._try(order, assignment)
            except AdapterError as error:
                if failures == 0 or not error.transient:
                    self._complain(order, error)
                if error.transient:
                    await asyncio.sleep(_wait(error, failures))
                    failures += 1
                    continue
                outcome = given_up(order, str(error))
            except (
                Exception
            ) as error:  # a bug, of ours or in a hand somebody else wrote: it is this order's alone
                log.exception(
                    "%s %s about %s raised",
                    *_named(order),
                    order.agent_id,
                    extra={"action": "executor_raised"},
                )
                outcome = given_up(order, f"{type(error).__name__}: {error}")
            if outcome is not None:
                await self._tell(outcome)
            return

    def _may_save(self, agent_id: str) -> bool:
        """Whether somebody is there who could save something."""
        agent = self._ledger.beliefs.agents.get(agent_id)
        return agent is not None and agent.alive

    async def _try(self, order: Order, assignment: Assignment) -> Signal | None:
        async with assignment.tries:
            if not self._ledger.awaits(order):
                return None  # While it waited for its turn: the agent may live again.
            try:
                async with asyncio.timeout(self._try_for):
                    return await assignment.executor.carry_out(order)
            except TimeoutError:
                raise NotExecuted(f"no outcome within {self._try_for:g} s") from None

    async def _tell(self, outcome: Signal) -> None:
        while not self._hear([outcome]):  # noqa: ASYNC110 -- nobody tells when there is room in the inbox again
            await asyncio.sleep(HEAR_AGAIN_AFTER)

    def _complain(self, order: Order, error: AdapterError) -> None:
        then = "it is tried again" if error.transient else "it is not tried again"
        log.warning(
            "%s %s about %s was not carried out: %s; %s",
            *_named(order),
            order.agent_id,
            error,
            then,
            extra={"action": "order_not_carried_out"},
        )


def has_supervisor(beliefs: Beliefs, agent_id: str) -> bool:
    """Whether this agent runs under somebody who said that it can start the agent anew: `lifesigns run --restart`
    announces that with its agent's policy. Who left a start unanswered is gone, or was seen to be."""
    lineage = beliefs.lineages.get(agent_id)
    if lineage is not None and lineage.supervisor_gone:
        return False
    own = beliefs.own_policies.get(agent_id)
    said = None if own is None else own.all_words().get("respawn")
    return isinstance(said, dict) and said.get("enabled") is True


def given_up(order: Order, reason: str) -> Signal | None:
    """The outcome of an order that can never be carried out; None if the engine finds out by waiting."""
    if isinstance(order, Respawn):
        return RespawnFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
    if isinstance(order, SendNudge):
        return NudgeFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
    if isinstance(order, CleanUp):
        return CleanUpFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
    if isinstance(order, Terminate):
        return TerminationFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
    return None


def _wait(error: AdapterError, failures: int) -> float:
    """Longer each time, and never all at once; or as long as the other side asked for."""
    if isinstance(error, NotExecuted) and error.retry_after is not None:
        return min(error.retry_after, WAIT_MAX)
    return WAITS[min(failures, len(WAITS) - 1)] * random.uniform(0.75, 1.25)  # noqa: S311 -- spreads, hides nothing


def _named(order: Order) -> tuple[str, str]:
    return type(order).__name__, order.order_id
