"""Addresses: what is understood, what is refused, and how a missing driver is told."""

import asyncio
import contextlib
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.adapters.bus.nats import NatsBus
from lifesigns.adapters.bus.redis import RedisBus
from lifesigns.errors import AdapterError, UsageError
from tests.contracts.bus.ground import Ear, eventually
from tests.servers.certificates import self_signed
from tests.servers.nats import NatsServer
from tests.servers.process import free_port
from tests.servers.valkey import ValkeyServer


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        (MemoryBus, "nats://x"),
        (MemoryBus, "memory"),
        (NatsBus, "http://user:secret@x"),
        (NatsBus, "nats://"),
        (NatsBus, "nats://user:secret@"),
        (NatsBus, "nats://x:port"),
        (NatsBus, "nats://x:0"),
        (NatsBus, "nats://x,,nats://y"),
        (RedisBus, "nats://x"),
        (RedisBus, "redis://"),
        (RedisBus, "redis://user:secret@x:port"),
        (RedisBus, "localhost"),
    ],
)
def test_what_is_no_address_is_refused_without_telling_its_secret(
    kind: type[MemoryBus | NatsBus | RedisBus], url: str
) -> None:
    with pytest.raises(UsageError, match="is no address") as caught:
        kind(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["nats://127.0.0.1:{}", "127.0.0.1:{}", "nats://localhost:{}/"])
async def test_addresses_of_nats(nats_server: NatsServer, address: str) -> None:
    bus = NatsBus(address.format(nats_server.port))
    await bus.connect()
    await bus.close()


@pytest.mark.parametrize(
    "address", ["redis://127.0.0.1:{}", "valkey://127.0.0.1:{}/3", "redis://localhost:{}/0"]
)
async def test_addresses_of_redis(valkey_server: ValkeyServer, address: str) -> None:
    bus = RedisBus(address.format(valkey_server.port))
    await bus.connect()
    await bus.close()


async def test_with_several_nats_servers_any_that_lives_will_do() -> None:
    with NatsServer() as one, NatsServer() as two:
        bus, ear = NatsBus(f"nats://127.0.0.1:{free_port()}, {one.url},{two.url}"), Ear()
        await bus.connect()
        await bus.subscribe("a", ear)
        for living, other in ((one, two), (two, one)):
            other.kill()
            living.kill()
            await eventually(lambda: not bus.connected)
            living.start()
            await eventually(lambda: bus.connected)
            await bus.publish("a", living.url.encode())
            await ear.until_last(living.url.encode())
        await bus.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, and its key beside it."""
    return self_signed(tmp_path_factory.mktemp("tls"))


async def test_nats_over_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked against the authorities of the system, or `SSL_CERT_FILE`; who is not vouched for is refused for good."""
    key = certificate.with_name("key.pem")
    with NatsServer("--tls", "--tlscert", str(certificate), "--tlskey", str(key)) as server:
        bus = NatsBus(f"tls://127.0.0.1:{server.port}")
        with pytest.raises(AdapterError, match="certificate") as caught:
            await bus.connect()
        assert not caught.value.transient
        assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await _talks(bus)


async def test_redis_over_tls(
    certificate: Path, valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By way of a proxy that speaks TLS, because the server of our tests does not."""
    async with tls_proxy(certificate, valkey_server.port) as port:
        bus = RedisBus(f"rediss://127.0.0.1:{port}")
        with pytest.raises(AdapterError, match="certificate") as caught:
            await bus.connect()
        assert not caught.value.transient
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await _talks(bus)


@contextlib.asynccontextmanager
async def tls_proxy(certificate: Path, port: int) -> AsyncIterator[int]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    open_ends = 0

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_ends
        open_ends += 1
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, server_writer), pump(server_reader, writer))
        open_ends -= 1

    async with await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]
        await eventually(lambda: open_ends == 0)


async def _talks(bus: NatsBus | RedisBus) -> None:
    ear = Ear()
    await bus.connect()
    await bus.subscribe("a", ear)
    await bus.publish("a", b"1")
    await ear.until(1)
    await bus.close()


async def test_an_address_that_says_tls_never_sends_a_password_in_the_clear(nats_server: NatsServer) -> None:
    bus = NatsBus(f"tls://user:secret@127.0.0.1:{nats_server.port}")
    with pytest.raises(AdapterError, match="offers no TLS") as caught:
        await bus.connect()
    assert not caught.value.transient
    await bus.close()


@pytest.mark.parametrize(("kind", "driver"), [(NatsBus, "nats"), (RedisBus, "redis")])
async def test_a_missing_driver_is_told_with_the_command_that_brings_it(
    kind: type[NatsBus | RedisBus], driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name == driver or name.startswith(f"{driver}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"lifesigns.adapters.bus.{driver}_connection", raising=False)
    monkeypatch.setitem(sys.modules, driver, None)
    bus = kind(f"{driver}://127.0.0.1:1")
    with pytest.raises(AdapterError, match=rf"pip install 'lifesigns\[{driver}\]'") as caught:
        await bus.connect()
    assert not caught.value.transient


async def test_a_parameter_that_redis_does_not_know_is_named() -> None:
    bus = RedisBus("redis://127.0.0.1:1?nonsense=1")
    with pytest.raises(AdapterError, match="nonsense") as caught:
        await bus.connect()
    assert not caught.value.transient


def test_no_driver_is_loaded_before_it_is_needed() -> None:
    """Also not by the modules of the buses themselves."""
    code = (
        "import sys, lifesigns.adapters.bus.memory, lifesigns.adapters.bus.nats, lifesigns.adapters.bus.redis;"
        "sys.exit(bool({'nats', 'redis'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
