"""Seed 004: after a failure is found, it is classified. The class and its reason are shown wherever the failure is."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.outside import serving

CONFIG = {"profile": "swift", "policy": {"respawn": {"enabled": False}}}

CRASHES = """
import sys
import time
import lifesigns

with lifesigns.Sender("worker"):
    time.sleep(1)
    raise SystemExit("out of disk")
"""


def test_the_class_of_a_failure_is_shown_everywhere_with_its_reason(tmp_path: Path) -> None:
    """An agent that falls silent has a transient failure; one that crashed and that nothing starts anew a terminal one."""
    with serving(tmp_path, CONFIG) as hub:
        hub.cli("beat", "quiet")
        hub.until(lambda: hub.health("quiet") == "disconnected", "the silent one is lost")
        quiet = hub.get("/api/v1/agents/quiet")
        assert (quiet["failure_class"], "may pass by itself" in quiet["class_reason"]) == ("transient", True)
        shown = hub.cli("show", "quiet", check=False)
        assert f"Its failure is transient: {quiet['class_reason']}." in shown.stdout
        (lost,) = [one for one in hub.events("HEALTH_STATE_CHANGED") if one["data"]["to"] == "disconnected"]
        assert lost["data"]["failure_class"] == "transient"
        hub.until(lambda: hub.get("/api/v1/interventions")["interventions"], "people are asked about it")
        (asked,) = hub.get("/api/v1/interventions")["interventions"]
        assert (asked["rung"], asked["failure_class"]) == ("escalate", "transient")

        hub.python("worker.py", CRASHES)
        hub.until(lambda: hub.health("worker") == "disconnected", "the crash is found")
        worker = hub.get("/api/v1/agents/worker")
        assert (worker["failure_class"], "its policy starts nothing" in worker["class_reason"]) == (
            "terminal",
            True,
        )
        hub.until(
            lambda: any(
                one["agent_id"] == "worker" and one["severity"] == "critical"
                for one in hub.get("/api/v1/alerts")["alerts"]
            ),
            "people are told that the failure is terminal",
        )
