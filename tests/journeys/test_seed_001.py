"""Seed 001, typed from the document: agents that beat over a real NATS, a supervisor with a registry, and no hub at all."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
            [sys.executable, str(folder / f"{name}.py"), *args], stdout=out, env=environment()
        )
    try:
        yield process, said
    finally:
        process.kill()
        process.wait()


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
