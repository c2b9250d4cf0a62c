"""The process under load, pinned to one core: a hub with its database, or the bare ceiling beside it.

The ceiling is what the hub rests on, doing nothing: the same server under the same settings that reads the body, decodes
it by the same function and answers the same bytes; on a bus, the same adapter and decoder. What lies between the two is
the price of the hub.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import uvloop

from benchmarks import hub_profile
from lifesigns import wire
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.assembly.links import bus_at
from lifesigns.config.values import Limits
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.hub.principals import Role
from lifesigns.hub.service import Service
from lifesigns.web.app import Web
from lifesigns.web.connections import Connections
from lifesigns.web.garbage_collection import survivors_frozen
from lifesigns.web.server import listen, served, serving

OWN_CORE, LOAD_CORE = 0, 1
COUNTED_EVERY = 0.002
UNLIMITED = FleetPolicy(agents_per_source=10**7, agents_max=10**7)


@dataclass(frozen=True)
class ProcessOptions:
    """What to run: a hub, or only its ceiling."""

    bare: bool = False
    folder: str = ""
    bus: str | None = None
    policy: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """The state of the process at one moment."""

    at: float
    cpu: float
    """CPU seconds of all its threads."""
    rss_mb: float
    beats: int
    found_late: list[int]
    """How many disconnections were known how long after they were due: by the bounds of `LATE_UP_TO`."""
    told_late: list[float]
    """Seconds from the moment an agent's disconnection was due until it was stored and published."""


class UnderLoad:
    """`with UnderLoad(ProcessOptions(...)) as hub: hub.port, hub.token, hub.beats, hub.read()`."""

    def __init__(self, options: ProcessOptions) -> None:
        context = get_context("spawn")
        self._pipe, other = context.Pipe()
        self._beats = context.Value("q", 0, lock=False)
        self._process: BaseProcess = context.Process(
            target=_run, args=(options, other, self._beats), daemon=True
        )
        self._other = other

    def __enter__(self) -> Self:
        self._process.start()
        self._other.close()
        self.port, self.token = self._pipe.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.send("stop")
        self._process.join(30)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def beats(self) -> int:
        """Beats taken so far, a few milliseconds ago."""
        return int(self._beats.value)

    def read(self) -> Reading:
        self._pipe.send("read")
        reading: Reading = self._pipe.recv()
        return reading

    def profile(self, begin: bool) -> dict[str, float]:
        """Begin to profile; or end, and return shares."""
        self._pipe.send("profile" if begin else "shares")
        shares: dict[str, float] = self._pipe.recv()
        return shares


# --- in the process -----------------------------------------------------------------------------------


def _run(options: ProcessOptions, pipe: Connection, beats: Any) -> None:
    os.sched_setaffinity(0, {OWN_CORE})
    uvloop.run(_serve(options, pipe, beats))


async def _serve(options: ProcessOptions, pipe: Connection, beats: Any) -> None:
    async with AsyncExitStack() as stack:
        if options.bare:
            subject: _Bare | _Hub = await stack.enter_async_context(_bare(options))
        else:
            subject = await stack.enter_async_context(_hub(options))
        stack.enter_context(survivors_frozen())
        pipe.send((subject.port, subject.token))
        asked = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipe.fileno(), asked.set)
        counting = asyncio.create_task(_count(subject, beats))
        while True:
            await asked.wait()
            asked.clear()
            match pipe.recv():
                case "read":
                    pipe.send(subject.read())
                case "profile":
                    hub_profile.begin()
                    pipe.send({})
                case "shares":
                    pipe.send(hub_profile.end())
                case _:
                    break
        asyncio.get_running_loop().remove_reader(pipe.fileno())
        counting.cancel()


async def _count(subject: _Bare | _Hub, beats: Any) -> None:
    while True:
        await asyncio.sleep(COUNTED_EVERY)
        beats.value = subject.beats


class _Hub:
    """A whole hub."""

    def __init__(self, service: Service, port: int, token: str) -> None:
        self.service, self.port, self.token = service, port, token
        self.told_late: list[float] = []

    @property
    def beats(self) -> int:
        return self.service.hub.counters.beats

    def read(self) -> Reading:
        return _reading(self.beats, list(self.service.hub.counters.finds_late.counts), list(self.told_late))

    async def listen(self) -> None:
        """Record how late disconnections are published."""
        while not await self._listen_until_overrun():
            pass  # Too slow for a moment, so we missed something: continue from here.

    async def _listen_until_overrun(self) -> bool:
        """Whether nothing more will come."""
        async with self.service.feed.listen(("HEALTH_STATE_CHANGED",)) as listener:
            while not (listener.ended or listener.overrun):
                for event in await listener.next(60.0):
                    if (
                        b'"disconnected"' in event.data
                        and msgspec.json.decode(event.data).get("to") == "disconnected"
                    ):
                        self.told_late.append(self.service.clock() - event.at)
            return listener.ended


@asynccontextmanager
async def _hub(options: ProcessOptions) -> AsyncIterator[_Hub]:
    service = Service(
        SqliteStore(Path(options.folder) / "bench.db"),
        None if options.bus is None else bus_at(options.bus),
        policies=PolicyBook(Policy().with_changes(options.policy)),
        fleet=UNLIMITED,
    )
    await service.start()
    try:
        made = await service.access.tokens.create(role=Role.ADMIN, name="bench", now=service.clock())
        await _until(lambda: service.bus_state in ("ok", "none"))
        listener = listen("127.0.0.1", 0)
        hub = _Hub(service, listener.getsockname()[1], made.token)
        ear = asyncio.create_task(hub.listen())
        # How much it can take, not how much one sender of a bus is allowed.
        limits = Limits(busy_share_per_token=1.0)
        async with serving(Web(service, limits=limits), listener):
            yield hub
        ear.cancel()
    finally:
        await service.stop()


class _Bare:
    """The ceiling."""

    def __init__(self, port: int) -> None:
        self.port, self.token, self.beats = port, "none", 0

    def read(self) -> Reading:
        return _reading(self.beats, [], [])

    def hear(self, subject: str, payload: bytes) -> None:
        if payload[0] == ord("{"):
            wire.decode_beat(payload, "bus", time.time())
            self.beats += 1
        else:
            self.beats += len(wire.decode_beats(payload, "bus", time.time()).accepted)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        now = time.time()
        single = wire.decode_single(body, "bare", now) is not None
        count = 1 if single else len(wire.decode_beats(body, "bare", now).accepted)
        self.beats += count
        answer = b'{"accepted":%d,"rejected":[],"orders":{}}' % count
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


@asynccontextmanager
async def _bare(options: ProcessOptions) -> AsyncIterator[_Bare]:
    listener = listen("127.0.0.1", 0)
    bare = _Bare(listener.getsockname()[1])
    bus = None if options.bus is None else bus_at(options.bus)
    if bus is not None:
        await bus.connect()
        await bus.subscribe("heartbeat.>", bare.hear)
    async with served(bare, listener, Connections()):
        yield bare
    if bus is not None:
        await bus.close()


def _reading(beats: int, found: list[int], told: list[float]) -> Reading:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Reading(time.monotonic(), time.process_time(), pages * 4096 / 2**20, beats, found, told)


async def _until(holds: Callable[[], bool], within: float = 20.0) -> None:
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 -- what it waits for tells nobody
            await asyncio.sleep(0.01)
