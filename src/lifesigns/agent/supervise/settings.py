"""Settings: what the user wants of one supervision."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from lifesigns.core.policy import MINUTE


class Restart(StrEnum):
    """When a child that ended is started again. Never if the user ended it."""

    NEVER = "never"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"


class NudgeBy(StrEnum):
    """How a nudge reaches the child."""

    NONE = "none"
    STDIN = "stdin"
    SIGNAL = "signal"
    FILE = "file"


class Verbosity(StrEnum):
    """How much we say ourselves."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often and how soon a child is started again."""

    when: Restart = Restart.NEVER
    """Not by default: a command that fails may have done half of something, and its exit status is what whoever
    called us is waiting for."""
    wait_first: float = 1.0
    wait_max: float = MINUTE
    jitter: float = 0.1
    well_after: float = MINUTE
    """A life as long as this, and ten times as long as the wait before it, forgives the ones before."""
    crash_loop_max: int = 5
    crash_loop_window: float = 15 * MINUTE
    """As the core's respawn policy has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One supervision. All durations are seconds."""

    command: tuple[str, ...]
    agent_id: str
    task_id: str | None = None
    hub: str | None = None
    """Told to the child, so that it may speak for itself."""
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    nudge: NudgeBy = NudgeBy.NONE
    idle_after: float | None = None
    max_for: float | None = None
    """All lives together may take this long."""
    pty: bool = False
    verbosity: Verbosity = Verbosity.NORMAL
    save_for: float = 30.0
    """Between asking a child to end and ending it."""
    respawn_wait: float = 2 * MINUTE
    """How long after a stop of the hub's we are there for its word to start anew."""


LINGER_FOR: Final = 2.0
"""How long those who stay behind in the child's session may take to follow it."""
