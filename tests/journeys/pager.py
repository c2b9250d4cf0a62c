"""Somebody's webhook: keeps what it was told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from tests.journeys.outside import Json


class _Pager(BaseHTTPRequestHandler):
    told: list[Json]

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        self.told.append(json.loads(content))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def webhook(url: str) -> Json:
    """What `lifesigns.yaml` says about it."""
    return {"channels": {"pager": {"type": "webhook", "url": url}}}


@contextmanager
def pager() -> Iterator[tuple[str, list[Json]]]:
    """Its address, and what it was told so far."""
    told: list[Json] = []
    server = HTTPServer(("127.0.0.1", 0), type("Telling", (_Pager,), {"told": told}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
