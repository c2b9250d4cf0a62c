"""Identity: who this life of an agent is, from the call and from the environment it was started in.

`lifesigns run` and a respawn tell a child who it is by `LIFESIGNS_*`. The environment counts only for the agent it
names: under another id we ignore all of it. An incarnation is one life, so a process takes it over once.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from lifesigns.errors import UsageError, WireError
from lifesigns.wire.limits import check_id

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ACTIVE: Final = "active"
"""The file whose modification time says when a sender in the program last reported something."""
_lived: set[str] = set()
"""Incarnations that this process has taken over from its environment."""


class AgentIdentity(Struct, frozen=True):
    """What a life begins with."""

    agent_id: str
    incarnation: str
    task: str | None = None
    resume_from: str | None = None
    """The checkpoint to continue from."""
    handoff: str | None = None
    """The note that the previous life left."""
    supervised_at: str | None = None
    """The hub whose orders for this life `lifesigns run` hears, too."""


def identify(
    agent_id: str | None,
    incarnation: str | None = None,
    task: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> AgentIdentity:
    """The identity of this life. The call's values win over the environment."""
    told = os.environ if environment is None else environment
    name = checked_id(agent_id or told.get("LIFESIGNS_AGENT_ID"))
    meant = told if told.get("LIFESIGNS_AGENT_ID") == name else {}
    return AgentIdentity(
        name,
        incarnation or _take_over(meant.get("LIFESIGNS_INCARNATION")) or new_incarnation(),
        task or meant.get("LIFESIGNS_TASK") or None,
        meant.get("LIFESIGNS_CHECKPOINT") or None,
        meant.get("LIFESIGNS_HANDOFF") or None,
        (meant.get("LIFESIGNS_HUB") or None) if meant.get("LIFESIGNS_RUN") else None,
    )


def mark_speaking(agent_id: str, environment: Mapping[str, str] | None = None) -> None:
    """Tell `lifesigns run`, if it started us as this agent, that it need not beat for us."""
    _mark("speaks", agent_id, environment)  # If that fails, both beat, which does no harm.


def activity_mark(environment: Mapping[str, str] | None = None) -> Callable[[], None] | None:
    """A function that tells `lifesigns run`, if we run in it, about activity; otherwise None. The agent's id does not
    matter: the program is what is not idle."""
    folder = (os.environ if environment is None else environment).get("LIFESIGNS_RUN")
    if not folder:
        return None
    mark = Path(folder, ACTIVE)

    def touch() -> None:
        with suppress(OSError):  # It is gone, or not ours.
            mark.touch()

    return touch


def mark_told_to_stop(agent_id: str, environment: Mapping[str, str] | None = None) -> None:
    """Tell `lifesigns run` that we end because the hub wants it: we may be gone before the hub tells it."""
    _mark("told to stop", agent_id, environment)


def is_orphaned(agent_id: str, environment: Mapping[str, str] | None = None) -> bool:
    """Whether `lifesigns run`, which started us as this agent, was killed: then its guardian ends us."""
    told = os.environ if environment is None else environment
    folder = told.get("LIFESIGNS_RUN", "")
    return bool(folder) and told.get("LIFESIGNS_AGENT_ID") == agent_id and Path(folder, "orphaned").exists()


def mark_saved(checkpoint_id: str, agent_id: str, environment: Mapping[str, str] | None = None) -> None:
    """Tell `lifesigns run` where the next life can continue, in case it has to start one without a hub."""
    _mark("checkpoint", agent_id, environment, checkpoint_id)


def _mark(name: str, agent_id: str, environment: Mapping[str, str] | None, text: str = "") -> None:
    told = os.environ if environment is None else environment
    folder = told.get("LIFESIGNS_RUN")
    if folder and told.get("LIFESIGNS_AGENT_ID") == agent_id:
        with suppress(OSError):  # It is gone, or not ours.
            half = Path(folder, f"{name}.{os.getpid()}")
            half.write_text(text)
            half.replace(Path(folder, name))  # Write all or nothing: we may be killed in the middle.


def new_incarnation() -> str:
    """26 characters like a ULID: 48 bits of time, so that lives sort by their start, and 80 random bits."""
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def checked_id(agent_id: str | None) -> str:
    """The id, if it is valid; otherwise raise, because the caller made a mistake."""
    if not agent_id:
        raise UsageError("agent_id is missing: Sender('coder-7'), or LIFESIGNS_AGENT_ID in the environment")
    try:
        return check_id(agent_id, "agent_id")
    except WireError as error:
        raise UsageError(str(error)) from None
    except TypeError as error:
        raise UsageError(f"agent_id: {error}") from None


def _take_over(incarnation: str | None) -> str | None:
    if not incarnation or incarnation in _lived:
        return None
    _lived.add(incarnation)
    return incarnation
