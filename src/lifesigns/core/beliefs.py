"""Beliefs: everything the engine knows, as plain data.

This is what a snapshot holds. An engine restored from it continues exactly: same deadlines, same ties, same
ids for the orders still to come.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.claims import Claim
from lifesigns.core.fleet import FleetState
from lifesigns.core.messages import PendingMessage
from lifesigns.core.policy_bounds import OwnPolicy
from lifesigns.core.respawn import Lineage
from lifesigns.core.side_orders import SideOrder
from lifesigns.core.signals import BreakerState
from lifesigns.core.tasks import Task


@dataclass(slots=True)
class Complaint:
    """A kind of refusal: how often since it was last written down, and when that was."""

    count: int = 0
    told_at: float = -NEVER


@dataclass(slots=True)
class Double:
    """A life that was replaced and still beats beside the one that took its place."""

    incarnation: str
    since: float
    heard_at: float
    seq: int = -1
    beats: int = 0
    told: bool = False
    """Whether people know of it."""


@dataclass(slots=True)
class ReportedBreaker:
    """A breaker as its agent reported it last."""

    state: BreakerState
    failures: int = 0
    half_open_at: float | None = None
    """When an open one lets a call through again, on our clock; None if it does not by itself."""
    since: float = 0.0
    """When its state was first reported."""


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
    """What was ordered beside the ladder and has no outcome yet, by agent and order."""
    awareness: Awareness = field(default_factory=Awareness)
    fleet: FleetState = field(default_factory=FleetState)
    complaints: dict[str, Complaint] = field(default_factory=dict)
    doubles: dict[str, Double] = field(default_factory=dict)
    """By agent. Not kept: who still speaks after a restart is noticed again."""
    canary_due_at: float = NEVER
    things: int = 0
    """Things with deadlines made so far: the source of their order numbers."""
    numbered: int = 0
    """Orders numbered so far."""
    tokens: int = 0
    """Fencing tokens given so far."""

    def newest_checkpoint(self, agent_id: str) -> str | None:
        """What an agent saved last for its task, if anything."""
        lineage = self.lineages.get(agent_id)
        return lineage.chain[-1].id if lineage is not None and lineage.chain else None

    def next_order(self) -> int:
        self.things += 1
        return self.things
