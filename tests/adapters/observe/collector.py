"""A collector: receives OTLP over HTTP on a free port of this machine, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What it received."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.services: set[str] = set()
        self.spans: list[Span] = []
        self.headers: list[dict[str, str]] = []

    def receive(self, body: bytes, headers: dict[str, str]) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for one in request.resource_spans:
            named = {attribute.key: attribute.value.string_value for attribute in one.resource.attributes}
            self.services.add(named["service.name"])
            for scope in one.scope_spans:
                self.spans.extend(scope.spans)
        self.headers.append(headers)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


def said(span: Span) -> dict[str, object]:
    """The attributes of a span, without our prefix."""
    return {
        attribute.key.removeprefix("lifesigns."): getattr(
            attribute.value, attribute.value.WhichOneof("value") or "string_value"
        )
        for attribute in span.attributes
    }


@contextmanager
def collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/traces":
                received.receive(body, {key.lower(): value for key, value in self.headers.items()})
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
