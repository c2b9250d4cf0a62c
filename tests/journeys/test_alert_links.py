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
