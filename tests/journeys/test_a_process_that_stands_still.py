"""A process that stands still for a while is heard again at once, and the sender in it costs what it always costs.

A laptop that sleeps, `kill -STOP`, a debugger, a machine that swaps: afterwards the hub has pings out for every agent of the
process, and all of them answer at the same moment.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, serving, until
from tests.journeys.slow_line import SlowLine

AGENTS = """
import asyncio, os, sys, time
import lifesigns

async def main():
    count, profile = int(sys.argv[1]), sys.argv[2]
    lives = [lifesigns.Sender(f"{sys.argv[3]}-{n}", profile=profile or None) for n in range(count)]
    for life in lives:
        await life.__aenter__()
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""

GROWS_MB = 20.0
BUSY = 1.0 / 3.0
"""Of a core, for a hundred agents that all answer pings and introduce themselves again. What spins takes all of it."""


def rss_mb(process: subprocess.Popen[str]) -> float:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def healthy(hub: Hub, heard_within: float = 1e9) -> int:
    """How many are healthy, and have beaten within so many seconds."""
    agents = hub.get("/api/v1/agents?limit=1000")["agents"]
    well = [agent for agent in agents if agent["state"] == "healthy"]
    return sum((agent["since_heartbeat_s"] or 0.0) < heard_within for agent in well)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("count", "profile", "delay", "stands_for", "interval"),
    [
        pytest.param(100, "swift", 0.0, 4.0, 1.0, id="100 agents"),
        pytest.param(20, "swift", 0.05, 4.0, 1.0, id="20 agents over a slow line"),
        pytest.param(50, "", 0.02, 13.0, 5.0, id="50 agents with plain defaults"),
    ],
)
def test_a_process_that_stood_still_is_well_again_within_two_intervals(
    tmp_path: Path, count: int, profile: str, delay: float, stands_for: float, interval: float
) -> None:
    with serving(tmp_path) as hub, SlowLine(hub.port, delay) as line:
        agents = hub.python(
            "agents.py", AGENTS, str(count), profile, "a", LIFESIGNS_HUB=line.url if delay else hub.url
        )
        hub.until(lambda: healthy(hub) == count, "all agents are healthy")
        agents.send_signal(signal.SIGSTOP)
        time.sleep(stands_for)  # The pause itself.
        before_mb, before_cpu, woken_at = rss_mb(agents), cpu_seconds(agents), time.monotonic()
        agents.send_signal(signal.SIGCONT)
        hub.until(
            lambda: healthy(hub, time.monotonic() - woken_at) == count,
            f"all {count} agents are healthy again",
            2 * interval + 5,
        )
        looked_for = 10.0
        until(lambda: time.monotonic() > woken_at + looked_for, "the sender went on for a while")
        grown, busy = rss_mb(agents) - before_mb, (cpu_seconds(agents) - before_cpu) / looked_for
        assert healthy(hub, 3 * interval) == count
        if not profile:  # A pause shorter than the timeout of 15 s is nobody's death, then or later.
            assert not hub.disconnected()
        assert grown < GROWS_MB
        assert busy < BUSY
