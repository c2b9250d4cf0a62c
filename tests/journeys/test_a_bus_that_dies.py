"""A bus that dies is not its agents' death: who speaks over it is not judged by silence while it is away, though agents on
HTTP are still heard. While it lives, its dead are found, one or all of them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, serving
from tests.servers.nats import NatsServer
from tests.servers.process import Server
from tests.servers.valkey import ValkeyServer

ON_THE_BUS = ["bus-1", "bus-2", "bus-3", "bus-4"]
EVERY = 0.5


def published(server: Server, subject: bytes, content: bytes) -> bytes:
    """A message as the server's own protocol has it."""
    if isinstance(server, ValkeyServer):
        parts = (b"PUBLISH", subject, content)
        return b"*3\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"PUB %s %d\r\n%s\r\n" % (subject, len(content), content)


@contextmanager
def beating(hub: Hub, server: Server) -> Iterator[set[str]]:
    """Agents that beat, those on HTTP and those on the bus. Whoever is taken out of the set has died."""
    alive, over, seq = {"web", *ON_THE_BUS}, threading.Event(), 0
    line: socket.socket | None = None

    def publish(agent_id: str) -> None:
        nonlocal line
        if line is None:
            line = socket.create_connection(("127.0.0.1", server.port), 0.2)
            line.sendall(b"" if isinstance(server, ValkeyServer) else b'CONNECT {"verbose":false}\r\n')
        beat = json.dumps({"agent_id": agent_id, "seq": seq, "incarnation": f"{agent_id}-1"}).encode()
        line.sendall(published(server, f"heartbeat.{agent_id}".encode(), beat))

    def beat() -> None:
        nonlocal line, seq
        while not over.wait(EVERY):
            seq += 1
            if "web" in alive:
                hub.post("/api/v1/beats", {"agent_id": "web", "seq": seq, "incarnation": "web-1"})
            try:
                for agent_id in sorted(alive - {"web"}):
                    publish(agent_id)
            except OSError:
                if line is not None:
                    line.close()
                line = None

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield alive
    finally:
        over.set()
        thread.join()
        if line is not None:
            line.close()


@contextmanager
def a_hub_on_a_bus(
    folder: Path, kind: type[NatsServer | ValkeyServer] = NatsServer
) -> Iterator[tuple[Hub, NatsServer | ValkeyServer, set[str]]]:
    with kind() as server:
        config = {"bus": server.url, "profile": "swift"}
        with serving(folder, config) as hub, beating(hub, server) as alive:
            hub.until(
                lambda: all(hub.health(one) == "healthy" for one in ("web", *ON_THE_BUS)), "all are heard"
            )
            yield hub, server, alive


@pytest.mark.parametrize(
    ("kind", "end", "begin"),
    [
        pytest.param(NatsServer, Server.kill, Server.start, id="NATS is killed"),
        pytest.param(ValkeyServer, Server.freeze, Server.thaw, id="Valkey is frozen"),
    ],
)
def test_a_bus_that_is_killed_or_frozen_convicts_nobody(
    tmp_path: Path,
    kind: type[NatsServer | ValkeyServer],
    end: Callable[[Server], None],
    begin: Callable[[Server], object],
) -> None:
    with a_hub_on_a_bus(tmp_path, kind) as (hub, server, alive):
        end(server)
        hub.until(lambda: hub.is_blind(), "the hub knows that it is blind")
        assert hub.disconnected() == set()
        alive.remove("web")
        begin(server)
        hub.until(lambda: not hub.is_blind(), "it sees again")
        alive.remove("bus-1")
        hub.until(lambda: hub.disconnected() >= {"web", "bus-1"}, "who died since is found")
        assert hub.disconnected() == {"web", "bus-1"}


def test_all_agents_of_a_living_bus_that_die_are_found(tmp_path: Path) -> None:
    with a_hub_on_a_bus(tmp_path) as (hub, _, alive):
        alive.difference_update(ON_THE_BUS)
        hub.until(lambda: hub.disconnected() >= set(ON_THE_BUS), "all of them are found")
        assert hub.disconnected() == set(ON_THE_BUS)
