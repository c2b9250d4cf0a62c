"""Hubs: the processes of the demo with several hubs, on one PostgreSQL and one NATS server. Any hub can be killed, and
started again."""

from __future__ import annotations

import asyncio
import random
import shutil
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from lifesigns.config.hub_locator import TOKEN_FILE
from lifesigns.demo import servers
from lifesigns.demo.fleet import BY_BUS, DemoAgent
from lifesigns.demo.processes import PORT, DemoProcesses
from lifesigns.errors import AdapterError

KEYS: Final = ("tokens.key", "audit.key")
"""By which hubs on one store know each other's tokens, and seal the audit log."""


@dataclass(slots=True, eq=False)
class DemoHub:
    """A hub, and its present process."""

    name: str
    state: Path
    port: int
    process: Process | None = None
    killed: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class DemoHubs(DemoProcesses):
    """Starts the servers, so many hubs, and the agents. `port`: of the first hub; the others have the next free ones."""

    def __init__(
        self,
        fleet: Sequence[DemoAgent],
        count: int,
        *,
        turn: float,
        port: int | None = None,
        keep: bool = False,
    ) -> None:
        super().__init__(fleet, turn=turn, port=port, keep=keep)
        self._programs = servers.find_programs()
        self._count = count
        self._options: tuple[str, ...] = ()
        self.bus = ""
        self.hubs: list[DemoHub] = []

    def kill(self, hub: DemoHub) -> None:
        """With -9: it hands nothing over."""
        hub.killed = True
        if hub.process is not None:
            with suppress(ProcessLookupError):
                hub.process.kill()

    async def start_again(self, hub: DemoHub) -> None:
        if hub.process is not None:
            await hub.process.wait()
        hub.killed = False
        await self._launch(hub)

    def crash(self, agent_id: str) -> None:
        """Kill the agent's own process; the one that supervises it lives."""
        for child in psutil.Process(self._agents[agent_id].pid).children(recursive=True):
            with suppress(psutil.Error):
                child.kill()

    def runs(self, agent_id: str) -> bool:
        """Whether the agent's own process is there."""
        return any(
            child.status() != psutil.STATUS_ZOMBIE
            for child in psutil.Process(self._agents[agent_id].pid).children()
        )

    async def _start_hubs(self) -> None:
        first = PORT if self._port is None else self._port or random.randrange(10_240, 30_000)  # noqa: S311
        *ports, database, bus = servers.free_ports(self._count + 2, first)
        await self._start_servers(database, bus)
        for number, port in enumerate(ports, 1):
            state = self.folder / f"hub-{number}"
            state.mkdir(mode=0o700)
            for key in KEYS if self.hubs else ():
                shutil.copy(self.hubs[0].state / key, state)
            hub = DemoHub(state.name, state, port)
            await self._launch(hub)
            self.hubs.append(hub)
        self.url = ",".join(hub.url for hub in self.hubs)
        self.token = (self.hubs[0].state / TOKEN_FILE).read_text().strip()
        self._environ = {"LIFESIGNS_TOKEN": self.token}

    async def _launch(self, hub: DemoHub) -> None:
        hub.process = await self._start_hub(hub.name, hub.state, hub.port, *self._options)
        self._tasks.append(asyncio.create_task(self._watch_one(hub, hub.process)))

    async def _watch_one(self, hub: DemoHub, process: Process) -> None:
        await process.wait()
        if not hub.killed:
            self.lost = hub.name
            self.ended.set()

    async def _start_servers(self, database: int, bus: int) -> None:
        programs, data = self._programs, self.folder / "postgres"
        making = await self._spawn("database", *servers.making_database(programs, data))
        if await making.wait() != 0:
            raise AdapterError(f"the database is not made: {self.last_words('database')}", transient=False)
        for name, port, command in (
            ("database", database, servers.postgres(programs, data, database)),
            ("bus", bus, servers.nats(programs, bus)),
        ):
            server = await self._spawn(name, *command)
            self._servers.append(server)
            await self._until(partial(servers.listens, port), name, server)
        self.bus = servers.nats_url(bus)
        self._options = ("--store", servers.postgres_url(database), "--bus", self.bus)

    def _hub_for(self, member: DemoAgent) -> str:
        return self.bus if member.id in BY_BUS else self.url
