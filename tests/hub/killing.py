"""A hub that is killed again and again under load, and everything it said meanwhile.

Two hundred agents beat, claim tasks, save checkpoints and go wrong; they obey orders as a sender does, once by id, and
tell the outcome. Somebody listens to the events. What was promised to any of them is written down here and compared
with the store after every death.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lifesigns.adapters.link.http_connection import HttpConnection, Target
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.core.beliefs import Beliefs
from lifesigns.errors import AdapterError
from lifesigns.hub import memory
from lifesigns.ports import Event
from tests.servers.forked import ForkedProcess, forked
from tests.servers.process import free_port

ROOT = Path(__file__).parents[2]
READY_WITHIN = 30.0
FOUND_WITHIN = 60.0
AWAY_FOR = 4.0
"""The last outage: longer than an agent may be silent."""
HOUSES, AGENTS_EACH = 4, 50
BEAT_EVERY = 0.25
CONFIG = {
    "profile": "swift",
    "policy": {"ladder": {"nudge_every": 1.0, "nudge_max": 3}},
    "fleet": {"nudges_per_minute": 100_000, "acted_share": 1.0, "truce_min": 2.0},
}


async def until(condition: Callable[[], object], within: float) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.01)


@dataclass
class Promises:
    """What the hub said to somebody, by the moment it said it."""

    told: dict[int, Event] = field(default_factory=dict)
    """Events somebody has seen."""
    checkpoints: dict[str, int] = field(default_factory=dict)
    """The last checkpoint of each agent that was acknowledged."""
    claims: dict[str, str] = field(default_factory=dict)
    """Tasks that were acknowledged as claimed, and by whom."""
    obeyed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Orders that were carried out, by id."""
    over: set[str] = field(default_factory=set)
    """Orders whose acknowledgement or outcome was taken."""
    broken: list[str] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        """An event was seen."""
        if self.told and event.id <= max(self.told):
            same = "the same" if self.told.get(event.id) == event else "another"
            self.broken.append(f"event {event.id} was told after {max(self.told)}: {same} as before")
        self.told[event.id] = event

    def offer(self, order: dict[str, Any]) -> bool:
        """An order is offered. Whether it is to be carried out."""
        order_id = order["order_id"]
        if order_id in self.over:
            self.broken.append(f"order {order_id} was given again after its end")
        if order_id in self.obeyed:
            return False
        same = [o for o in self.obeyed.values() if _step(o) == _step(order)]
        if same:
            self.broken.append(f"{_step(order)} was ordered as {order_id} and as {same[0]['order_id']}")
        self.obeyed[order_id] = order
        return True


def _step(order: dict[str, Any]) -> tuple[str, str, int]:
    """The rung of one life that an order is."""
    return order["type"], order["agent_id"], order.get("attempt", 0)


