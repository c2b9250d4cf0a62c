"""Servers that refuse: wrong passwords, missing permissions, connections they end on purpose."""

import contextlib
import socket
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from lifesigns.adapters.bus.nats import NatsBus
from lifesigns.adapters.bus.redis import RedisBus
from lifesigns.adapters.bus.server_bus import ServerBus
from lifesigns.errors import AdapterError
from tests.contracts.bus.ground import Ear, eventually
from tests.servers.nats import NatsServer
from tests.servers.process import Server
from tests.servers.valkey import ValkeyServer

PASSWORD = "p@ss:w/rd%"
QUOTED = "p%40ss%3Aw%2Frd%25"


@contextlib.asynccontextmanager
async def connected(bus: ServerBus) -> AsyncIterator[ServerBus]:
    try:
        await bus.connect()
        yield bus
    finally:
        await bus.close()


@pytest.mark.parametrize(
    ("server_kind", "arguments", "userinfo"),
    [
        (NatsServer, ["--user", "ada", "--pass", PASSWORD], f"ada:{QUOTED}"),
        (NatsServer, ["--auth", PASSWORD], QUOTED),
        (ValkeyServer, ["--requirepass", PASSWORD], f":{QUOTED}"),
        (ValkeyServer, ["--user", "ada", "on", f">{PASSWORD}", "&*", "+@all"], f"ada:{QUOTED}"),
    ],
    ids=["nats password", "nats token", "redis password", "redis user"],
)
async def test_credentials_are_read_from_the_address_and_never_shown(
    server_kind: type[Server], arguments: list[str], userinfo: str
) -> None:
    with server_kind(*arguments) as server:
        place = f"127.0.0.1:{server.port}"
        kind = NatsBus if server.scheme == "nats" else RedisBus
        async with connected(kind(f"{server.scheme}://{userinfo}@{place}")) as bus:
            ear = Ear()
            await bus.subscribe("a", ear)
            await bus.publish("a", b"1")
            await ear.until(1)
            server.restart()
            await eventually(lambda: bus.losses == 1 and bus.connected)
        wrong = kind(f"{server.scheme}://{userinfo}secret@{place}")
        with pytest.raises(AdapterError, match=place) as caught:
            await wrong.connect()
        assert not caught.value.transient, "another try would fail as well"
        assert "secret" not in str(caught.value)


async def test_what_nats_does_not_permit_is_raised_where_it_can_be(tmp_path: Path) -> None:
    """A monitor that silently hears nothing would be the worst of monitors."""
    config = tmp_path / "nats.conf"
    config.write_text(
        'authorization { users = [{user: u, password: p, permissions: {publish: "ok.>", subscribe: "ok.>"}}] }'
    )
    with NatsServer("--config", str(config)) as server:
        async with connected(NatsBus(f"nats://u:p@127.0.0.1:{server.port}")) as bus:
            await _is_refused_only_what_is_forbidden(bus)


async def test_what_redis_does_not_permit_is_raised_where_it_can_be() -> None:
    with ValkeyServer("--user", "u", "on", ">p", "&ok.*", "+@all") as server:
        async with connected(RedisBus(f"redis://u:p@127.0.0.1:{server.port}")) as bus:
            await _is_refused_only_what_is_forbidden(bus)


async def _is_refused_only_what_is_forbidden(bus: ServerBus) -> None:
    ear = Ear()
    await bus.subscribe("ok.*", ear)
    with pytest.raises(AdapterError, match="refused") as caught:
        await bus.subscribe("forbidden.*", Ear())
    assert not caught.value.transient
    await bus.publish("forbidden.x", b"")
    with pytest.raises(AdapterError, match="refused"):
        await bus.flush()
    await bus.publish("ok.x", b"")
    await bus.flush()
    await ear.until(1)
    assert bus.losses == 0


async def test_a_connection_that_nats_ends_with_an_error_is_found_again(nats_server: NatsServer) -> None:
    """nats-py would stop for good at any error of the server. Another client's words make the server say one here."""
    async with connected(NatsBus(nats_server.url)) as bus, connected(NatsBus(nats_server.url)) as other:
        ear = Ear()
        await bus.subscribe("a", ear)
        connection = bus._connection
        assert connection is not None
        connection.client._transport.write(b"NONSENSE\r\n")  # type: ignore[attr-defined]
        await eventually(lambda: bus.losses == 1 and bus.connected)
        await other.publish("a", b"1")
        await ear.until(1)


