"""Where buses of one kind are made for a test, and closed after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.adapters.bus.nats import NatsBus
from lifesigns.adapters.bus.redis import RedisBus
from lifesigns.adapters.bus.server_bus import ServerBus
from tests.servers.process import Server

AnyBus = MemoryBus | NatsBus | RedisBus
WITHIN = 30.0
"""Seconds; generous, because a busy machine is not a failure. Where time is the point, a test says its own."""


@dataclass
class Ground:
    kind: type[MemoryBus] | type[NatsBus] | type[RedisBus]
    url: str
    made: list[AnyBus] = field(default_factory=list)

    def make(self, *, waiting_max: int = 65_536) -> AnyBus:
        bus = self.kind(self.url, waiting_max=waiting_max)
        self.made.append(bus)
        return bus

    async def bus(self, *, waiting_max: int = 65_536) -> AnyBus:
        bus = self.make(waiting_max=waiting_max)
        await bus.connect()
        return bus

    async def close(self) -> None:
        for bus in self.made:
            await bus.close()


@dataclass
class ServerGround:
    """Buses and a server of their own, to be killed and frozen."""

    kind: type[NatsBus] | type[RedisBus]
    server: Server
    made: list[ServerBus] = field(default_factory=list)

    async def bus(self) -> ServerBus:
        bus = self.kind(self.server.url)
        self.made.append(bus)
        await bus.connect()
        return bus

    async def close(self) -> None:
        self.server.thaw()
        for bus in self.made:
            await bus.close()


class Ear:
    """Hears, and remembers."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, bytes]] = []

    def __call__(self, subject: str, payload: bytes) -> None:
        self.heard.append((subject, payload))

    @property
    def payloads(self) -> list[bytes]:
        return [payload for _, payload in self.heard]

    @property
    def subjects(self) -> list[str]:
        return [subject for subject, _ in self.heard]

    async def until(self, count: int, within: float = WITHIN) -> None:
        await eventually(lambda: len(self.heard) >= count, within)

    async def until_last(self, payload: bytes) -> None:
        await eventually(lambda: bool(self.heard) and self.heard[-1][1] == payload)


async def eventually(condition: Callable[[], bool], within: float = WITHIN) -> None:
    """Wait for a condition, with a bound."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 -- what is waited for has no event of its own
            await asyncio.sleep(0.005)
