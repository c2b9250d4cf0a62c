"""Truth: what is really wrong with an agent, known because we made it so. Reports are measured by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.effects import Kind
from lifesigns.core.policy import MINUTE, Policy
from lifesigns.core.watching import HELD_FOR_MIN


class Illness(StrEnum):
    """The ways an agent really fails here."""

    CRASH_SEEN = "crash_seen"
    """Its process ended, and a supervisor saw it."""
    CRASH = "crash"
    """Its process ended unseen."""
    FREEZE = "freeze"
    HANG = "hang"
    HUNG_CALL = "hung_call"
    """It hangs inside an announced call."""
    STALE = "stale"
    """It makes calls and saves nothing."""
    LATE = "late"
    """Its task is overdue, and it reports nothing about it."""
    SPIN = "spin"
    """It burns CPU and prints nothing."""
    OVERLOAD = "overload"
    SELF_REPORTED = "self_reported"
    """It reports itself that something is wrong."""
    TALK = "talk"
    """It calls its model again and again, and does nothing else."""
    LOOP = "loop"
    ERRORS = "errors"
    CONTEXT = "context"
    """Its context window is full, and stays so."""
    SPENDING = "spending"
    NEVER_STARTED = "never_started"
    CUT = "cut"
    """It is well, but nobody can reach it."""


STALLS: Final = frozenset(
    {
        Kind.NO_TOOL_CALL,
        Kind.NO_CHECKPOINT,
        Kind.NO_TOKENS,
        Kind.NO_OUTPUT,
        Kind.REPEATED_OUTPUT,
        Kind.TASK_STALLED,
    }
)

SHOWS_AS: Final[Mapping[Illness, frozenset[Kind]]] = {
    Illness.CRASH_SEEN: frozenset({Kind.EXIT, Kind.SILENCE}),
    Illness.CRASH: frozenset({Kind.SILENCE}),
    Illness.FREEZE: frozenset({Kind.FREEZE}),
    Illness.HANG: STALLS,
    Illness.HUNG_CALL: frozenset({Kind.LONG_CALL, Kind.TASK_STALLED}),
    Illness.STALE: frozenset({Kind.NO_CHECKPOINT, Kind.TASK_STALLED}),
    Illness.LATE: frozenset({Kind.TASK_STALLED}),
    Illness.SPIN: frozenset({Kind.SPINNING, Kind.OVERLOAD}),
    Illness.OVERLOAD: frozenset({Kind.OVERLOAD}),
    Illness.SELF_REPORTED: frozenset({Kind.SELF_REPORTED}),
    Illness.TALK: frozenset({Kind.LOOPING}),
    Illness.LOOP: frozenset({Kind.LOOPING}),
    Illness.ERRORS: frozenset({Kind.ERRORS, Kind.LOOPING}),
    Illness.CONTEXT: frozenset({Kind.CONTEXT, Kind.ERRORS}),
    Illness.SPENDING: frozenset({Kind.SPENDING}),
    Illness.NEVER_STARTED: frozenset({Kind.NEVER_STARTED}),
    Illness.CUT: frozenset({Kind.SILENCE}),
}
"""The findings that name an illness correctly."""

REPORTED_BY: Final[Mapping[Illness, type[s.Signal]]] = {
    Illness.CRASH_SEEN: s.ProcessExited,
    Illness.NEVER_STARTED: s.AgentRegistered,
}
"""Illnesses that only a report reveals: their time begins with it."""

SILENT: Final = frozenset({Illness.CRASH, Illness.CUT})
"""Illnesses that show as silence: their time begins with the last signal."""

AT_ONCE: Final = 2.0
"""Found when the report arrives, and no later than the bus takes."""

LENIENCY: Final = 5 * MINUTE
"""How long after its threshold a stuck agent may stay unfound."""


@dataclass(slots=True)
class Failure:
    """One time an agent was really unwell."""

    agent_id: str
    illness: Illness
    since: float
    due_at: float
    """When it must be found at the latest; later if the monitor itself could not see."""
    found_at: float | None = None
    acted_at: float | None = None
    ended_at: float | None = None

    @property
    def late(self) -> bool:
        """Found, but too late."""
        return self.found_at is not None and self.found_at > self.due_at

    def missed(self, now: float) -> bool:
        """Not found, though it lasted long enough."""
        return self.found_at is None and self.due_at < (self.ended_at or now)

    def __str__(self) -> str:
        found = "not found" if self.found_at is None else f"found at {self.found_at:.0f} s"
        return f"{self.since:.0f} s: {self.agent_id}: {self.illness}, due at {self.due_at:.0f} s, {found}"


def bound(illness: Illness, policy: Policy, *, shaken: bool = False, late_host: bool = False) -> float:
    """How long after its onset a failure may stay unfound; `inf` where the onset is not what counts.

    `shaken`: the monitor had reason to doubt itself lately, and every wait for an answer may be nine times as long (a
    self-health score of 8). `late_host`: its whole host was late, and its verdict waited once more.
    """
    silence = policy.silence
    if illness in SILENT:
        held_for = max(HELD_FOR_MIN, silence.timeout) if late_host else 0.0
        if shaken:
            return silence.suspect_after + silence.pings * silence.ping_wait * 9 + AT_ONCE + held_for
        return silence.timeout + 2 * silence.ping_wait + held_for
    waits: dict[Illness, float] = {
        Illness.CRASH_SEEN: AT_ONCE,
        Illness.FREEZE: policy.freeze.after + 2 * silence.interval + AT_ONCE,
        Illness.HANG: max(policy.stall.tool_call_after, policy.stall.checkpoint_degraded_after) + LENIENCY,
        Illness.HUNG_CALL: policy.stall.call_max + LENIENCY,
        Illness.STALE: policy.stall.checkpoint_degraded_after + LENIENCY,
        Illness.NEVER_STARTED: silence.grace + AT_ONCE,
    }
    # A loop, an error storm and a runaway are due when they have done enough to be visible: their lives say when.
    return waits.get(illness, inf)
