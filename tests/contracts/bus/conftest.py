"""Real servers: one of each for the quiet tests, one per test for those that kill and freeze it."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.adapters.bus.nats import NatsBus
from lifesigns.adapters.bus.redis import RedisBus
from tests.contracts.bus.ground import Ground, ServerGround
from tests.servers.nats import NatsServer
from tests.servers.valkey import ValkeyServer


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


@pytest.fixture(params=["memory", "nats", "redis"])
async def ground(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    """Any bus."""
    match request.param:
        case "memory":
            ground = Ground(MemoryBus, f"memory://{uuid.uuid4()}")
        case "nats":
            ground = Ground(NatsBus, request.getfixturevalue("nats_server").url)
        case _:
            ground = Ground(RedisBus, request.getfixturevalue("valkey_server").url)
    yield ground
    await ground.close()


@pytest.fixture(params=["nats", "redis"])
async def server_ground(request: pytest.FixtureRequest) -> AsyncIterator[ServerGround]:
    """Any bus with a server, which this test may harm."""
    server = NatsServer() if request.param == "nats" else ValkeyServer()
    with server:
        ground = ServerGround(NatsBus if request.param == "nats" else RedisBus, server)
        yield ground
        await ground.close()
