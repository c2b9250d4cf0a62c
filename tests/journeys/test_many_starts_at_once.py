"""Many agents that start at once, each a process of its own, are all heard soon, and none of them is convicted meanwhile.

`STARTS_AT_ONCE=80` is the number in `make soak`; the suite starts a few.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.journeys.outside import serving

STARTS = int(os.environ.get("STARTS_AT_ONCE", "10"))
BEATS = 2 if STARTS < 20 else 8
SOON = 20.0 + 3.0 * STARTS
"""On a machine of two cores that has other work too: an interpreter needs a second of one to start."""

AGENT = """
import sys, time
from lifesigns import Sender

with Sender(sys.argv[1]):
    time.sleep(600)
"""


@pytest.mark.timeout(600)
def test_processes_that_start_at_once_are_heard_and_nobody_is_convicted(tmp_path: Path) -> None:
    names = {f"a-{number}" for number in range(STARTS)}
    with serving(tmp_path) as hub:
        for name in names:
            hub.python("agent.py", AGENT, name)
        hub.until(lambda: _heard(hub.get("/api/v1/agents")) == names, "all are healthy", SOON)
        hub.until(
            lambda: all(
                agent["metrics"]["total_heartbeats"] >= BEATS for agent in hub.get("/api/v1/agents")["agents"]
            ),
            "all go on beating",
            SOON,
        )
        assert hub.disconnected() == set()
        assert not hub.events("NUDGE_SENT", "ESCALATION_TRIGGERED", "AGENT_TERMINATED")


def _heard(page: dict[str, list[dict[str, str]]]) -> set[str]:
    return {agent["agent_id"] for agent in page["agents"] if agent["state"] == "healthy"}
