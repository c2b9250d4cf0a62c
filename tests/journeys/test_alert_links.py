"""What people are told leads them to the page of the agent it is about."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.journeys.outside import Json, serving

ODD = "team-a/coder@7"


class Pager(BaseHTTPRequestHandler):
    """Somebody's webhook: keeps what it was told."""

    told: list[Json]

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        self.told.append(json.loads(content))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def test_the_link_of_an_alert_opens_the_page_of_its_agent(tmp_path: Path) -> None:
    told: list[Json] = []
    pager = HTTPServer(("127.0.0.1", 0), type("Telling", (Pager,), {"told": told}))
    thread = threading.Thread(target=pager.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{pager.server_port}/hook"
        with serving(tmp_path, {"channels": {"pager": {"type": "webhook", "url": url}}}) as hub:
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
    finally:
        pager.shutdown()
        pager.server_close()
        thread.join()