class Fleet:
    """The agents, in houses with one connection each."""

    def __init__(self, url: str, token: str, promises: Promises) -> None:
        self.url = url
        self.token = token
        self.promises = promises
        self.houses = [[f"h{h}-{n}" for n in range(AGENTS_EACH)] for h in range(HOUSES)]
        self.dead: set[str] = set()
        self.bad: set[str] = set()
        self.posts = 0
        self._round = 0

    @property
    def living(self) -> list[str]:
        return [name for house in self.houses for name in house if name not in self.dead]

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._live(house)) for house in self.houses]
            tasks.append(group.create_task(self._listen()))
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    async def _live(self, house: list[str]) -> None:
        connection, seq = HttpConnection(Target.of(self.url), self.token), 0
        try:
            while True:
                seq += 1
                with suppress(AdapterError):
                    await self._beat(connection, house, seq)
                    await self._speak(connection, house, seq)
                await asyncio.sleep(BEAT_EVERY)
        finally:
            connection.close()

    async def _beat(self, connection: HttpConnection, house: list[str], seq: int) -> None:
        beats = [
            {"agent_id": name, "seq": seq, "incarnation": "one"} for name in house if name not in self.dead
        ]
        answer = await self._post(connection, "/api/v1/beats", beats)
        for orders in answer.get("orders", {}).values():
            for order in orders:
                await self._obey(connection, order)

    async def _speak(self, connection: HttpConnection, house: list[str], seq: int) -> None:
        """A checkpoint and a claim of somebody, the one of before released; the bad ones err."""
        self._round += 1
        names = [name for name in house if name not in self.dead]
        name, task = names[seq % len(names)], f"t-{house[0]}-{seq}"
        words: list[dict[str, Any]] = [
            {"type": "checkpoint", "checkpoint_id": f"{seq}", **_from(name)},
            {"type": "claim", "task_id": task, **_from(name)},
            *({"type": "error", "message": "no", **_from(bad)} for bad in self.bad.intersection(names)),
        ]
        if await self._post(connection, "/api/v1/signals", words):
            self.promises.checkpoints[name] = seq
            self.promises.claims[task] = name

    async def _obey(self, connection: HttpConnection, order: dict[str, Any]) -> None:
        if order["type"] == "ping" or order["agent_id"] in self.dead:
            return
        agent, order_id = order["agent_id"], order["order_id"]
        if self.promises.offer(order) and self._round % 2:
            word = {"type": "nudge_delivered", "order_id": order_id, **_from(agent)}
            if await self._post(connection, "/api/v1/signals", [word]):
                self.promises.over.add(order_id)
        else:
            path = f"/api/v1/agents/{quote(agent)}/orders/{order_id}/ack"
            if (await connection.ask("POST", path, b"")).status in (204, 404):
                self.promises.over.add(order_id)

    async def _post(
        self, connection: HttpConnection, path: str, messages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """What was answered; empty if it was not taken."""
        reply = await connection.ask("POST", path, json.dumps(messages).encode())
        self.posts += 1
        if reply.status != 202:
            return {}
        answer: dict[str, Any] = json.loads(reply.body)
        if answer["rejected"]:
            self.promises.broken.append(f"rejected: {answer['rejected'][:2]}")
        return answer

    async def _listen(self) -> None:
        """To all events, from where it was cut off."""
        port = Target.of(self.url).port
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
                try:
                    last = max(self.promises.told, default=0)
                    head = f"GET /api/v1/events?after={last} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                    writer.write(f"{head}Authorization: Bearer {self.token}\r\n\r\n".encode())
                    await self._hear(reader)
                finally:
                    writer.close()
            await asyncio.sleep(0.02)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            if line.startswith(b"data: "):
                told = json.loads(line[6:])
                if told["id"]:
                    event = Event(
                        told["id"], 0.0, told["type"], told["agent_id"], json.dumps(told["data"]).encode()
                    )
                    self.promises.tell(event)


def _from(agent_id: str) -> dict[str, str]:
    return {"agent_id": agent_id, "incarnation": "one"}


class Killed:
    """A hub in one state folder, forked anew after each death."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.port = free_port()
        self.starts: list[float] = []
        """How long it took to be there again."""
        self._process: ForkedProcess | None = None
        (state / "lifesigns.yaml").write_text(json.dumps(CONFIG))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        began_at = time.monotonic()
        where = ("--state", str(self.state), "--port", str(self.port), "--log-level", "error")
        config = ("--config", str(self.state / "lifesigns.yaml"))
        log = self.state / "forked.log"
        self._process = forked("serve", *where, *config, cwd=self.state, env=os.environ, log=log)
        connection = HttpConnection(Target.of(self.url), None)
        try:
            async with asyncio.timeout(READY_WITHIN):
                while True:
                    with suppress(AdapterError):
                        await connection.ask("GET", "/healthz")
                        break
                    await asyncio.sleep(0.005)
        finally:
            connection.close()
        self.starts.append(time.monotonic() - began_at)

    async def kill(self) -> None:
        """As nobody can prevent."""
        assert self._process is not None
        self._process.kill()
        status = await asyncio.to_thread(self._process.wait)
        assert status == -signal.SIGKILL, (self.state / "forked.log").read_text()[-2000:]

    def close(self) -> None:
        """Whatever became of it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@dataclass
class Story:
    """How it went."""

    deaths: int = 0
    events: int = 0
    orders: int = 0
    posts: int = 0
    found: int = 0
    starts: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


async def story(state: Path, *, kills: int, seed: int) -> Story:
    """Kill a hub so often, at moments of chance, and look after each death whether everything promised is there."""
    chance, promises, told = random.Random(seed), Promises(), Story()
    hub = Killed(state)
    with closing(hub):
        await hub.start()
        fleet = Fleet(hub.url, (state / "admin.token").read_text().strip(), promises)
        async with fleet.alive():
            await until(lambda: len(promises.checkpoints) >= HOUSES, READY_WITHIN)
            for _ in range(kills):
                fleet.bad.update(chance.sample(fleet.living, 3))
                await asyncio.sleep(chance.uniform(0.1, 1.0))
                fleet.dead.add(chance.choice([name for name in fleet.living if name not in fleet.bad]))
                await hub.kill()
                told.deaths += 1
                promises.broken += await compare(state, promises)
                if told.deaths == kills:
                    await asyncio.sleep(AWAY_FOR)
                await hub.start()
            await until(lambda: fleet.dead <= _lost(promises), FOUND_WITHIN)
        promises.broken += [f"{name} lives and was declared dead" for name in _lost(promises) - fleet.dead]
        await hub.kill()
        promises.broken += await compare(state, promises)
    told.events, told.orders, told.posts = len(promises.told), len(promises.obeyed), fleet.posts
    told.found, told.starts, told.broken = len(fleet.dead), hub.starts, promises.broken
    return told


def _lost(promises: Promises) -> set[str]:
    """Agents of whom it was told that they are disconnected."""
    return {
        event.agent_id
        for event in promises.told.values()
        if event.type == "HEALTH_STATE_CHANGED" and json.loads(event.data)["to"] == "disconnected"
    }


async def compare(state: Path, promises: Promises) -> list[str]:
    """What was promised and is not in the store."""
    store = SqliteStore(state / "lifesigns.db")
    try:
        kept: list[Event] = []
        while page := await store.events(after=len(kept), limit=5000):
            kept += page
        beliefs = memory.recalled((await store.open()).beliefs)
    finally:
        await store.close()
    broken = []
    if [event.id for event in kept] != list(range(1, len(kept) + 1)):
        broken.append("the ids of the events have a gap or a double")
    by_id = {event.id: event for event in kept}
    for event in promises.told.values():
        same = by_id.get(event.id)
        if same is None or (same.type, json.loads(same.data)) != (event.type, json.loads(event.data)):
            broken.append(f"event {event.id} was told and is not kept")
    return broken + _missing_words(beliefs, kept, promises) + _doubles(kept)


def _missing_words(beliefs: Beliefs, kept: list[Event], promises: Promises) -> list[str]:
    broken = []
    for name, number in promises.checkpoints.items():
        agent = beliefs.agents.get(name)
        saved = agent.work.checkpoint_id if agent is not None and agent.work is not None else None
        if saved is None or int(saved) < number:
            broken.append(f"{name} saved checkpoint {number}, and {saved} is remembered")
    granted = {
        data["task_id"]: data["agent_id"]
        for event in kept
        if event.type == "CLAIM_CHANGED" and (data := json.loads(event.data))["stage"] == "granted"
    }
    for task, name in promises.claims.items():
        if granted.get(task) != name:
            broken.append(f"{task} was claimed by {name}, and that is not kept")
    return broken


def _doubles(kept: list[Event]) -> list[str]:
    """Rungs that were climbed twice in one life."""
    rungs = Counter(
        (event.agent_id, data["attempt"])
        for event in kept
        if event.type == "NUDGE_SENT"
        for data in (json.loads(event.data),)
    )
    return [
        f"nudge {attempt} of {name} was ordered {count} times"
        for (name, attempt), count in rungs.items()
        if count > 1
    ]
