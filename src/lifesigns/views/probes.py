"""Probes: whether the process lives, and whether it can do its work."""

from __future__ import annotations

from msgspec import Struct


class Alive(Struct):
    """The process answers."""

    status: str = "ok"


class AgentAlive(Struct):
    """Whether an agent is as well as the caller wants it."""

    status: str
    """`ok` or `unwell`."""
    state: str
    why: str


class Ready(Struct):
    """Whether store and bus are there."""

    status: str
    """`ok`, `unready`, or `standby`: another hub on the same store judges."""
    store: str
    """`ok` or `away`; the exact trouble, for callers that may see the fleet."""
    bus: str
    """`ok`, `none` or `away`; the same."""
    blind: bool
    judge: str = "none"
    """The hub that judges, for one that stands by: `ok` if it is reached, else `away`; the same. `none` if this one judges."""
