"""Settings: the user's choices for one supervision."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from lifesigns.core.policy import MINUTE


class Restart(StrEnum):
    """When to start an ended child again. Never if the user ended it."""

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


class RestartPolicy(Struct, frozen=True, kw_only=True):
    """How often and how soon to restart a child."""

    when: Restart = Restart.NEVER
    """Not by default: a failed command may have done half of its work, and our caller waits for its exit status."""
    wait_first: float = 1.0
    wait_max: float = MINUTE
    jitter: float = 0.1
    well_after: float = MINUTE
    """A life at least this long, and ten times as long as the wait before it, resets the count."""
    crash_loop_max: int = 5
    crash_loop_window: float = 15 * MINUTE
    """As the core's respawn policy has them."""


class Settings(Struct, frozen=True, kw_only=True):
    """One supervision. All durations are seconds."""

    command: tuple[str, ...]
    agent_id: str
    task_id: str | None = None
    hub: str | None = None
    """Passed to the child, so that a sender in it can report."""
    child_hub: str | None = None
    """What the child is told instead, if we have no hub: that it stays alone, too."""
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    nudge: NudgeBy = NudgeBy.NONE
    idle_after: float | None = None
    max_for: float | None = None
    """All lives together may take this long."""
    watchdog: float | None = None
    """How often the child must say `WATCHDOG=1`."""
    pty: bool = False
    verbosity: Verbosity = Verbosity.NORMAL
    save_for: float = 30.0
    """Between asking a child to end and ending it."""
    respawn_wait: float = 2 * MINUTE
    """How long after a stop by the hub we wait for its order to start anew."""


LINGER_FOR: Final = 2.0
"""How long the processes left in the child's session may take to end."""
