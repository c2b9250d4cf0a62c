"""Seed 001, typed from the document: agents that beat over a real NATS, a supervisor with a registry, and no hub at all."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from tests.journeys.outside import environment, until
from tests.servers.nats import NatsServer

SUPERVISOR = """
import sys, time
import lifesigns

registry = set()

def told(what):
    def tell(agent):
        (registry.discard if what == "dead" else registry.add)(agent.agent_id)
        print(what, agent.agent_id, ",".join(sorted(registry)), flush=True)
    return tell

monitor = lifesigns.BusMonitor(sys.argv[1], interval=1, timeout=3, on_dead=told("dead"), on_alive=told("alive"))
monitor.start()
shown = None
while True:
    if (now := monitor.least_loaded()) != shown:
        shown = now
        print("least", *now, flush=True)
    time.sleep(0.05)
"""
AGENT = """
import sys, time
import lifesigns

with lifesigns.Sender(sys.argv[2], sys.argv[1], interval=1.0) as life:
    life.status("busy")
    life.load(float(sys.argv[3]))
    time.sleep(600)
"""


@contextmanager
def running(folder: Path, program: str, *args: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A program of the user's, and what it prints."""
    name = f"{len(list(folder.iterdir()))}"
    (folder / f"{name}.py").write_text(program)
    said = folder / f"{name}.out"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, str(folder / f"{name}.py"), *args],
            stdin=subprocess.PIPE,
            stdout=out,
            env=environment(),
        )
    try:
        yield process, said
    finally:
        process.kill()
        process.communicate()


def test_a_supervisor_drops_the_dead_from_its_registry_once_and_takes_them_back(tmp_path: Path) -> None:
    with NatsServer() as bus, running(tmp_path, SUPERVISOR, bus.url) as (_, said):

        def lines() -> list[str]:
            return said.read_text().splitlines()

        def least() -> str:
            """Where work went last; the registry's own lines may come before or after."""
            return [line for line in lines() if line.startswith("least")][-1]

        with running(tmp_path, AGENT, bus.url, "agent-abc123", "0.9"):
            with running(tmp_path, AGENT, bus.url, "agent-def456", "0.2") as (other, _):
                until(lambda: "least agent-def456" in lines(), "work goes to the one with less load")
                other.send_signal(signal.SIGKILL)
                until(lambda: "dead agent-def456 agent-abc123" in lines(), "the registry lost the dead one")
                until(lambda: least() == "least agent-abc123", "work goes to the one that lives")
            with running(tmp_path, AGENT, bus.url, "agent-def456", "0.1"):
                until(
                    lambda: (
                        lines().count("alive agent-def456 agent-abc123,agent-def456") >= 1
                        and least() == "least agent-def456"
                    ),
                    "it is back",
                )
        dead = [line for line in lines() if line.startswith("dead")]
        assert dead == ["dead agent-def456 agent-abc123"], "told once, and of nobody else"


LISTENER = """
import asyncio, sys
import nats

async def main():
    client = await nats.connect(sys.argv[1])
    async for message in (await client.subscribe("heartbeat.*")).messages:
        print(message.subject, message.data.decode(), flush=True)

asyncio.run(main())
"""
BASIC_AGENT = """
import sys, time
import lifesigns

with lifesigns.Sender("agent-abc123", sys.argv[1], interval=1.0, metadata={"version": "2"}) as life:
    for step in sys.stdin:
        status, load = step.split()
        life.status(status)
        life.load(float(load))
print("closed", flush=True)
"""
WATCHING = """
import sys, time
import lifesigns

def told(what):
    return lambda agent: print(what, agent.agent_id, f"{time.monotonic():.2f}", flush=True)

with lifesigns.BusMonitor(sys.argv[1], interval=1, timeout=3, on_dead=told("dead"), on_alive=told("alive"), on_left=told("left")) as monitor:
    before = {}
    while True:
        for agent_id, agent in monitor.agents().items():
            if (now := (agent.status, agent.load)) != before.get(agent_id):
                before[agent_id] = now
                print("says", agent_id, *now, flush=True)
        time.sleep(0.05)
"""


def heard(said: Path, agent_id: str) -> list[dict[str, object]]:
    """What anybody reads on the bus, one object a heartbeat."""
    lines = [line.partition(" ") for line in said.read_text().splitlines()]
    return [json.loads(data) for subject, _, data in lines if subject == f"heartbeat.{agent_id}"]


