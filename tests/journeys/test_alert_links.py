"""What people are told leads them to the page of the agent it is about."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.journeys.outside import serving
from tests.journeys.pager import pager, webhook

ODD = "team-a/coder@7"


def test_the_link_of_an_alert_opens_the_page_of_its_agent(tmp_path: Path) -> None:
    with pager() as (url, told), serving(tmp_path, webhook(url)) as hub:
        hub.post("/api/v1/beats", {"agent_id": ODD})
        hub.post(
            "/api/v1/signals",
            {"type": "doing", "agent_id": ODD, "doing": "waiting_for_human", "note": "May I?"},
        )
        hub.until(lambda: told, "people are told")
        link = urlsplit(told[0]["link"])
        assert link.fragment.startswith("/agents/")
        assert unquote(link.fragment.removeprefix("/agents/")) == ODD
        assert "<html" in hub.get(link.path)  # Not a 404: the page reads the rest of the address itself.


def test_an_escalation_stands_once_in_the_history(tmp_path: Path) -> None:
    """Among the alerts and in the life of its agent: that somebody is asked and that somebody is needed is one thing."""
    ladder = {"hesitate_for": "200ms", "escalation_timeout": "10m"}
    with serving(tmp_path, {"profile": "swift", "policy": {"ladder": ladder}}) as hub:
        hub.post("/api/v1/beats", {"agent_id": "lost"})
        hub.until(lambda: hub.events("ESCALATION_TRIGGERED"), "people are asked")
        alerts = [alert for alert in hub.get("/api/v1/alerts")["alerts"] if not alert["standing"]]
        assert [alert["type"] for alert in alerts] == ["ESCALATION_TRIGGERED", "HEALTH_STATE_CHANGED"]
        points = hub.get("/api/v1/agents/lost/history")["points"]
        asked = [point for point in points if point.get("rung") == "escalate"]
        assert [point["stage"] for point in asked] == ["ordered"]
        listed = hub.cli("alerts", "--all", check=False).stdout.splitlines()
        happened = [line.split()[0] for line in listed if " ago " in line]
        assert happened == ["escalation:lost", "stuck_agent:lost"]
