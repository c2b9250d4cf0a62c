"""A request has an id: the caller's own or a new one; its answer, its error and every line logged for it have it, and no other line.

docs/reference/logs.md, docs/reference/http-api.md.
"""

from __future__ import annotations

import http.client
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, free_port, serving

pytestmark = pytest.mark.timeout(300)

JSON_LOG = ("--log-format", "json")


def asked(
    hub: Hub, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, Mapping[str, str], Any]:
    """Status, headers and body of an answer."""
    sent = {"Authorization": f"Bearer {hub.token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
    with closing(http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, dict(answer.getheaders()), json.loads(content) if content else None


def id_of(headers: Mapping[str, str]) -> str:
    return {name.lower(): value for name, value in headers.items()}["x-request-id"]


def lines(hub: Hub, action: str) -> list[dict[str, Any]]:
    """What the hub logged of this kind."""
    logged = [json.loads(line) for line in hub.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in logged if line.get("action") == action]


def test_every_answer_has_an_id_the_callers_own_if_it_is_sane(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        beat, unknown = ("POST", "/api/v1/beats", {"agent_id": "a"}), ("GET", "/api/v1/agents/nobody")
        for request in (beat, ("POST", "/api/v1/beats", [{"agent_id": "a"}]), ("GET", "/healthz"), unknown):
            _, headers, _ = asked(hub, *request, X_Request_Id="deploy-7/step.2")
            assert id_of(headers) == "deploy-7/step.2", request
            made = [id_of(asked(hub, *request)[1]) for _ in range(3)]
            assert len(set(made)) == 3, "each has its own"
            for insane in ("", "a b", "x" * 129, "päckchen", '{"a":1}'):
                _, headers, _ = asked(hub, *request, X_Request_Id=insane)
                assert id_of(headers) not in (insane, ""), (request, insane)
                assert len(id_of(headers)) < 40


def test_an_error_has_it_and_so_has_every_line_that_was_logged_for_it_and_no_other(tmp_path: Path) -> None:
    with serving(tmp_path, None, *JSON_LOG) as hub:
        status, headers, problem = asked(hub, "GET", "/api/v1/agents/nobody", X_Request_Id="who-is-that")
        assert (status, problem["request_id"], id_of(headers)) == (404, "who-is-that", "who-is-that")
        status, _, problem = asked(
            hub, "GET", "/api/v1/agents", Authorization="Bearer wrong", X_Request_Id="guess-1"
        )
        assert (status, problem["request_id"]) == (401, "guess-1")
        for name in ("first", "second"):
            made = {"role": "viewer", "name": name}
            assert asked(hub, "POST", "/api/v1/tokens", made, X_Request_Id=f"token-{name}")[0] == 201
        assert [line["correlation_id"] for line in lines(hub, "token_refused")] == ["guess-1"]
        of_tokens = [line.get("correlation_id") for line in lines(hub, "token_made")]
        assert of_tokens == [None, "token-first", "token-second"], "the hub made that of its administrator"
        hub.stop()
        own = [json.loads(line) for line in hub.log.read_text().splitlines() if line.startswith("{")]
        about = {
            line.get("correlation_id")
            for line in own
            if line.get("action") not in ("token_refused", "token_made")
        }
        assert about <= {None}, "what the hub does by itself belongs to no request"


def test_a_store_that_cannot_be_read_is_found_in_the_log_by_what_the_client_was_told(tmp_path: Path) -> None:
    """The log names the request that failed, and `lifesigns` prints its id for whoever looks for it."""
    with serving(tmp_path, None, *JSON_LOG) as hub:
        hub.post("/api/v1/beats", {"agent_id": "coder"})
        hub.post("/api/v1/agents/coder/pause")
        hub.until(lambda: "coder" in str(hub.get("/api/v1/audit")), "there is something in the audit log")
        hub.stop()
        database = hub.state / "lifesigns.db"
        with closing(sqlite3.connect(database)) as store:
            (page_size,) = store.execute("PRAGMA page_size").fetchone()
            (root,) = store.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'deeds'").fetchone()
        hub.start()
        with database.open("r+b") as file:
            file.seek((root - 1) * page_size)
            file.write(b"\xff" * page_size)
        hub.post("/api/v1/signals", {"type": "doing", "agent_id": "coder", "doing": "working"})
        hub.until(lambda: asked(hub, "GET", "/api/v1/audit")[0] == 503, "the log cannot be read")
        status, _, problem = asked(hub, "GET", "/api/v1/audit", X_Request_Id="audit-of-monday")
        assert (status, problem["request_id"]) == (503, "audit-of-monday")
        assert "audit-of-monday" in [line["correlation_id"] for line in lines(hub, "store_unread")]
        printed = hub.cli("audit", check=False).stderr
        assert lines(hub, "store_unread")[-1]["correlation_id"] in printed, printed


CALLS_BY_GRPC = """
import sys, grpc

channel = grpc.insecure_channel(sys.argv[1])
for path in ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", "/grpc.health.v1.Health/Check"):
    for token, given in ((sys.argv[2], "deploy-7"), ("wrong", "guess-2"), (sys.argv[2], "a b"), (sys.argv[2], None)):
        metadata = [("authorization", "Bearer " + token)] + ([] if given is None else [("x-request-id", given)])
        try:
            _, call = channel.unary_unary(path).with_call(b"", metadata=metadata, timeout=30, wait_for_ready=True)
        except grpc.RpcError as error:
            call = error
        print(call.code().name, dict(call.trailing_metadata())["x-request-id"])
"""


def test_requests_over_grpc_have_ids_too(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, None, *JSON_LOG, "--grpc", str(port)) as hub:
        process = hub.python("calls.py", CALLS_BY_GRPC, f"127.0.0.1:{port}", hub.token)
        assert process.wait(60) == 0, hub.output(process)
        answers = [line.split(" ", 1) for line in hub.output(process).strip().splitlines()]
        assert [code for code, _ in answers] == ["OK", "UNAUTHENTICATED", "OK", "OK", "OK", "OK", "OK", "OK"]
        ids = [called for _, called in answers]
        assert ids[:2] + ids[4:6] == ["deploy-7", "guess-2"] * 2
        made = ids[2:4] + ids[6:]
        assert len(set(made)) == 4, "each has its own"
        assert "a b" not in made
        assert [line["correlation_id"] for line in lines(hub, "token_refused")] == ["guess-2"]
