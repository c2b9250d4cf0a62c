"""The link: the agent's side's way to its hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Word


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
