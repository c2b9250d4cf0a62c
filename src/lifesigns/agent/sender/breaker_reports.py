"""Breaker reports: the breakers of this process, told by each of its senders.

A change is told at once, in the thread that made it; whatever is not closed is told again when the way to the hub was
lost and found, for a hub may have missed it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING

from lifesigns.agent.guard.breakers import BREAKERS, Registry
from lifesigns.agent.sender.statement import text
from lifesigns.core.breaker import BreakerStatus, Turn
from lifesigns.core.signals import BreakerReported, BreakerState, Word

if TYPE_CHECKING:
    from lifesigns.agent.guard.guard import Breaker


class BreakerReports:
    """Tells of the breakers in a registry, from `begin` to `end`."""

    def __init__(
        self, agent_id: str, incarnation: str, say: Callable[[Word], None], registry: Registry = BREAKERS
    ) -> None:
        self._agent_id, self._incarnation = agent_id, incarnation
        self._say = say
        self._registry = registry
        self._unwatch: Callable[[], None] | None = None

    def begin(self) -> None:
        self._unwatch = self._registry.watch(self._turned)

    def end(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    def tell_all(self) -> None:
        """Those that are not closed, as they are now."""
        for breaker in self._registry.all():
            status = breaker.status()
            if status.state is not BreakerState.CLOSED:
                self._report(breaker, status, status.state)

    def _turned(self, name: str, turn: Turn) -> None:
        breaker = self._registry.get(name)
        if breaker is not None:
            self._report(breaker, breaker.status(), turn.now)

    def _report(self, breaker: Breaker, status: BreakerStatus, state: BreakerState) -> None:
        """`state` may be behind the status already; then the next turn is told right after this one."""
        until = status.until
        if until is not None:  # Forced open has no end.
            until = time.time() + until - breaker.clock() if isfinite(until) else None
        self._say(
            BreakerReported(
                agent_id=self._agent_id,
                incarnation=self._incarnation,
                name=text(breaker.name),
                state=state,
                failures=status.failures,
                until=until,
            )
        )
