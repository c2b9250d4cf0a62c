"""A host that is short of CPU makes all its agents late at once: that is the host, and none of them is convicted or ended for it.
Who dies there is found all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journeys.outside import serving

PROCESSES = [("a", "b"), ("c", "d"), ("e", "f")]
GETS_NOTHING_FOR = 6.0
"""Twice as long as an agent of the profile `swift` may be silent. Nobody is waited for longer than 13 s."""

AGENTS = """
import sys, time
from lifesigns import Sender

with Sender(sys.argv[1], profile="swift"), Sender(sys.argv[2], profile="swift"):
    time.sleep(600)
"""


@pytest.mark.timeout(240)
def test_a_starved_host_is_not_the_death_of_its_agents(tmp_path: Path) -> None:
    """Twice none of its processes gets any CPU for a while. What a scheduler does under load is not the same in any two runs;
    this is."""
    names = {name for pair in PROCESSES for name in pair}
    with serving(tmp_path) as hub:
        processes = [hub.python(f"{pair[0]}.py", AGENTS, *pair) for pair in PROCESSES]
        hub.until(lambda: all(hub.health(name) == "healthy" for name in names), "all are heard")
        for _ in range(2):
            for process in processes:
                process.send_signal(signal.SIGSTOP)
            time.sleep(GETS_NOTHING_FOR)  # The starvation itself.
            for process in processes:
                process.send_signal(signal.SIGCONT)
            hub.until(
                lambda: all(
                    agent["since_heartbeat_s"] < 2.0 for agent in hub.get("/api/v1/agents")["agents"]
                ),
                "all are heard again",
            )
        assert hub.disconnected() == set()
        assert not hub.events("NUDGE_SENT", "ESCALATION_TRIGGERED", "AGENT_TERMINATED")
        processes[0].send_signal(signal.SIGKILL)
        hub.until(lambda: hub.disconnected() == set(PROCESSES[0]), "who dies is found")


BURNED_FOR = float(os.environ.get("BURNED_FOR", "0"))
"""In seconds."""
BURNERS = 4 * (os.cpu_count() or 1)
BURN = "while True: pass"
LEAST = """
import os
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
"""
"""Runs when nobody else wants to."""


@contextmanager
def burners() -> Iterator[None]:
    """Programs that use all CPU they get: four for each core."""
    processes = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(BURNERS)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(60)


@pytest.mark.skipif(
    not BURNED_FOR, reason="it takes all cores of the machine from others: `make soak` runs it"
)
@pytest.mark.timeout(400)
def test_nobody_healthy_is_convicted_on_a_host_whose_cores_are_all_burned(tmp_path: Path) -> None:
    """What little the scheduler gives the agents comes late."""
    names = {name for pair in PROCESSES for name in pair}
    with serving(tmp_path) as hub:
        for pair in PROCESSES:
            hub.started(sys.executable, "-c", LEAST + AGENTS, *pair)
        hub.until(lambda: all(hub.health(name) == "healthy" for name in names), "all are heard")
        with burners():
            time.sleep(BURNED_FOR)  # The starvation itself.
        hub.until(
            lambda: all(agent["since_heartbeat_s"] < 2.0 for agent in hub.get("/api/v1/agents")["agents"]),
            "all are heard again",
        )
        assert hub.disconnected() == set()
        assert not hub.events("NUDGE_SENT", "ESCALATION_TRIGGERED", "AGENT_TERMINATED")