def test_a_basic_agent_beats_at_once_tells_its_status_and_sends_a_final_heartbeat(tmp_path: Path) -> None:
    """Of the document: "Heartbeat signals", "Basic agent heartbeat", "Startup behavior", "Graceful shutdown": read on the bus by a program that is not ours."""
    with (
        NatsServer() as bus,
        running(tmp_path, LISTENER, bus.url) as (_, raw),
        running(tmp_path, WATCHING, bus.url) as (_, watched),
    ):
        wait_until_listening(tmp_path, bus.url, watched)
        with running(tmp_path, BASIC_AGENT, bus.url) as (agent, said):
            assert agent.stdin is not None
            until(lambda: heard(raw, "agent-abc123"), "it beats at once")
            first = heard(raw, "agent-abc123")[0]
            assert not {"status", "load"} & first.keys(), "what it has not said is not made up"
            assert datetime.fromisoformat(str(first["timestamp"])).tzinfo is not None
            assert (first["agent_id"], first["metadata"]) == ("agent-abc123", {"version": "2"})
            for status, load in (("idle", "0.0"), ("busy", "0.75"), ("idle", "0.1")):
                agent.stdin.write(f"{status} {load}\n".encode())
                agent.stdin.flush()
                line = f"says agent-abc123 {status} {load}"
                until(lambda line=line: line in watched.read_text(), line)  # type: ignore[misc]
            agent.stdin.close()
            until(lambda: "closed" in said.read_text(), "it stops")
            agent.wait(60)
        *told, last = heard(raw, "agent-abc123")
        assert (told[-1]["status"], told[-1]["load"]) == ("idle", 0.1)
        assert last["status"] == "stopping"
        until(lambda: "left agent-abc123" in watched.read_text(), "the monitor heard the last one")
        assert "dead agent-abc123" not in watched.read_text(), "who says good-bye is not dead"


def wait_until_listening(folder: Path, url: str, watched: Path) -> None:
    """A bus tells nobody what was said before it listened."""
    with running(folder, AGENT, url, "probe", "0.5"):
        until(lambda: "says probe" in watched.read_text(), "the probe is heard")


def test_frozen_agents_are_found_at_the_threshold_by_every_monitor_and_a_bus_that_is_down_kills_nobody(
    tmp_path: Path,
) -> None:
    """Of the document: "multiple monitors can watch the same agents", "Timing tradeoffs" (1 s, 3 s), "Error scenarios": frozen, and bus down."""
    with (
        NatsServer() as bus,
        running(tmp_path, WATCHING, bus.url) as (_, one),
        running(tmp_path, WATCHING, bus.url) as (_, two),
        running(tmp_path, AGENT, bus.url, "agent-abc123", "0.5") as (agent, _),
        running(tmp_path, AGENT, bus.url, "agent-def456", "0.5"),
    ):

        def both(what: str) -> bool:
            return all(what in said.read_text() for said in (one, two))

        until(lambda: both("says agent-abc123 busy 0.5"), "both monitors hear it")
        until(lambda: both("says agent-def456 busy 0.5"), "and its neighbour")
        frozen_at = time.monotonic()
        agent.send_signal(signal.SIGSTOP)
        until(lambda: both("dead agent-abc123"), "both find it")
        found_at = [float(line.split()[2]) for line in lines_of(one, "dead agent-abc123")]
        assert len(found_at) == 1, "told once"
        assert found_at[0] - frozen_at > 1.9, "not before its timeout"
        agent.send_signal(signal.SIGCONT)
        until(
            lambda: all(len(lines_of(said, "alive agent-abc123")) == 2 for said in (one, two)),
            "it is back",
        )
        bus.kill()
        away_from = time.monotonic()
        until(lambda: time.monotonic() > away_from + 8, "the bus is away for more than twice the timeout")
        bus.start()
        until(lambda: is_heard_again(tmp_path, bus.url), "agents beat again after the bus is back")
        assert [line for said in (one, two) for line in lines_of(said, "dead")] == [
            *lines_of(one, "dead agent-abc123"),
            *lines_of(two, "dead agent-abc123"),
        ], "nobody else died"
        assert len(lines_of(one, "dead")) == 1


def lines_of(said: Path, begins: str) -> list[str]:
    return [line for line in said.read_text().splitlines() if line.startswith(begins)]


def is_heard_again(folder: Path, url: str) -> bool:
    with running(folder, LISTENER, url) as (_, raw):
        until(lambda: heard(raw, "agent-abc123") and heard(raw, "agent-def456"), "both beat again")
    return True
