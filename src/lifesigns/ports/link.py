"""The link: from the agent's side to its hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, CheckpointSaved, Report


class SavedState(Report, Struct, frozen=True, eq=False):
    """A checkpoint with its content, for a hub that stores contents; any other hub gets the report only."""

    saved: CheckpointSaved
    content: bytes

    def __repr__(self) -> str:
        return f"SavedState(saved={self.saved!r}, content of {len(self.content)} bytes)"


class Link(Protocol):
    """The connection from the agent's side to its hub."""

    @property
    def tells_stopping(self) -> bool:
        """Whether somebody else than a hub may listen, who knows an end only by a last beat of status `stopping`."""

    async def open(self, obey: Callable[[Order], bool]) -> None:
        """Connect to the hub, or fail. The link passes orders for the followed agents to `obey`, on this loop, which
        says whether they are for this side: if not, they stay for another sender of the same agent."""

    async def follow(self, agent_id: str) -> None:
        """Bring the orders of this agent, too."""

    async def unfollow(self, agent_id: str) -> None:
        """Bring no more orders of this agent."""

    async def carry_beats(self, beats: Sequence[Beat]) -> bool:
        """Return when the other side has the beats; after a failure, none of them is certain to be there. True if the
        hub itself answered: on a bus it is only the server in between."""

    async def carry_reports(self, number: int, reports: Sequence[Report]) -> None:
        """Return when the hub has stored all reports; after a failure, none of them is certain to be there. A
        repetition has the same `number`, so that a hub that has them can tell. Runs beside `carry_beats`, one call at a
        time."""

    async def upload(self, state: SavedState) -> bool:
        """Return when the hub has stored the content and knows of the checkpoint; False if it refuses, or the link
        cannot carry contents. It may take a while; beats and reports are carried beside it."""

    async def close(self) -> None:
        """Close, whatever is still open."""
