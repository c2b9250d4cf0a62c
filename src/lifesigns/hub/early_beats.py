"""Early beats: what comes over the bus while another hub hands over to this one.

The hub that goes hears until it has stored its last commit, and this one cannot hear before it has restored the engine.
So it listens beforehand and keeps what comes; when it judges it hears that first, in order, and goes on with the same
subscription. A beat that both hubs heard counts once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from lifesigns.hub.bus_receiver import BEATS, BusReceiver
from lifesigns.ports import Subscription

HELD_MAX: Final = 200_000
"""Messages, some 50 MB; beyond, the oldest go. A handover takes seconds."""
TURN: Final = 500
"""Messages that are heard before the loop does something else."""


class EarlyBeats:
    """Listens for a receiver whose hub does not judge yet."""

    def __init__(self, receiver: BusReceiver) -> None:
        self._receiver = receiver
        self._held: deque[tuple[str, bytes]] = deque(maxlen=HELD_MAX)
        self._holding = True
        self._subscription: Subscription | None = None

    async def listen(self) -> None:
        """Keep what comes from now on."""
        if self._subscription is None:
            await self._receiver.bus.connect()
            self._subscription = await self._receiver.bus.subscribe(BEATS, self._hear)

    async def end(self) -> None:
        """Nobody hands over to this hub after all."""
        if self._subscription is not None:
            await self._subscription.end()
        self._subscription = None
        self._held.clear()

    async def pass_on(self) -> None:
        """The hub judges: let it hear what came, and then what comes."""
        if self._subscription is None:
            return
        self._receiver.go_on_with(BEATS, self._subscription)
        while self._held:
            for _ in range(min(TURN, len(self._held))):
                self._receiver.hear_beats(*self._held.popleft())
            await asyncio.sleep(0)
        self._holding = False

    def _hear(self, subject: str, payload: bytes) -> None:
        if self._holding:
            self._held.append((subject, payload))
        else:
            self._receiver.hear_beats(subject, payload)
