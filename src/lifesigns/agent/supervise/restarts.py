"""Restarts: whether and when to start an ended child again. Pure: the caller passes the time and the chance.

The law: a child that the user ended stays ended. After a failure comes a wait that doubles each time, until a life
was long enough to reset it. Too many restarts in too short a time are a crash loop: another one does not help, so the
child is quarantined.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from lifesigns.agent.supervise.settings import Restart, RestartPolicy

FORGIVING: Final = 10.0
"""A life this many times as long as the wait before it was a success: at most a tenth of the time goes to waiting."""


class Next(StrEnum):
    """What follows the end of a life."""

    NOTHING = "nothing"
    RESTART = "restart"
    QUARANTINE = "quarantine"


class Plan(Struct, frozen=True):
    """What follows, after how long, and which restart of how many it is."""

    next: Next
    wait: float = 0.0
    attempt: int = 0


class Restarts:
    """Remembers the previous lives."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._failures = 0
        self._wait = 0.0
        self._restarted_at: list[float] = []

    def ended(self, now: float, *, failed: bool, lived_for: float, chance: float) -> Plan:
        """A life ended by itself. `chance` is between 0 and 1."""
        policy = self._policy
        if policy.when is Restart.NEVER or (policy.when is Restart.ON_FAILURE and not failed):
            return Plan(Next.NOTHING)
        if lived_for >= max(policy.well_after, FORGIVING * self._wait):
            self._failures = 0
        self._restarted_at = [at for at in self._restarted_at if at > now - policy.crash_loop_window]
        if failed and len(self._restarted_at) >= policy.crash_loop_max:
            return Plan(Next.QUARANTINE, attempt=len(self._restarted_at))
        if failed:
            self._restarted_at.append(now)
        self._failures = self._failures + 1 if failed else 1
        self._wait = min(policy.wait_max, policy.wait_first * 2.0 ** min(self._failures - 1, 30))
        spread = 1 + policy.jitter * (2 * chance - 1)
        return Plan(Next.RESTART, self._wait * spread, len(self._restarted_at))
