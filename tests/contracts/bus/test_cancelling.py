"""A driver that does not hear the first time that it should stop must not hold up the way back for ever."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from lifesigns.adapters.bus.redis_connection import RedisConnections


class HardOfHearing:
    """A connection whose write ends in the very moment it is cancelled: the cancel is lost, as in `asyncio.wait_for`."""

    _writer = None

    async def connect(self) -> None:
        self._reader = asyncio.StreamReader()

    def pack_command(self, *command: str | bytes) -> list[bytes]:
        return [b"command"]

    async def send_packed_command(self, commands: list[bytes], *, check_health: bool) -> None:
        try:
            await asyncio.sleep(math.inf)
        except asyncio.CancelledError:
            return

    async def disconnect(self, *, nowait: bool) -> None: ...


async def test_a_cancel_that_was_lost_is_said_again() -> None:
    sending: Any = HardOfHearing()
    hearing: Any = HardOfHearing()
    connections = RedisConnections(sending, hearing, 1024, lambda *_: None, lambda: None)
    await connections.open()
    await connections.send("a", b"b")
    await asyncio.sleep(0.01)
    async with asyncio.timeout(5):
        await connections.close()
