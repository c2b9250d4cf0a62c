"""Breaker reports: the breakers of this process, told by each of its senders.

A change is told at once, in the thread that made it; whatever is not closed is told again when the way to the hub was
lost and found, for a hub may have missed it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lifesigns.agent.breakers import BREAKERS, Registry
from lifesigns.agent.statement import text
from lifesigns.core.breaker import Turn
from lifesigns.core.signals import BreakerReported, BreakerState, Word


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
                until = None if status.until is None else time.time() + status.until - breaker.clock()
                self._report(status.name, status.state, status.failures, until)

    def _turned(self, name: str, turn: Turn) -> None:
        self._report(name, turn.now)

    def _report(self, name: str, state: BreakerState, failures: int = 0, until: float | None = None) -> None:
        self._say(
            BreakerReported(
                agent_id=self._agent_id,
                incarnation=self._incarnation,
                name=text(name),
                state=state,
                failures=failures,
                until=until,
            )
        )
