"""Rhythm: how often an agent promises to beat, and the policy that goes with the promise.

A hub that expects a beat every 5 s would doubt an agent that beats every minute. So who asks for a rhythm of its own
announces it, with the waits that fit it. Who asks for nothing beats as `swarm`, the default of every hub, and leaves
the policy to the hub.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from lifesigns.agent.sender.beat_rhythm import BeatRhythm
from lifesigns.core.policy import Policy
from lifesigns.core.profiles import DEFAULT_PROFILE, PROFILES, profile
from lifesigns.errors import UsageError

INTERVAL_MIN: Final = 0.01
PROMISE_MIN: Final = 1.0
"""Nobody is judged by a finer rhythm: networks and schedulers are late by more. Beating faster than promised is fine."""
LEASE_MIN: Final = 600.0


@lru_cache(maxsize=64)
def rhythm(name: str | None, interval: float | None) -> tuple[BeatRhythm, Mapping[str, Any] | None]:
    """The pulse, and what to announce of it; None if there is nothing to announce.

    Remembered, because the agents of a process usually share it, and checking a policy takes half a millisecond.
    """
    if interval is not None and not (isfinite(interval) and interval >= INTERVAL_MIN):
        raise UsageError(f"interval is {interval!r}, but it has to be at least {INTERVAL_MIN} s")
    changes = _changes(name, interval)
    policy = profile(DEFAULT_PROFILE) if changes is None else Policy().but(changes)
    return BeatRhythm(interval or policy.silence.interval, policy.silence.suspect_after), changes


def _changes(name: str | None, interval: float | None) -> dict[str, Any] | None:
    """As differences, the way profiles are written. An interval alone gets the waits of `swarm` in its proportion."""
    if name is not None:
        profile(name)  # raises for an unknown one
    named = {section: dict(values) for section, values in PROFILES[name or DEFAULT_PROFILE].items()}
    if interval is None:
        return named or None
    promised = max(interval, PROMISE_MIN)
    silence = {"interval": promised}
    if name is None:
        silence |= {"timeout": 3 * promised, "ping_wait": 0.4 * promised}
        named["claim"] = {"lease": max(LEASE_MIN, 3 * promised)}
        named["silence"] = {"grace": max(120.0, 2 * promised)}
    named["silence"] = {**named.get("silence", {}), **silence}
    return named
