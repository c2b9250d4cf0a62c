"""Seed 004 from outside: roles and thresholds, missed beats before and after the verdict, and a terminal agent's replacement."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.outside import serving
from tests.journeys.starts import config, crash, started
from tests.journeys.test_respawns import told

ROLES = {
    "critical-infrastructure": (30, 2),
    "active-development": (60, 3),
    "background": (300, 3),
    "standby": (900, 5),
}


def test_each_role_has_the_interval_and_threshold_of_the_document(tmp_path: Path) -> None:
    """1.3.2: seconds between two heartbeats, and how many may be missed before anybody is alarmed."""
    with serving(tmp_path) as hub:
        for role in ROLES:
            hub.post("/api/v1/beats", {"agent_id": role, "role": role})
        found = {role: hub.get(f"/api/v1/agents/{role}/rhythm") for role in ROLES}
        assert {role: (one["wanted_interval_s"], one["missed_max"]) for role, one in found.items()} == ROLES


def test_missed_beats_are_counted_before_and_after_the_verdict(tmp_path: Path) -> None:
    """1.3.3: the counter rises while the agent is still healthy, goes on when it is lost, and a beat sets it back."""
    quick = {"silence": {"interval": "1s", "timeout": "6s", "missed_max": 3, "ping_wait": "1s"}}
    with serving(tmp_path, {"roles": {"quick": quick}}) as hub:

        def missed() -> int:
            return int(hub.get("/api/v1/agents/worker")["metrics"]["missed_heartbeats"])

        hub.post("/api/v1/beats", {"agent_id": "worker", "role": "quick"})
        hub.until(lambda: missed() >= 1, "it misses its first")
        assert hub.health("worker") == "healthy", "a single missed heartbeat is no failure"
        hub.until(lambda: hub.health("worker") == "disconnected", "it is lost")
        at_verdict = missed()
        assert at_verdict >= 3
        hub.until(lambda: missed() > at_verdict, "it is counted on")
        hub.post("/api/v1/beats", {"agent_id": "worker"})
        assert (hub.health("worker"), missed()) == ("healthy", 0)


def test_a_terminal_agent_is_replaced_after_approval_with_a_handoff(tmp_path: Path) -> None:
    """Its recovery failed three times: nothing is started any more until a person says so, and the successor is told why."""
    with started(tmp_path) as those:
        command = f"test -f {tmp_path}/mended || exit 1; {those.command()}"
        with serving(tmp_path, config(command)) as hub:
            crash(hub)
            hub.until(
                lambda: hub.get("/api/v1/agents/coder")["failure_class"] == "terminal",
                "three failed recoveries are terminal",
            )
            (tmp_path / "mended").touch()
            asked = [one for one in hub.get("/api/v1/alerts")["alerts"] if one["agent_id"] == "coder"]
            assert any(one["severity"] == "critical" for one in asked)
            assert those.starts == []
            hub.cli("recover", "t-1", "--reason", "the disk is mended", "--yes")
            hub.until(lambda: hub.health("coder") == "healthy", "its successor is there")
            (pid,) = those.lives
            handoff = told(pid)["LIFESIGNS_HANDOFF"]
            assert "t-1" in handoff
            assert "status 1" in handoff or "mended" in handoff, handoff
