"""Breaker reports: each sender reports the breakers of its process, and turns them on the hub's order.

It reports a change at once, in the thread that made it. It reports all breakers when the sender starts, and again
after each lost connection, because the hub may have missed something; a later breaker when it first turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Final

from lifesigns.agent.guard.breakers import BREAKERS, Registry
from lifesigns.agent.sender.beat_builder import text
from lifesigns.core.breaker import BreakerStatus, Turn
from lifesigns.core.signals import BreakerAct, BreakerReported, BreakerState, Report

if TYPE_CHECKING:
    from lifesigns.agent.guard.guard import Breaker

CLOSED_MAX: Final = 64
"""How many closed breakers we report: as many as a hub remembers of one agent. A process may have a thousand."""


class BreakerReports:
    """Reports the breakers in a registry, from `begin` to `end`."""

    def __init__(
        self, agent_id: str, incarnation: str, say: Callable[[Report], None], registry: Registry = BREAKERS
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
        """Report all breakers as they are now, those that are not closed first."""
        known = [(breaker, breaker.status()) for breaker in self._registry.all()]
        closed = [one for one in known if one[1].state is BreakerState.CLOSED]
        others = [one for one in known if one[1].state is not BreakerState.CLOSED]
        for breaker, status in (*others, *closed[:CLOSED_MAX]):
            self._report(breaker, status, status.state)

    def turn(self, name: str, act: BreakerAct) -> bool:
        """Reset, open or close a breaker, and report its new state. False if there is none of this name."""
        breaker = self._registry.get(name)
        if breaker is None:
            return False
        match act:
            case BreakerAct.RESET:
                breaker.reset()
            case BreakerAct.OPEN:
                breaker.open()
            case BreakerAct.CLOSE:
                breaker.close()
        status = breaker.status()  # Opening an open breaker restarts its wait, which is no turn.
        self._report(breaker, status, status.state)
        return True

    def _turned(self, name: str, turn: Turn) -> None:
        breaker = self._registry.get(name)
        if breaker is not None:
            self._report(breaker, breaker.status(), turn.now)

    def _report(self, breaker: Breaker, status: BreakerStatus, state: BreakerState) -> None:
        """`state` may already be older than the status; then the next turn follows right after this one."""
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
