"""How soon a nudge is with its agent: from the moment it was decided until it arrives at the agent's long poll, or by the bus.

A hub as `lifesigns serve` runs it, and a thousand agents of ten houses that beat once in two seconds. Half of the nudges are
a person's, by the API; the others are the engine's own, because an agent reports one error after the other. Both carry the
moment they were decided; hub and agents have one clock here, that of the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from urllib.parse import quote, urlencode

from lifesigns import wire
from lifesigns.adapters.link.http_connection import HttpConnection, Target
from lifesigns.assembly.links import bus_at
from lifesigns.core.effects import Order, SendNudge
from tests.servers.nats import NatsServer
from tests.servers.process import free_port

HOUSE = 100
BEAT_EVERY = 2.0
READY_WITHIN = 60.0
ERRORS = 4
"""In a row, one more than the policy allows."""
CONFIG = {
    "policy": {
        "silence": {"interval": 30.0, "timeout": 300.0, "ping_wait": 30.0},
        "ladder": {"nudge_every": 600.0},
    },
    "fleet": {"nudges_per_minute": 100_000, "acted_share": 1.0, "brake_count": 100_000},
}


@dataclass
class Nudged:
    """The arrived nudges, and their times in seconds."""

    by_people: list[float] = field(default_factory=list)
    by_engine: list[float] = field(default_factory=list)

    @property
    def all(self) -> list[float]:
        return [*self.by_people, *self.by_engine]


def quantile(values: list[float], share: float) -> float:
    """The smallest value that at least this share does not exceed."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def measure(agents: int = 1000, nudges: int = 400, seconds: float = 20.0, *, by_bus: bool = False) -> Nudged:
    """Nudge so many agents, spread over so long; half of them by hand."""
    return asyncio.run(_measure(agents, nudges, seconds, by_bus=by_bus))


async def _measure(agents: int, nudges: int, seconds: float, *, by_bus: bool) -> Nudged:
    async with AsyncExitStack() as stack:
        nats = stack.enter_context(NatsServer()) if by_bus else None
        hub = stack.enter_context(_hub(None if nats is None else nats.url))
        fleet = Fleet(hub, [f"agent-{n:04d}" for n in range(agents)])
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = [group.create_task(fleet.beat(house)) for house in fleet.houses]
        if nats is None:
            tasks += [group.create_task(fleet.poll(house)) for house in fleet.houses]
        else:
            bus = bus_at(nats.url)
            await bus.connect()
            stack.push_async_callback(bus.close)
            await bus.subscribe("lifesigns.order.>", lambda _, payload: fleet.take(payload))
        tasks.append(group.create_task(fleet.acknowledge()))
        await _until(lambda: fleet.beaten >= agents)
        await fleet.provoke(nudges, seconds)
        for task in tasks:
            task.cancel()
        return fleet.nudged


class Fleet:
    """A thousand agents: they beat, poll for orders, and acknowledge them."""

    def __init__(self, hub: tuple[str, str], names: list[str]) -> None:
        self.nudged = Nudged()
        self.houses = [names[n : n + HOUSE] for n in range(0, len(names), HOUSE)]
        self.beaten = 0
        self._names = names
        self._target, self._token = Target.of(hub[0]), hub[1]
        self._seen: set[str] = set()
        self._to_be_acknowledged: asyncio.Queue[Order] = asyncio.Queue()

    def _connection(self) -> HttpConnection:
        return HttpConnection(self._target, self._token)

    async def beat(self, house: list[str]) -> None:
        """One request for all of a house."""
        connection, seq = self._connection(), 0
        try:
            while True:
                seq += 1
                beats = [{"agent_id": name, "seq": seq, "incarnation": "one"} for name in house]
                reply = await connection.ask("POST", "/api/v1/beats", json.dumps(beats).encode())
                self.beaten += len(house) if reply.status == 202 else 0
                await asyncio.sleep(BEAT_EVERY)
        finally:
            connection.close()

    async def poll(self, house: list[str]) -> None:
        """One long poll for all of a house, over and over."""
        connection = self._connection()
        query = [("wait", "30"), *(("agent", name) for name in house)]
        try:
            while True:
                known = [("exclude", order_id) for order_id in list(self._seen)[-20:]]
                reply = await connection.ask(
                    "GET", f"/api/v1/orders?{urlencode([*query, *known])}", answer_for=40.0
                )
                offered = json.loads(reply.body)["orders"]
                for order in (order for orders in offered.values() for order in orders):
                    self.take(json.dumps(order).encode())
        finally:
            connection.close()

    def take(self, payload: bytes) -> None:
        """An order arrived."""
        now, order = time.time(), wire.decode_order(payload)
        if not isinstance(order, SendNudge) or order.order_id in self._seen:
            return
        self._seen.add(order.order_id)
        kind = self.nudged.by_people if order.text.startswith("please") else self.nudged.by_engine
        kind.append(now - order.at)
        self._to_be_acknowledged.put_nowait(order)

    async def acknowledge(self) -> None:
        """Acknowledge it."""
        connection = self._connection()
        try:
            while True:
                order = await self._to_be_acknowledged.get()
                await connection.ask(
                    "POST", f"/api/v1/agents/{order.agent_id}/orders/{quote(order.order_id)}/ack", b""
                )
        finally:
            connection.close()

    async def provoke(self, nudges: int, seconds: float) -> None:
        """Cause nudges, evenly spread; then wait for the last to arrive."""
        connection = self._connection()
        try:
            for n, name in enumerate(self._names[:nudges]):
                if n % 2:
                    words = [
                        {"type": "error", "agent_id": name, "incarnation": "one", "message": f"no {k}"}
                        for k in range(ERRORS)
                    ]
                    await connection.ask("POST", "/api/v1/signals", json.dumps(words).encode())
                else:
                    await connection.ask(
                        "POST", f"/api/v1/agents/{name}/nudge", b'{"message": "please say how it goes"}'
                    )
                await asyncio.sleep(seconds / nudges)
        finally:
            connection.close()
        await _until(lambda: len(self.nudged.all) >= nudges)


@contextmanager
def _hub(bus: str | None) -> Iterator[tuple[str, str]]:
    """`lifesigns serve`: its address, and the admin's token."""
    with tempfile.TemporaryDirectory() as folder:
        state, config = Path(folder), Path(folder) / "lifesigns.yaml"
        config.write_text(json.dumps(CONFIG))
        port = free_port()
        options = ["--state", folder, "--config", str(config), "--port", str(port), "--log-level", "error"]
        with subprocess.Popen(
            [sys.executable, "-m", "lifesigns", "serve", *options, *(["--bus", bus] if bus else [])],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith("LIFESIGNS_")},
        ) as process:
            try:
                _wait_for(state / "hub.url")
                yield f"http://127.0.0.1:{port}", (state / "admin.token").read_text().strip()
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()


def _wait_for(file: Path) -> None:
    until = time.monotonic() + READY_WITHIN
    while not file.exists():
        if time.monotonic() > until:
            raise RuntimeError(f"the hub did not start within {READY_WITHIN:g} s")
        time.sleep(0.02)


async def _until(holds: Callable[[], object], within: float = READY_WITHIN) -> None:
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 -- what is waited for tells nobody
            await asyncio.sleep(0.01)
