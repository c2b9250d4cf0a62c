"""A Python function as an executor, for hubs that run inside a program of yours.

    async def start(order: Respawn) -> None: ...

    service.executors.assign(Respawn, FunctionExecutor(start), agents=["coder-*"])

It may be async or plain; a plain one runs in a thread. It returns the outcome: a signal, a `Decision` about an
escalation, or None, which means done. An exception is a permanent failure, unless it is a transient `AdapterError`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, cast

from lifesigns.adapters.executors.order_webhook import started
from lifesigns.core.effects import Escalate, Order, Respawn, SendNudge
from lifesigns.core.signals import Decision, EscalationDecided, NudgeDelivered, OrderOutcome, Signal
from lifesigns.errors import UsageError
from lifesigns.ports import sameness


class FunctionExecutor:
    """Calls `function` with each order: one call at a time for one order, and another only if that failed.

    After a crash of the hub it may get an order again whose outcome was lost: `ports.sameness`, or a respawn's
    `new_incarnation`, identifies it.
    """

    def __init__(self, function: Callable[[Any], Any], *, name: str = "orchestrator") -> None:
        self._function = function
        self._name = name
        self._calls: dict[str, asyncio.Task[Any]] = {}

    async def carry_out(self, order: Order) -> Signal | None:
        """Call it, or wait for the running call: a caller that gave up waiting has not ended it."""
        key = sameness(order)
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = asyncio.create_task(self._call(order))
            call.add_done_callback(lambda _: self._calls.pop(key, None))
        return self._outcome(order, await asyncio.shield(call))

    async def close(self) -> None:
        """Cancel calls that still run."""
        calls = list(self._calls.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def _call(self, order: Order) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(order)
        result = await asyncio.to_thread(self._function, order)
        return await result if inspect.isawaitable(result) else result

    def _outcome(self, order: Order, result: Any) -> Signal | None:
        if isinstance(result, OrderOutcome):
            return cast("Signal", result)
        if isinstance(order, Escalate) and result is not None:
            if result not in list(Decision):
                raise UsageError(f"it decides {result!r}, but that needs to be one of {', '.join(Decision)}")
            return EscalationDecided(
                agent_id=order.agent_id, order_id=order.order_id, decision=Decision(result), by=self._name
            )
        if isinstance(order, Respawn):
            return started(order)
        if isinstance(order, SendNudge):
            return NudgeDelivered(agent_id=order.agent_id, order_id=order.order_id)
        return None
