"""Rhythm: how often an agent beats, and the policy that goes with that promise.

A hub that expects a beat every 5 s would doubt an agent that beats every minute. So an agent with a rhythm of its own
announces it, with the waits that fit it. An agent without one beats as `swarm`, the default of every hub, and leaves
the policy to the hub.

Within its policy an agent beats faster when the hub asks about it or it is unwell, because then every beat is news,
and slower when it has been idle for long, because then none is. All agents of a process with the same rhythm beat on
one grid, so that they wake the process once and go out as one message.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import floor, isfinite
from typing import Any, Final

from msgspec import Struct

from lifesigns.core.policy import Policy
from lifesigns.core.profiles import DEFAULT_PROFILE, PROFILES, profile
from lifesigns.errors import UsageError

INTERVAL_MIN: Final = 0.01
PROMISE_MIN: Final = 1.0
"""The hub judges no agent by a finer rhythm: networks and schedulers are late by more. Beating faster than promised
is fine."""
USUAL: Final = Policy()
FASTER_FOR: Final = 60.0
"""How long a question or a failure keeps the rhythm fast."""
SLOWER_AFTER: Final = 600.0
FASTER: Final = 0.5
SLOWER: Final = 1.5
ROOM: Final = 1.5
"""A slow rhythm stays this factor below the suspicion: one late beat of an idle agent must not raise one."""


class BeatRhythm(Struct, frozen=True):
    """The rhythm an agent promised, and how long its policy waits for a beat."""

    interval: float
    suspect_after: float

    def every(self, *, stirred_for: float | None, idle_for: float | None, told: float | None = None) -> float:
        """Seconds between two beats, by how long ago it was asked, nudged or unwell, since when it is idle, and what
        the hub has told it: never more rarely than its promise has room for."""
        slowest = max(self.interval, self.suspect_after / ROOM)
        wanted = self.interval if told is None else min(max(told, INTERVAL_MIN), slowest)
        if stirred_for is not None and stirred_for < FASTER_FOR:
            return min(wanted, self.interval * FASTER)
        if wanted != self.interval:
            return wanted
        if idle_for is not None and idle_for >= SLOWER_AFTER:
            return max(self.interval, min(self.interval * SLOWER, self.suspect_after / ROOM))
        return self.interval


def next_on_grid(after: float, every: float, phase: float) -> float:
    """The first time after `after` on the grid of this rhythm; `phase` is the grid's offset, 0 to 1."""
    beats = floor(after / every - phase) + 1
    at = (beats + phase) * every
    return at if at > after else at + every


@lru_cache(maxsize=64)
def rhythm(name: str | None, interval: float | None) -> tuple[BeatRhythm, Mapping[str, Any] | None]:
    """The rhythm, and what to announce of it; None if there is nothing to announce.

    Remembered, because the agents of a process usually share it, and checking a policy takes half a millisecond.
    """
    if interval is not None and not (isfinite(interval) and interval >= INTERVAL_MIN):
        raise UsageError(f"interval is {interval!r}, but it has to be at least {INTERVAL_MIN} s")
    changes = _changes(name, interval)
    policy = profile(DEFAULT_PROFILE) if changes is None else Policy().with_changes(changes)
    return BeatRhythm(interval or policy.silence.interval, policy.silence.suspect_after), changes


def _changes(name: str | None, interval: float | None) -> dict[str, Any] | None:
    """As differences, like profiles. An interval alone gets the waits of `swarm` in its proportion."""
    if name is not None:
        profile(name)  # raises for an unknown one
    named = {section: dict(values) for section, values in PROFILES[name or DEFAULT_PROFILE].items()}
    if interval is None:
        return named or None
    promised = max(interval, PROMISE_MIN)
    silence = {"interval": promised}
    if name is None:
        silence |= {"timeout": 3 * promised, "ping_wait": 0.4 * promised}
        # What fits as it is, is the hub's: its administrator may have set it.
        if 3 * promised > USUAL.claim.lease:
            named["claim"] = {"lease": 3 * promised}
        if 2 * promised > USUAL.silence.grace:
            named["silence"] = {"grace": 2 * promised}
    named["silence"] = {**named.get("silence", {}), **silence}
    return named
