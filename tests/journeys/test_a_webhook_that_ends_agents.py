"""Somebody's server ends agents for the hub: a termination that was withdrawn is not posted to it again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.journeys.outside import BOUND, Json, serving
from tests.journeys.test_endings import IMPATIENT, WORKER, line_to, seems_well, stages


class _Ender(BaseHTTPRequestHandler):
    """Ends nobody: it keeps who asks waiting until it hangs up, or sends it away until later."""

    posted: list[Json]
    hung_up: list[bool]
    holds: bool

    def do_POST(self) -> None:
        self.posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        if self.holds:
            self.connection.settimeout(BOUND)
            self.hung_up.append(self.connection.recv(1) == b"")
        else:
            self.send_response(503)
            self.end_headers()
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def ender(*, holds: bool) -> Iterator[tuple[str, type[_Ender]]]:
    handler = type("Asked", (_Ender,), {"posted": [], "hung_up": [], "holds": holds})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/terminate", handler
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("holds", [True, False], ids=["holds it", "is busy"])
def test_who_comes_back_is_not_posted_to_its_end_any_more(tmp_path: Path, holds: bool) -> None:
    with ender(holds=holds) as (url, asked):
        config = {**IMPATIENT, "terminate": {"webhook": url}}
        with serving(tmp_path, config) as hub, line_to(hub) as line:
            worker = hub.python("worker.py", WORKER, LIFESIGNS_HUB=line.url)
            hub.until(lambda: hub.health("worker") == "healthy", "the worker is healthy")
            line.cut()
            hub.until(lambda: asked.posted, "the silent worker is to be ended")
            first = asked.posted[0]
            assert (first["agent_id"], first["on_silence"]) == ("worker", True)
            line.mend()
            hub.until(lambda: "dropped" in stages(hub, "worker"), "the order is withdrawn")
            posted = len(asked.posted)
            if holds:
                hub.until(lambda: asked.hung_up == [True], "who holds it is left")
            seems_well(hub, "worker", calmly=8.0)  # Longer than the next three tries would take.
            assert len(asked.posted) == posted
            assert {order["id"] for order in asked.posted} == {first["id"]}
            assert worker.poll() is None
            assert not hub.events("AGENT_TERMINATED", agent="worker")
