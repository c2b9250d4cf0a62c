"""Beliefs: everything the engine knows, as plain data.

A snapshot holds exactly this. An engine restored from it continues exactly: same deadlines, same ties, same ids for
later orders.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.claims import Claim
from lifesigns.core.fleet import FleetState
from lifesigns.core.messages import PendingMessage
from lifesigns.core.policy_bounds import OwnPolicy
from lifesigns.core.rebalancing import Moves
from lifesigns.core.respawn import Lineage
from lifesigns.core.side_orders import SideOrder
from lifesigns.core.signals import BreakerState
from lifesigns.core.tasks import Task


@dataclass(slots=True)
class Complaint:
    """A kind of refusal: how often it happened since we last recorded it, and when that was."""

    count: int = 0
    told_at: float = -NEVER


@dataclass(slots=True)
class DuplicateLife:
    """A replaced life that still beats beside its successor."""

    incarnation: str
    since: float
    heard_at: float
    seq: int = -1
    beats: int = 0
    told: bool = False
    """Whether people were told."""


@dataclass(slots=True)
class ReportedBreaker:
    """A breaker as its agent last reported it."""

    state: BreakerState
    failures: int = 0
    half_open_at: float | None = None
    """When an open breaker lets a call through again, on our clock; None if it never does by itself."""
    since: float = 0.0
    """When its agent first reported this state."""


@dataclass(slots=True)
class Beliefs:
    """The engine's whole memory."""

    at: float = 0.0
    """The last moment it looked."""
    agents: dict[str, Agent] = field(default_factory=dict)
    own_policies: dict[str, OwnPolicy] = field(default_factory=dict)
    lineages: dict[str, Lineage] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    messages: dict[str, PendingMessage] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    breakers: dict[str, dict[str, ReportedBreaker]] = field(default_factory=dict)
    side_orders: dict[str, dict[str, SideOrder]] = field(default_factory=dict)
    """Orders beside the ladder without an outcome yet, by agent and order."""
    awareness: Awareness = field(default_factory=Awareness)
    fleet: FleetState = field(default_factory=FleetState)
    moves: Moves = field(default_factory=Moves)
    """Not stored: after a restart a task that was offered is free, like any other."""
    complaints: dict[str, Complaint] = field(default_factory=dict)
    duplicates: dict[str, DuplicateLife] = field(default_factory=dict)
    """By agent. Not stored: after a restart the engine notices again which of them still speaks."""
    savers: dict[str, str] = field(default_factory=dict)
    """By task: who was the first to save something of it. Not stored: it follows from the lineages."""
    canary_due_at: float = NEVER
    things: int = 0
    """Things with deadlines made so far: the source of their order numbers."""
    numbered: int = 0
    """Orders numbered so far."""
    tokens: int = 0
    """Fencing tokens given so far."""

    def newest_checkpoint(self, agent_id: str) -> str | None:
        """The last checkpoint an agent saved for its task, if any."""
        lineage = self.lineages.get(agent_id)
        return lineage.chain[-1].id if lineage is not None and lineage.chain else None

    def saver_of(self, task_id: str) -> str | None:
        """Who was the first to save something of this task, and still works on it."""
        return self.savers.get(task_id)

    def note_saver(self, lineage: Lineage) -> None:
        """It has saved something of its task."""
        if lineage.task_id is not None and lineage.chain:
            self.savers.setdefault(lineage.task_id, lineage.agent_id)

    def forget_saver(self, lineage: Lineage) -> None:
        """It works on this task no more."""
        if lineage.task_id is not None and self.savers.get(lineage.task_id) == lineage.agent_id:
            del self.savers[lineage.task_id]

    def next_order(self) -> int:
        self.things += 1
        return self.things
