"""Ports: what we ask of the world, as protocols. Adapters answer; `assembly` brings both together.

Everything here is asynchronous and belongs to one event loop. What fails raises `AdapterError`: `transient` if it is
worth another try. Nothing is retried behind the caller's back, except that a bus finds its way back to its server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Word

Hear = Callable[[str, bytes], None]
"""Called with subject and payload, on the loop of the bus; it must not block."""


class Subscription(Protocol):
    """One wish to hear."""

    @property
    def dropped(self) -> int:
        """Messages lost because they came faster than they were heard; the oldest go first."""

    async def end(self) -> None:
        """Hear nothing more."""


class Bus(Protocol):
    """Carries messages by subject, from anybody to everybody who wants to hear it.

    A bus keeps nothing: who is away hears nothing, and a subscriber that is too slow loses its own oldest messages,
    never somebody else's. In a pattern `*` stands for one word of a subject and a final `>` for one or more.
    """

    @property
    def payload_max(self) -> int:
        """The largest message it carries; a larger one is refused, and that is not transient."""

    @property
    def connected(self) -> bool: ...

    async def connect(self) -> None:
        """Find the server, or fail. From then on a lost connection is looked for again, for ever."""

    async def publish(self, subject: str, payload: bytes) -> None:
        """Send. Fails at once while the connection is lost: what to keep for later, the caller knows."""

    async def flush(self) -> None:
        """Return when the server has everything that was published before."""

    async def subscribe(self, pattern: str, hear: Hear) -> Subscription:
        """Hear what is published from now on; also after the connection was lost and found."""

    async def close(self) -> None:
        """Send what is on its way, then end."""


class Link(Protocol):
    """The agent's side's way to its hub."""

    async def open(self, obey: Callable[[Order], None]) -> None:
        """Reach the hub, or fail. Orders for those it follows are given to `obey`, on this loop."""

    async def follow(self, agent_id: str) -> None:
        """Bring the orders of this agent, too."""

    async def unfollow(self, agent_id: str) -> None:
        """Bring no more orders of this agent."""

    async def carry(self, beats: Sequence[Beat], words: Sequence[Word]) -> None:
        """Return when the other side has all of it; if it fails, none of it is certain to be there."""

    async def close(self) -> None:
        """End, whatever is still open."""
