"""A real gRPC client asks after the hub and its agents."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from lifesigns.adapters.observe import grpc_health
from lifesigns.adapters.observe.grpc_health import LISTED_MAX, GrpcHealth
from lifesigns.core.health import Health
from lifesigns.errors import AdapterError
from lifesigns.ports import Event

WAIT_MAX = 20.0
GOOD = (("authorization", "Bearer good"),)
Response = health_pb2.HealthCheckResponse


class Fleet:
    """What the hub believes."""

    def __init__(self) -> None:
        self.is_ready = True
        self.known: dict[str, Health] = {"coder-7": Health.HEALTHY}
        self.server = GrpcHealth(self)
        self.stub: Any = None
        self.port = 0

    def ready(self) -> bool:
        return self.is_ready

    def health_of(self, agent_id: str) -> Health | None:
        return self.known.get(agent_id)

    def agents(self) -> Iterable[str]:
        return self.known

    def may_list(self, authorization: str) -> bool:
        return authorization == "Bearer good"

    def flip(self, agent_id: str, to: Health) -> None:
        self.known[agent_id] = to
        self.server.tell([Event(1, 1.0, "HEALTH_STATE_CHANGED", agent_id, b"{}")])

    async def check(self, service: str) -> int:
        answer = await self.stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=WAIT_MAX)
        return int(answer.status)

    def watch(self, service: str) -> Watch:
        return Watch(self.stub.Watch(health_pb2.HealthCheckRequest(service=service)))


class Watch:
    def __init__(self, call: Any) -> None:
        self.call = call

    async def next(self) -> int:
        async with asyncio.timeout(WAIT_MAX):
            return int((await self.call.read()).status)


@asynccontextmanager
async def serving() -> AsyncIterator[Fleet]:
    fleet = Fleet()
    fleet.port = await fleet.server.start("127.0.0.1", 0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{fleet.port}") as channel:
        fleet.stub = health_pb2_grpc.HealthStub(channel)
        try:
            yield fleet
        finally:
            await fleet.server.close()


@pytest.fixture
def looking_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_health, "LOOK_EVERY", 0.02)


@pytest.fixture
def never_looking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(grpc_health, "LOOK_EVERY", 3600.0)
    return iter(())


async def test_the_hub_serves_while_it_is_ready() -> None:
    async with serving() as fleet:
        assert await fleet.check("") == Response.SERVING
        fleet.is_ready = False
        assert await fleet.check("") == Response.NOT_SERVING


@pytest.mark.parametrize("health", Health)
async def test_an_agent_serves_while_it_is_healthy_or_degraded(health: Health) -> None:
    async with serving() as fleet:
        fleet.known["coder-7"] = health
        expected = health in (Health.HEALTHY, Health.DEGRADED)
        for service in ("coder-7", "agent/coder-7"):
            assert await fleet.check(service) == (Response.SERVING if expected else Response.NOT_SERVING)


async def test_who_was_never_heard_of_is_not_found() -> None:
    async with serving() as fleet:
        for service in ("nobody", "agent/nobody", "agent/", "x" * 3000):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await fleet.check(service)
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_id_that_looks_like_a_prefix_is_an_id_first() -> None:
    async with serving() as fleet:
        fleet.known |= {"agent/x": Health.STUCK, "x": Health.HEALTHY}
        assert await fleet.check("agent/x") == Response.NOT_SERVING
        assert await fleet.check("x") == Response.SERVING


@pytest.mark.usefixtures("never_looking")
async def test_who_watches_an_agent_is_told_of_each_change_by_its_event() -> None:
    async with serving() as fleet:
        watches = [fleet.watch("coder-7"), fleet.watch("agent/coder-7")]
        assert [await watch.next() for watch in watches] == [Response.SERVING] * 2
        fleet.flip("coder-7", Health.DEGRADED)  # Serves as before: nothing to tell.
        fleet.flip("coder-7", Health.DISCONNECTED)
        assert [await watch.next() for watch in watches] == [Response.NOT_SERVING] * 2
        fleet.flip("coder-7", Health.HEALTHY)
        assert [await watch.next() for watch in watches] == [Response.SERVING] * 2


@pytest.mark.usefixtures("never_looking")
async def test_an_agent_may_be_watched_before_it_is_heard_of() -> None:
    async with serving() as fleet:
        watch = fleet.watch("coder-8")
        assert await watch.next() == Response.SERVICE_UNKNOWN
        fleet.flip("coder-8", Health.HEALTHY)
        assert await watch.next() == Response.SERVING


@pytest.mark.usefixtures("looking_often")
async def test_what_no_event_tells_is_found_by_a_look() -> None:
    """The store is away; an agent is forgotten."""
    async with serving() as fleet:
        hub, agent = fleet.watch(""), fleet.watch("coder-7")
        assert (await hub.next(), await agent.next()) == (Response.SERVING, Response.SERVING)
        fleet.is_ready = False
        assert await hub.next() == Response.NOT_SERVING
        del fleet.known["coder-7"]
        assert await agent.next() == Response.SERVICE_UNKNOWN


@pytest.mark.usefixtures("looking_often")
async def test_who_comes_later_takes_nothing_from_those_who_watch() -> None:
    async with serving() as fleet:
        first = fleet.watch("")
        assert await first.next() == Response.SERVING
        fleet.is_ready = False
        second = fleet.watch("")
        assert await second.next() == Response.NOT_SERVING
        assert await first.next() == Response.NOT_SERVING


async def test_who_hangs_up_leaves_nothing_behind() -> None:
    async with serving() as fleet:
        watches = [fleet.watch("coder-7") for _ in range(20)]
        for watch in watches:
            await watch.next()
        assert len(fleet.server._watchers["coder-7"]) == 20
        for watch in watches:
            watch.call.cancel()
        async with asyncio.timeout(WAIT_MAX):
            while fleet.server._watchers:  # noqa: ASYNC110 -- nobody tells when a client is gone
                await asyncio.sleep(0.01)


async def test_watchers_are_limited_and_checks_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_health, "WATCHERS_MAX", 3)
    async with serving() as fleet:
        watches = [fleet.watch("") for _ in range(3)]
        for watch in watches:
            await watch.next()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await fleet.watch("").next()
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await fleet.check("") == Response.SERVING


async def test_nobody_is_listed_without_a_token() -> None:
    async with serving() as fleet:
        for metadata in ((), (("authorization", "Bearer wrong"),)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await fleet.stub.List(health_pb2.HealthListRequest(), timeout=WAIT_MAX, metadata=metadata)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_few_are_listed_and_many_are_not() -> None:
    async with serving() as fleet:
        fleet.known["stuck-one"] = Health.STUCK
        listed = await fleet.stub.List(health_pb2.HealthListRequest(), timeout=WAIT_MAX, metadata=GOOD)
        assert {name: status.status for name, status in listed.statuses.items()} == {
            "": Response.SERVING,
            "coder-7": Response.SERVING,
            "stuck-one": Response.NOT_SERVING,
        }
        fleet.known.update({f"a-{n}": Health.HEALTHY for n in range(LISTED_MAX)})
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await fleet.stub.List(health_pb2.HealthListRequest(), timeout=WAIT_MAX, metadata=GOOD)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_port_that_is_taken_is_named() -> None:
    async with serving() as fleet:
        with pytest.raises(AdapterError, match=rf"127\.0\.0\.1:{fleet.port}"):
            await Fleet().server.start("127.0.0.1", fleet.port)


async def test_a_server_that_closes_lets_its_watchers_go() -> None:
    async with serving() as fleet:
        watch = fleet.watch("")
        await watch.next()
        async with asyncio.timeout(WAIT_MAX):
            await fleet.server.close()
            assert await watch.call.read() is grpc.aio.EOF


def test_a_missing_extra_is_named() -> None:
    code = """
import sys
sys.modules["grpc"] = None
from lifesigns.adapters.observe.grpc_health import GrpcHealth
from lifesigns.errors import UsageError
try:
    GrpcHealth(None)
except UsageError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "pip install 'lifesigns[grpc]'" in ran.stdout
