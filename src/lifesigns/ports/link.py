"""The link: the agent's side's way to its hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, CheckpointSaved, Report


@dataclass(frozen=True, slots=True, eq=False)
class SavedState(Report):
    """A checkpoint with its content, for a hub that keeps contents; for any other, only what is said about it."""

    saved: CheckpointSaved
    content: bytes = field(repr=False)


class Link(Protocol):
    """The agent's side's way to its hub."""

    async def open(self, obey: Callable[[Order], bool]) -> None:
        """Reach the hub, or fail. Orders for those it follows are given to `obey`, on this loop, which says
        whether they are for this side: if not, they are left for somebody else who speaks for the same agent."""

    async def follow(self, agent_id: str) -> None:
        """Bring the orders of this agent, too."""

    async def unfollow(self, agent_id: str) -> None:
        """Bring no more orders of this agent."""

    async def carry_beats(self, beats: Sequence[Beat]) -> bool:
        """Return when the other side has them; if it fails, none of them is certain to be there. Whether it is the hub
        itself that has answered: on a bus it is only the server between."""

    async def carry_reports(self, number: int, reports: Sequence[Report]) -> None:
        """Return when the hub has kept all of them; if it fails, none of them is certain to be there. They may be carried
        again by the same `number`, so that a hub that has them can tell. Called beside `carry_beats`, once at a time."""

    async def upload(self, state: SavedState) -> bool:
        """Return when the hub has kept the content, and knows of the checkpoint; False if it will not, or there is no way
        for contents here. It may take a while; beats and words are carried beside it."""

    async def close(self) -> None:
        """End, whatever is still open."""
