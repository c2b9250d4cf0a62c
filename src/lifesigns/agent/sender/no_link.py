"""No link: of a sender that was told to stay alone (`hub="none"`). It carries everything, nowhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Report
from lifesigns.ports import SavedState


class NoLink:
    """A `Link` to nobody."""

    tells_stopping = False

    async def open(self, obey: Callable[[Order], bool]) -> None:
        pass

    async def follow(self, agent_id: str) -> None:
        pass

    async def unfollow(self, agent_id: str) -> None:
        pass

    async def carry_beats(self, beats: Sequence[Beat]) -> bool:
        return False

    async def carry_reports(self, number: int, reports: Sequence[Report]) -> None:
        pass

    async def upload(self, state: SavedState) -> bool:
        return False

    async def close(self) -> None:
        pass
