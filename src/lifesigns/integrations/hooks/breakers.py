"""Tool breakers: one for each tool of an agent, turned by people only.

Calls of a coding agent fail all day while all is well, so failures open none of them. A breaker that a person opened refuses
calls for a while, then tries one, as every breaker does (`core/breaker.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lifesigns.core.breaker import Breaker, Permit
from lifesigns.core.effects import TurnBreaker
from lifesigns.core.policy import BreakerPolicy
from lifesigns.core.signals import (
    BreakerAct,
    BreakerNotTurned,
    BreakerReported,
    BreakerState,
    BreakerTurned,
    Signal,
)
from lifesigns.core.words import duration
from lifesigns.errors import BreakerOpen

BY_HAND: Final = BreakerPolicy(failure_threshold=1_000_000)
TOOLS_MAX: Final = 64
PERMITS_MAX: Final = 256


class ToolBreakers:
    """The breakers of all agents, and the calls they have let through."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Breaker]] = {}
        self._told: dict[tuple[str, str], BreakerState] = {}
        self._permits: dict[tuple[str, str], tuple[Breaker, Permit]] = {}

    def begin(self, agent_id: str, tool: str, call_id: str, now: float) -> str:
        """Why this call may not be made; empty if it may."""
        breaker = self._breaker(agent_id, tool)
        if breaker is None:
            return ""
        try:
            permit = breaker.permit(now)
        except BreakerOpen as refused:
            wait = duration(max(0.0, refused.until - now))
            return f"The breaker {tool!r} is open: an operator has stopped calls of this tool; one is tried in {wait}."
        while len(self._permits) >= PERMITS_MAX:
            del self._permits[next(iter(self._permits))]
        self._permits[agent_id, call_id] = breaker, permit
        return ""

    def end(self, agent_id: str, call_id: str, now: float, *, ok: bool) -> None:
        """A call has ended."""
        breaker, permit = self._permits.pop((agent_id, call_id), (None, None))
        if breaker is not None and permit is not None:
            (breaker.success if ok else breaker.failure)(permit, now)

    def turn(self, order: TurnBreaker, now: float) -> Signal:
        """A person turns one; the outcome."""
        breaker = self._of.get(order.agent_id, {}).get(order.name)
        if breaker is None:
            reason = f"it has used no tool {order.name!r} in this life"
            return BreakerNotTurned(
                agent_id=order.agent_id,
                incarnation=order.incarnation,
                order_id=order.order_id,
                reason=reason,
            )
        turns = {
            BreakerAct.OPEN: breaker.open,
            BreakerAct.CLOSE: breaker.close,
            BreakerAct.RESET: breaker.reset,
        }
        turns[order.act](now)
        return BreakerTurned(agent_id=order.agent_id, incarnation=order.incarnation, order_id=order.order_id)

    def news(self, agent_id: str, incarnation: str, now: float) -> Iterator[Signal]:
        """Those whose state is another than was last told."""
        for name, breaker in self._of.get(agent_id, {}).items():
            state = breaker.state(now)
            if self._told.get((agent_id, name)) is not state:
                self._told[agent_id, name] = state
                yield BreakerReported(
                    agent_id=agent_id,
                    incarnation=incarnation,
                    name=name,
                    state=state,
                    until=breaker.opens_until,
                )

    def forget(self, agent_id: str) -> None:
        """This life is over."""
        for name in self._of.pop(agent_id, {}):
            self._told.pop((agent_id, name), None)

    def _breaker(self, agent_id: str, tool: str) -> Breaker | None:
        known = self._of.setdefault(agent_id, {})
        if tool not in known:
            if not tool or len(known) >= TOOLS_MAX:
                return None
            known[tool] = Breaker(tool, BY_HAND)
        return known[tool]
