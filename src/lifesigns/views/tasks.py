"""Tasks: their agents, claims, deadlines and checkpoints."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.core.health import TaskStatus
from lifesigns.views.moments import Moment


class ClaimView(Struct, frozen=True):
    """An agent's claim on a task."""

    agent_id: str
    incarnation: str | None
    token: int
    """A fencing token: a later claim has a higher one."""
    claimed_at: Moment
    lease_s: float
    held_until: Moment | None
    """At the earliest: every beat of its holder moves it on."""
    in_doubt: bool
    """The holder has been silent for the length of a lease, and the hub has pinged it."""


class DueView(Struct, frozen=True):
    """A task's deadline."""

    agent_id: str
    expected_at: Moment
    word_at: Moment
    """The last progress, or report about the delay."""
    asked_at: Moment | None
    """When the hub asked the agent about it; None if there was no reason, or it has answered."""
    status: TaskStatus
    description: str
    percent: float | None
    """How much of it is done, as its agent last said; None if it has not."""
    assigned_at: Moment | None
    progress_at: Moment | None
    """The last progress its agent reported; None if it has not."""
    note: str
    """What it said then."""


class TaskView(Struct, frozen=True):
    """A task with agents, a claim or a deadline."""

    task_id: str
    agents: tuple[str, ...]
    """The agents that work on it."""
    claim: ClaimView | None
    due: DueView | None


class TaskList(Struct, frozen=True):
    """Tasks, page by page."""

    tasks: tuple[TaskView, ...]
    cursor: str | None
    """Pass this for the next page."""


class ClaimGranted(Struct, frozen=True):
    """The task is yours."""

    granted: bool
    task_id: str
    holder: str
    token: int
    """Send it along with everything you do under this claim: a lower one is refused."""
    claimed_at: Moment
    lease_s: float
    """Without a beat for this long the task returns to the queue."""


class CheckpointView(Struct, frozen=True):
    """One link of a task's chain of checkpoints."""

    checkpoint_id: str
    parent_id: str | None
    digest: str
    size: int
    saved_at: Moment
    agent_id: str
    kept_by_hub: bool
    """Whether the hub has its content; else the agent stored it elsewhere, and `digest` may identify it."""


class CheckpointList(Struct, frozen=True):
    """The checkpoints of a task, oldest first; the hub remembers only the last ones."""

    task_id: str
    checkpoints: tuple[CheckpointView, ...]
