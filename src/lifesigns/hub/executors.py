"""Executors: carry out the orders that are more than a message to the agent's side.

    Dispatcher ── take ──► assignment ──► one task per order ──► OrderExecutor.carry_out ──► outcome ──► Hub.hear
                                               │ transient: again, a little later each time,
                                               └ while the engine waits for it

One task at a time tries an order, and only while the engine waits for its outcome. After a crash the next hub repeats
the order with the same id, and the executor recognises it by that. An order that can never be carried out has failed.
The hub gives up a try that hangs after `TRY_FOR`, and tries again; at most `AT_ONCE` tries of one executor run at a
time, and no executor waits for another.
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
from lifesigns.core.effects import AskStatus, CleanUp, Order, Remind, Respawn, SendNudge, SendPing, Terminate
from lifesigns.core.signals import CleanUpFailed, NudgeFailed, RespawnFailed, Signal, TerminationFailed
from lifesigns.errors import AdapterError
from lifesigns.hub.order_ledger import OpenOrder, OrderLedger
from lifesigns.ports import NotExecuted, OrderExecutor
from lifesigns.ports.correlation import correlation_id

TRY_FOR: Final = 60.0
AT_ONCE: Final = 8
WAITS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
WAIT_MAX: Final = 300.0
"""A server may ask us to wait, but the engine waits for the outcome."""
HEAR_AGAIN_AFTER: Final = 1.0
FORCE_FOR: Final = 10.0
"""A supervisor (`lifesigns run`) forces its agent when the time to save is over, and needs a moment for that."""

NO_OUTCOME: Final = (SendPing, AskStatus, Remind)
"""Orders that are done when they are delivered: the agent's answer is a signal of its own."""

log: Final = logging.getLogger("lifesigns.executors")


@dataclass(slots=True, eq=False)
class Assignment:
    """Which orders an executor carries out: of this kind, about these agents (patterns) or roles; empty is all."""

    kind: type[Order]
    executor: OrderExecutor
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    reaches: Callable[[str], bool] | None = None
    """Whether it reaches an agent; None if it reaches all."""
    tries: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    def fits(self, order: Order, role: str | None) -> bool:
        """Whether its executor carries out this order."""
        return type(order) is self.kind and self.is_for(order.agent_id, role)

    def is_for(self, agent_id: str, role: str | None) -> bool:
        """Whether its executor serves this agent."""
        if self.reaches is not None and not self.reaches(agent_id):
            return False
        return (not self.agents or any(fnmatchcase(agent_id, pattern) for pattern in self.agents)) and (
            not self.roles or role in self.roles
        )


class Executors:
    """Carries open orders out. `hear` takes outcomes; False means that it had no room for them."""

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
        reaches: Callable[[str], bool] | None = None,
    ) -> None:
        """Assign orders of this kind to an executor. The first assignment that fits an order decides."""
        self._assignments.append(Assignment(kind, executor, tuple(agents), tuple(roles), reaches))

    def cleans_up(self, agent: Agent) -> bool:
        """Whether an executor cleans up after this agent's incarnations. The engine orders it only then."""
        return any(
            assignment.kind is CleanUp and assignment.is_for(agent.id, agent.role)
            for assignment in self._assignments
        )

    def take(self, entry: OpenOrder) -> bool:
        """Begin to carry an order out. False if no executor is assigned."""
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
        """Stop, and close all executors. The next hub repeats what is not done."""
        tasks = [entry.trying for entry in self._ledger if entry.trying is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for executor in {
            id(assignment.executor): assignment.executor for assignment in self._assignments
        }.values():
            await executor.close()

    # --- parts ----------------------------------------------------------------------------------------

    def _for(self, order: Order) -> Assignment | None:
        beliefs = self._ledger.beliefs
        if isinstance(order, Respawn) and has_supervisor(beliefs, order.agent_id):
            return None
        agent = beliefs.agents.get(order.agent_id)
        role = agent.role if agent is not None else None
        return next((assignment for assignment in self._assignments if assignment.fits(order, role)), None)

    def _replace_nudge(self, order: SendNudge) -> None:
        """Only the newest nudge of an agent is tried: one that was busy for half an hour must not get three."""
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
        correlation_id.set(order.order_id)  # A task has its own context: this ends with it.
        if isinstance(order, Terminate) and self._may_save(order.agent_id):
            # The agent's side got the order, too. If the agent ends in time, this try is dropped.
            await asyncio.sleep(order.save_for + FORCE_FOR)
        failures = 0
        while self._ledger.awaits(order):
            try:
                outcome = await self._try(order, assignment)
            except AdapterError as error:
                if failures == 0 or not error.transient:
                    self._log_failure(order, error)
                if error.transient:
                    await asyncio.sleep(_wait(error, failures))
                    failures += 1
                    continue
                outcome = given_up(order, str(error))
            except (
                Exception
            ) as error:  # A bug, of ours or in an executor of another author: it fails this order alone.
                log.exception(
                    "%s %s about %s raised",
                    *_named(order),
                    order.agent_id,
                    extra={"action": "executor_raised"},
                )
                outcome = given_up(order, f"{type(error).__name__}: {error}")
            if outcome is not None:
                await self._report(outcome)
            elif isinstance(order, NO_OUTCOME):
                self._ledger.settle(order.agent_id, order.order_id)
            return

    def _may_save(self, agent_id: str) -> bool:
        """Whether the agent lives and could save something."""
        agent = self._ledger.beliefs.agents.get(agent_id)
        return agent is not None and agent.alive

    async def _try(self, order: Order, assignment: Assignment) -> Signal | None:
        async with assignment.tries:
            if not self._ledger.awaits(order):
                return None  # The agent may have recovered while the order waited for its turn.
            try:
                async with asyncio.timeout(self._try_for):
                    return await assignment.executor.carry_out(order)
            except TimeoutError:
                raise NotExecuted(f"no outcome within {self._try_for:g} s") from None

    async def _report(self, outcome: Signal) -> None:
        while not self._hear([outcome]):  # noqa: ASYNC110 -- nobody tells when there is room in the inbox again
            await asyncio.sleep(HEAR_AGAIN_AFTER)

    def _log_failure(self, order: Order, error: AdapterError) -> None:
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
    """Whether this agent has a supervisor that can restart it: `lifesigns run --restart` announces that with its
    agent's policy. A supervisor that left a start unanswered, or that was seen to end, is gone."""
    lineage = beliefs.lineages.get(agent_id)
    if lineage is not None and lineage.supervisor_gone:
        return False
    own = beliefs.own_policies.get(agent_id)
    respawn = None if own is None else own.all_words().get("respawn")
    return isinstance(respawn, dict) and respawn.get("enabled") is True


def given_up(order: Order, reason: str) -> Signal | None:
    """The failure of an order that can never be carried out; None if the engine notices by waiting."""
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
    """Longer each time, with jitter; or as long as the other side asked for."""
    if isinstance(error, NotExecuted) and error.retry_after is not None:
        return min(error.retry_after, WAIT_MAX)
    return WAITS[min(failures, len(WAITS) - 1)] * random.uniform(0.75, 1.25)  # noqa: S311 -- spreads, hides nothing


def _named(order: Order) -> tuple[str, str]:
    return type(order).__name__, order.order_id
