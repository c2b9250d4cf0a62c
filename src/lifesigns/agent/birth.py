"""Birth: who this life of an agent is, from the call and from the environment it was started in.

`lifesigns run` and a respawn tell a child who it is by `LIFESIGNS_*`. That counts only for the agent they mean: if the
id is another one, all of it is somebody else's. An incarnation is one life, so it is taken over once per process.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lifesigns.errors import UsageError, WireError
from lifesigns.wire.limits import check_id

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ACTIVE: Final = "active"
"""The file whose time says when a sender in the program last had something to report."""
_lived: set[str] = set()
"""Incarnations that this process has taken over from its environment."""


@dataclass(frozen=True, slots=True)
class Birth:
    """What a life begins with."""

    agent_id: str
    incarnation: str
    task: str | None = None
    resume_from: str | None = None
    """The checkpoint to go on from."""
    handoff: str | None = None
    """What the life before left as a note."""
    supervised_at: str | None = None
    """The hub at which `lifesigns run` stands beside this life and hears its orders, too."""


def born(
    agent_id: str | None,
    incarnation: str | None = None,
    task: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Birth:
    """Who this is. What the call says wins over the environment."""
    told = os.environ if environment is None else environment
    name = checked_id(agent_id or told.get("LIFESIGNS_AGENT_ID"))
    meant = told if told.get("LIFESIGNS_AGENT_ID") == name else {}
    return Birth(
        name,
        incarnation or _take_over(meant.get("LIFESIGNS_INCARNATION")) or new_incarnation(),
        task or meant.get("LIFESIGNS_TASK") or None,
        meant.get("LIFESIGNS_CHECKPOINT") or None,
        meant.get("LIFESIGNS_HANDOFF") or None,
        (meant.get("LIFESIGNS_HUB") or None) if meant.get("LIFESIGNS_RUN") else None,
    )


def speaks_for_itself(agent_id: str, environment: Mapping[str, str] | None = None) -> None:
    """Tell `lifesigns run`, if it started us as this agent, that it need not beat for us."""
    _mark("speaks", agent_id, environment)  # If that fails both beat, which is only once too often.


def activity_mark(environment: Mapping[str, str] | None = None) -> Callable[[], None] | None:
    """What tells `lifesigns run`, if we live in it, that something was done; None if we do not. Whatever the agent's id is:
    it is the program that is not idle."""
    folder = (os.environ if environment is None else environment).get("LIFESIGNS_RUN")
    if not folder:
        return None
    mark = Path(folder, ACTIVE)

    def touch() -> None:
        with suppress(OSError):  # It is gone, or not ours.
            mark.touch()

    return touch


def ends_as_told(agent_id: str, environment: Mapping[str, str] | None = None) -> None:
    """Tell `lifesigns run` that we end because the hub wants it: we may be gone before it hears that from the hub."""
    _mark("told to stop", agent_id, environment)


def is_orphaned(agent_id: str, environment: Mapping[str, str] | None = None) -> bool:
    """Whether `lifesigns run`, which started us as this agent, was killed: its guardian ends us for that."""
    told = os.environ if environment is None else environment
    folder = told.get("LIFESIGNS_RUN", "")
    return bool(folder) and told.get("LIFESIGNS_AGENT_ID") == agent_id and Path(folder, "orphaned").exists()


def has_saved(checkpoint_id: str, agent_id: str, environment: Mapping[str, str] | None = None) -> None:
    """Tell `lifesigns run` where the next life can go on, should it have to start that without a hub."""
    _mark("checkpoint", agent_id, environment, checkpoint_id)


def _mark(name: str, agent_id: str, environment: Mapping[str, str] | None, text: str = "") -> None:
    told = os.environ if environment is None else environment
    folder = told.get("LIFESIGNS_RUN")
    if folder and told.get("LIFESIGNS_AGENT_ID") == agent_id:
        with suppress(OSError):  # It is gone, or not ours.
            half = Path(folder, f"{name}.{os.getpid()}")
            half.write_text(text)
            half.replace(Path(folder, name))  # Whole or not at all: we may be killed in the middle.


def new_incarnation() -> str:
    """26 signs like a ULID: 48 bits of time, so that lives sort by their begin, and 80 bits of chance."""
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def checked_id(agent_id: str | None) -> str:
    """The id, if it is one; else it is the caller's mistake."""
    if not agent_id:
        raise UsageError("agent_id is missing: Sender('coder-7'), or LIFESIGNS_AGENT_ID in the environment")
    try:
        return check_id(agent_id, "agent_id")
    except (WireError, TypeError) as error:
        raise UsageError(f"agent_id: {error}") from None


def _take_over(incarnation: str | None) -> str | None:
    if not incarnation or incarnation in _lived:
        return None
    _lived.add(incarnation)
    return incarnation
