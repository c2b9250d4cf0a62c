"""A hub whose store was taken over by another takes nothing in any more, and says so: its agents must look for the other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Refused, serving


def share_key(folder: Path) -> None:
    """Hubs on one store know each other's tokens by the key that they share."""
    shutil.copy(folder / "first" / "state" / "tokens.key", folder / "second" / "state")


def status(hub: Hub, path: str, body: object) -> int:
    try:
        hub.post(path, body)
    except Refused as refused:
        return refused.status
    return 202


def test_a_hub_that_was_deposed_refuses_beats_and_signals_and_knows_no_interventions(tmp_path: Path) -> None:
    """It answered 202, so its agents stayed, and the hub that judges took all of them for dead."""
    store = ["--store", f"sqlite://{tmp_path / 'shared.db'}"]
    for name in ("first", "second"):
        (tmp_path / name / "state").mkdir(parents=True)
    with serving(tmp_path / "first", None, *store) as first:
        first.post("/api/v1/beats", {"agent_id": "a"})
        assert first.get("/api/v1/interventions") == {"interventions": []}
        share_key(tmp_path)
        with serving(tmp_path / "second", None, *store) as second:
            second.post("/api/v1/beats", {"agent_id": "a"})
            first.until(
                lambda: status(first, "/api/v1/beats", {"agent_id": "a"}) == 503, "the first one refuses"
            )
            left = {"type": "left", "agent_id": "a"}
            assert status(first, "/api/v1/signals", left) == 503
            with pytest.raises(Refused) as refused:
                first.post("/api/v1/beats", [{"agent_id": "a"}])
            assert "Another hub has taken over" in refused.value.body["detail"]
            with pytest.raises(Refused) as unready:
                first.get("/readyz")
            assert unready.value.status == 503
            second.post("/api/v1/agents/a/nudge", {"message": "Hello?"})
            assert [one["rung"] for one in second.get("/api/v1/interventions")["interventions"]] == ["nudge"]
            with pytest.raises(Refused) as stale:
                first.get("/api/v1/interventions")
            assert stale.value.status == 503
            assert status(second, "/api/v1/beats", {"agent_id": "a"}) == 202
            assert second.health("a") == "healthy"


AGENT = """
import time
import lifesigns

with lifesigns.Sender("a", interval=1.0) as life:
    for step in range(10_000):
        life.checkpoint(f"cp-{step}")
        time.sleep(0.5)
"""


@pytest.mark.timeout(120)
def test_agents_that_know_both_hubs_move_to_the_one_that_judges(tmp_path: Path) -> None:
    """`LIFESIGNS_HUB` names both: from the one that was deposed, and from one that was killed, they go to the other, and so
    does the command line."""
    store = ["--store", f"sqlite://{tmp_path / 'shared.db'}"]
    for name in ("first", "second"):
        (tmp_path / name / "state").mkdir(parents=True)
    with serving(tmp_path / "first", None, *store) as first:
        second = Hub(tmp_path / "second", None, *store)
        both = f"{first.url},{second.url}"
        first.python("agent.py", AGENT, LIFESIGNS_HUB=both)
        first.until(lambda: first.health("a") == "healthy", "the first hub hears it")
        try:
            share_key(tmp_path)
            second.start()
            first.until(lambda: second.health("a") == "healthy", "the second hub knows it")
            known = second.get("/api/v1/agents/a")
            first.until(
                lambda: (
                    second.get("/api/v1/agents/a")["metrics"]["total_heartbeats"]
                    > known["metrics"]["total_heartbeats"]
                ),
                "it beats at the second hub",
            )
            first.until(
                lambda: second.get("/api/v1/agents/a")["last_checkpoint"] > known["last_checkpoint"],
                "and reports there",
            )
            first.kill()
            shown = second.cli("show", "a", "--json", LIFESIGNS_HUB=both)
            assert json.loads(shown.stdout)["agent"]["state"] == "healthy"
            assert not second.events("HEALTH_STATE_CHANGED", agent="a")[1:], (
                "nobody found it unwell meanwhile"
            )
        finally:
            second.end()
