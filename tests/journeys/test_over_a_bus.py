"""Agents that speak over a bus: what they said while the hub was away arrives, and who was cut off is not ended when it returns."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, serving
from tests.journeys.test_endings import IMPATIENT, WORKER, Line, seems_well, stages
from tests.servers.nats import NatsServer
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.timeout(240)

SAVES = 60
"""Checkpoints of one task; the hub remembers 64."""

SAVER = f"""
import os, time, lifesigns

with lifesigns.Sender("saver", task="t-1", interval=0.5) as life:
    while not os.path.exists("begin"):
        time.sleep(0.1)
    for number in range({SAVES}):
        life.checkpoint(f"cp-{{number}}")
        print(number, flush=True)
        time.sleep(0.1)
    while not os.path.exists("enough"):
        time.sleep(0.1)
"""


def said(hub: Hub, agent: subprocess.Popen[str]) -> int:
    """How many it has saved so far; it may complain meanwhile."""
    return sum(line.isdecimal() for line in hub.output(agent).splitlines())


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
def test_what_is_said_while_the_hub_is_away_arrives(
    tmp_path: Path, kind: type[NatsServer | ValkeyServer]
) -> None:
    """The bus takes each of them, and keeps none: the sender does, until the hub has stored it."""
    with kind() as server, serving(tmp_path, {"bus": server.url}) as hub:
        agent = hub.python("saver.py", SAVER, LIFESIGNS_HUB=server.url)
        begins(hub)
        hub.until(lambda: said(hub, agent) >= 5, "some of it is said to a hub")
        hub.kill()
        before = said(hub, agent)
        assert before < SAVES - 20
        hub.until(lambda: said(hub, agent) >= before + 20, "it goes on without a hub")
        hub.start()
        has_saved_all_and_left(hub, agent)


def begins(hub: Hub) -> None:
    """The saver saves when it is heard: on a busy machine that takes a while."""
    hub.until(lambda: hub.health("saver") == "healthy", "it is heard")
    (hub.folder / "begin").touch()


def has_saved_all_and_left(hub: Hub, agent: subprocess.Popen[str]) -> None:
    hub.until(lambda: said(hub, agent) == SAVES, "it has saved all")
    (hub.folder / "enough").touch()
    hub.until(lambda: hub.health("saver") == "terminated", "it has said good-bye")
    chain = hub.get("/api/v1/tasks/t-1/checkpoints")["checkpoints"]
    assert [one["checkpoint_id"] for one in chain] == [f"cp-{number}" for number in range(SAVES)]


def test_a_server_whose_keys_are_all_deleted_again_and_again_loses_nothing(tmp_path: Path) -> None:
    with ValkeyServer() as server, serving(tmp_path, {"bus": server.url}) as hub:
        agent = hub.python("saver.py", SAVER, LIFESIGNS_HUB=server.url)
        begins(hub)
        with socket.create_connection(("127.0.0.1", server.port)) as person:
            while said(hub, agent) < SAVES:
                person.sendall(b"FLUSHALL\r\n")
                assert person.recv(64) == b"+OK\r\n"
                time.sleep(0.1)
        has_saved_all_and_left(hub, agent)
        assert hub.disconnected() == set()


@pytest.mark.parametrize("asleep", [False, True])
def test_who_was_away_from_the_bus_is_not_ended_when_it_returns(tmp_path: Path, *, asleep: bool) -> None:
    """Others are heard over the same bus, so it is not the bus. For a sleeper the server keeps the line open: the stop waits in
    it, and is the first thing that it reads."""
    with NatsServer() as server, serving(tmp_path, {**IMPATIENT, "bus": server.url}) as hub:
        line = Line(server.port)
        try:
            agent = hub.python("worker.py", WORKER, LIFESIGNS_HUB=line.url.replace("http", "nats"))
            other = WORKER.replace('"worker"', '"other"')
            hub.python("other.py", other, LIFESIGNS_HUB=server.url)
            for name in ("worker", "other"):
                hub.until(lambda name=name: hub.health(name) == "healthy", f"{name} is healthy")  # type: ignore[misc]
            if asleep:
                agent.send_signal(signal.SIGSTOP)
            else:
                line.cut()
            hub.until(lambda: "ordered" in stages(hub, "worker"), "the silent worker is to be ended")
            line.mend()
            agent.send_signal(signal.SIGCONT)
            seems_well(hub, "worker")
            assert agent.poll() is None
            assert not hub.events("AGENT_TERMINATED")
        finally:
            line.close()