async def test_a_subject_that_is_no_text_ends_nothing(nats_server: NatsServer) -> None:
    """To a NATS server subjects are bytes; nats-py would never hear anything again."""
    async with connected(NatsBus(nats_server.url)) as bus:
        ear = Ear()
        await bus.subscribe("heartbeat.>", ear)
        with socket.create_connection(("127.0.0.1", nats_server.port), 10) as connection:
            connection.sendall(b'CONNECT {"verbose":false}\r\nPUB heartbeat.\xff 1\r\n1\r\n')
            await ear.until(1)
        await bus.publish("heartbeat.a", b"2")
        await ear.until(2)
        assert ear.payloads == [b"1", b"2"]
        assert bus.losses == 0


async def test_a_connection_that_redis_ends_is_found_again(valkey_server: ValkeyServer) -> None:
    """Either of the two: the one that sends and the one that hears."""
    async with connected(RedisBus(valkey_server.url)) as bus:
        ear = Ear()
        await bus.subscribe("a", ear)
        for losses, kind in ((1, "normal"), (2, "pubsub")):
            with socket.create_connection(("127.0.0.1", valkey_server.port), 10) as connection:
                connection.sendall(f"CLIENT KILL TYPE {kind} SKIPME yes\r\n".encode())
                assert connection.recv(64) == b":1\r\n"
            await eventually(partial(_came_back, bus, losses))
            await bus.publish("a", b"1")
            await ear.until(losses)


def _came_back(bus: ServerBus, losses: int) -> bool:
    return bus.losses == losses and bus.connected


async def test_who_is_cut_off_by_redis_for_being_slow_comes_back_and_it_is_counted() -> None:
    """The server keeps only so much for a slow subscriber. Others are not disturbed."""
    limit = "--client-output-buffer-limit"
    with ValkeyServer(limit, "pubsub 1mb 1mb 1") as server:
        async with (
            connected(RedisBus(server.url)) as slow,
            connected(RedisBus(server.url)) as other,
            connected(RedisBus(server.url)) as speaker,
        ):
            ear, elsewhere = Ear(), Ear()
            stands, poured = threading.Event(), threading.Event()

            def stand_still(subject: str, payload: bytes) -> None:
                stands.set()
                poured.wait(30)
                ear(subject, payload)

            await slow.subscribe("flood", stand_still)
            await other.subscribe("trickle", elsewhere)
            await slow.flush()
            flood = threading.Thread(target=_flood, args=(server, stands, poured))
            flood.start()
            await eventually(poured.is_set)
            flood.join()
            await eventually(lambda: slow.losses > 0 and slow.connected)
            assert (other.losses, speaker.losses) == (0, 0)
            await speaker.publish("flood", b"after")
            await speaker.publish("trickle", b"after")
            await ear.until_last(b"after")
            await elsewhere.until_last(b"after")


def _flood(server: ValkeyServer, stands: threading.Event, poured: threading.Event) -> None:
    """More than the sockets and the server together hold for one subscriber that stands still: until nobody listens any more."""
    message = b"*3\r\n$7\r\nPUBLISH\r\n$5\r\nflood\r\n$1048576\r\n" + bytes(1024 * 1024) + b"\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        listeners = b":1\r\n"
        while listeners == b":1\r\n":
            connection.sendall(message)
            listeners = connection.recv(64)
            stands.wait(30)
    poured.set()


async def test_the_limit_of_a_message_is_the_servers(tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"
    config.write_text("max_payload: 2000")
    with NatsServer("--config", str(config)) as server:
        async with connected(NatsBus(server.url)) as bus:
            assert bus.payload_max == 2000
            with pytest.raises(AdapterError, match="2001 bytes"):
                await bus.publish("a", bytes(2001))
            await bus.publish("a", bytes(2000))
            await bus.flush()
            config.write_text("max_payload: 3000")
            server.restart()
            await eventually(lambda: bus.losses == 1 and bus.connected)
            assert bus.payload_max == 3000
