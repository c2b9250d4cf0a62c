"""A crash that nobody is left to report: it shows as silence alone, and nobody can carry out its termination.

docs/howto/respawn-from-checkpoints.md, *Say who ends agents*. On a host that is there it is replaced, within what the policy says. On a
host that is silent too, the agent may be asleep or cut off and well: then nobody is started beside it unasked.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import BOUND, Hub, Json, serving
from tests.journeys.starts import AGENT, SWIFT, Started, config, interventions, lost, started

pytestmark = pytest.mark.timeout(300)

ASLEEP = AGENT.replace("interval=0.5", 'interval=0.5, host="laptop-7"')
"""On another machine than the hub, and the only one there."""

LADDER = {"hesitate_for": 0.2, "escalation_timeout": 1.0, "save_for": 0.5, "confirm_for": 0.5}
REPLACED_WITHIN = 0.2 + 1.0 + 3 * (0.5 + 0.5) + 0.5
"""Seconds from the verdict to the order of its successor, and its backoff."""
SLACK = 10.0
"""For a busy machine."""


def impatient(command: str) -> Json:
    wanted = config(command, start_timeout=BOUND)
    policy: dict[str, Any] = {**wanted["policy"], "ladder": {**SWIFT["policy"]["ladder"], **LADDER}}
    return {**wanted, "policy": policy}


def descendants(pid: int) -> list[int]:
    """Of a process: everybody who could report its end."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *descendants(child)]
    return found


def at(event: Json) -> float:
    return datetime.fromisoformat(event["at"]).timestamp()


def asked(hub: Hub, reason: str) -> list[Json]:
    found = hub.events("NEEDS_HUMAN", agent="coder")
    return [event for event in found if event["data"]["reason"] == reason]


@pytest.mark.parametrize("supervised", [True, False])
def test_it_is_found_and_replaced_and_the_recovery_ends(tmp_path: Path, supervised: bool) -> None:
    with started(tmp_path) as those, serving(tmp_path, impatient(those.command())) as hub:
        run = ("lifesigns", "run", "--id", "coder", "--restart", "on-failure", "--") if supervised else ()
        first = hub.started(*run, sys.executable, "agent.py")
        hub.until(lambda: hub.health("coder") == "healthy" and those.lives, "it is heard")
        for pid in [first.pid, *descendants(first.pid)]:
            os.kill(pid, signal.SIGKILL)
        first.wait(BOUND)
        hub.until(lambda: not those.living(), "nobody of them is left")
        hub.until(lambda: len(those.lives) == 2, "a successor speaks")
        hub.until(lambda: hub.events("RECOVERY_COMPLETED", agent="coder"), "its recovery ends")
        hub.until(lambda: hub.health("coder") == "healthy", "it is well")
        assert those.living() == those.starts[1:]
        _nobody_reported_it(hub)
        (verdict,) = lost(hub)
        (order,) = interventions(hub, "respawn", "ordered")
        assert REPLACED_WITHIN - 0.5 <= at(order) - at(verdict) <= REPLACED_WITHIN + SLACK
        hub.until(lambda: not _standing(hub), "nothing about it stands any more")


def _nobody_reported_it(hub: Hub) -> None:
    """Its end was ordered as often as the policy says, and nobody answered."""
    assert len(interventions(hub, "terminate", "ordered")) == 3
    assert not interventions(hub, "terminate", "done")
    assert not hub.events("AGENT_TERMINATED", agent="coder")
    findings = {event["data"]["finding"]["kind"] for event in hub.events("FINDING_OPENED", agent="coder")}
    assert findings == {"silence"}


def _standing(hub: Hub) -> list[Json]:
    alerts = hub.get("/api/v1/alerts")["alerts"]
    return [one for one in alerts if one["standing"] and one["agent_id"] == "coder"]


def test_who_is_only_asleep_with_its_host_is_not_replaced_unasked(tmp_path: Path) -> None:
    with started(tmp_path) as those, serving(tmp_path, impatient(those.command())) as hub:
        (tmp_path / "agent.py").write_text(ASLEEP)
        sleeper = hub.started(sys.executable, "agent.py")
        hub.until(lambda: hub.health("coder") == "healthy" and those.lives, "it is heard")
        sleeper.send_signal(signal.SIGSTOP)
        hub.until(lambda: asked(hub, "review"), "a person is asked whether to replace it")
        assert "asleep or cut off" in asked(hub, "review")[0]["data"]["text"]
        assert len(interventions(hub, "terminate", "ordered")) == 3
        sleeper.send_signal(signal.SIGCONT)
        hub.until(lambda: hub.health("coder") == "healthy", "it is heard again")
        _goes_on(hub, those, sleeper.pid)
        assert not interventions(hub, "respawn", "ordered")


def _goes_on(hub: Hub, those: Started, pid: int) -> None:
    """It, and nobody else: no order that waited for it ends it, and no successor was started."""
    beats = hub.get("/api/v1/agents/coder/heartbeat")["beat"]["seq"]
    hub.until(lambda: hub.get("/api/v1/agents/coder/heartbeat")["beat"]["seq"] > beats + 6, "it beats on")
    assert those.living() == those.starts == [pid]
    assert hub.health("coder") == "healthy"
