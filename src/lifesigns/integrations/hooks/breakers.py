"""Tool breakers: one for each tool of an agent, turned by people only.

Calls of a coding agent fail all day while all is well, so failures open none of them. A breaker that a person opened refuses
calls for a while, then tries one, as every breaker does (`core/breaker.py`): only of that one the outcome counts, so that there is
nothing else to remember.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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

BY_HAND: Final = BreakerPolicy()
TOOLS_MAX: Final = 64


@dataclass(slots=True)
class _ToolBreaker:
    """The breaker of one tool."""

    breaker: Breaker
    told: BreakerState | None = None
    """Its state, as it was last told."""
    tried: tuple[str, Permit] | None = None
    """The call that is tried while it is half open."""


class ToolBreakers:
    """The breakers of all agents, by agent and tool."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, _ToolBreaker]] = {}

    def begin(self, agent_id: str, tool: str, call_id: str, now: float) -> str:
        """Why this call may not be made; empty if it may."""
        known = self._known(agent_id, tool)
        if known is None:
            return ""
        try:
            permit = known.breaker.permit(now)
        except BreakerOpen as refused:
            wait = duration(max(0.0, refused.until - now))
            return f"The breaker {tool!r} is open: an operator has stopped calls of this tool; one is tried in {wait}."
        if permit.probe:
            known.tried = call_id, permit
        return ""

    def end(self, agent_id: str, tool: str, call_id: str, now: float, *, ok: bool) -> None:
        """A call has ended."""
        known = self._of.get(agent_id, {}).get(tool)
        if known is not None and known.tried is not None and known.tried[0] == call_id:
            (known.breaker.success if ok else known.breaker.failure)(known.tried[1], now)
            known.tried = None

    def turn(self, order: TurnBreaker, now: float) -> Signal:
        """A person turns one; the outcome."""
        known = self._of.get(order.agent_id, {}).get(order.name)
        if known is None:
            reason = f"it has used no tool {order.name!r} in this life"
            return BreakerNotTurned(
                agent_id=order.agent_id,
                incarnation=order.incarnation,
                order_id=order.order_id,
                reason=reason,
            )
        turns = {
            BreakerAct.OPEN: known.breaker.open,
            BreakerAct.CLOSE: known.breaker.close,
            BreakerAct.RESET: known.breaker.reset,
        }
        turns[order.act](now)
        return BreakerTurned(agent_id=order.agent_id, incarnation=order.incarnation, order_id=order.order_id)

    def news(self, agent_id: str, incarnation: str, now: float) -> Iterator[Signal]:
        """Those whose state is another than was last told."""
        for name, known in self._of.get(agent_id, {}).items():
            state = known.breaker.state(now)
            if known.told is not state:
                known.told = state
                yield BreakerReported(
                    agent_id=agent_id,
                    incarnation=incarnation,
                    name=name,
                    state=state,
                    until=known.breaker.opens_until,
                )

    def forget(self, agent_id: str) -> None:
        """This life is over."""
        self._of.pop(agent_id, None)

    def _known(self, agent_id: str, tool: str) -> _ToolBreaker | None:
        tools = self._of.setdefault(agent_id, {})
        if tool not in tools:
            if not tool or len(tools) >= TOOLS_MAX:
                return None
            tools[tool] = _ToolBreaker(Breaker(tool, BY_HAND))
        return tools[tool]
