"""A hub that does not get to hear all that is sent convicts nobody for it; and who dies is found when it keeps up again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, serving

AGENTS = [f"agent-{n}" for n in range(120)]
PROCESSES = 4
EVERY = 1.0
BURNERS = 4
NICE = 10
"""The hub gets a fortieth of its processor: less than a round of all beats takes."""

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are not pinned here")


@contextmanager
def beating(hub: Hub) -> Iterator[set[str]]:
    """Agents that beat once a second, of each process one when the hub has answered the one before. Whoever is taken out of
    the set has died."""
    alive, over = set(AGENTS), threading.Event()

    def beat(mine: list[str]) -> None:
        seq = 0
        while not over.is_set():
            seq, next_at = seq + 1, time.monotonic() + EVERY
            for one in mine:
                if one in alive and not over.is_set():
                    hub.post("/api/v1/beats", {"agent_id": one, "seq": seq, "incarnation": f"{one}-1"})
            over.wait(max(0.0, next_at - time.monotonic()))

    threads = [threading.Thread(target=beat, args=(AGENTS[n::PROCESSES],)) for n in range(PROCESSES)]
    for thread in threads:
        thread.start()
    try:
        yield alive
    finally:
        over.set()
        for thread in threads:
            thread.join()


@contextmanager
def starved(hub: Hub) -> Iterator[None]:
    """The hub gets little of its processor."""
    assert hub.process is not None
    core, everywhere = min(os.sched_getaffinity(0)), os.sched_getaffinity(hub.process.pid)
    burn = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    tasks = [int(task.name) for task in Path(f"/proc/{hub.process.pid}/task").iterdir()]
    for task in tasks:
        os.sched_setaffinity(task, {core})
        os.setpriority(os.PRIO_PROCESS, task, NICE)
    burners = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(BURNERS)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
        for task in tasks:
            os.sched_setaffinity(task, everywhere)
            with suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, task, 0)


@pytest.mark.skipif(
    "LIFESIGNS_OVERLOAD" not in os.environ,
    reason="it overloads the whole machine and needs it for itself: make soak",
)
def test_an_overloaded_hub_convicts_nobody_and_finds_the_dead_when_it_keeps_up_again(tmp_path: Path) -> None:
    config = {"profile": "swift"}
    with serving(tmp_path, config) as hub, beating(hub) as alive:
        hub.until(lambda: hub.get("/api/v1/fleet")["states"]["healthy"] == len(AGENTS), "all are heard")
        with starved(hub):
            alive.remove("agent-0")
            hub.until(lambda: hub.is_blind(), "the hub knows that it does not keep up")
        assert hub.disconnected() <= {"agent-0"}
        hub.until(lambda: not hub.is_blind(), "it keeps up again")
        hub.until(lambda: "agent-0" in hub.disconnected(), "who died meanwhile is found")
        alive.remove("agent-1")
        hub.until(lambda: "agent-1" in hub.disconnected(), "who dies afterwards is found")
        assert hub.disconnected() == {"agent-0", "agent-1"}
