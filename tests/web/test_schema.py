"""schemathesis over the running API: whatever is asked, the answer is one that the description promises.

Questions are made from the description, good and bad ones. None of them makes a server error, and every answer has a
status, a content type, headers and a shape that are described.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, Final

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from lifesigns.core.effects import AskStatus
from lifesigns.core.profiles import profile
from lifesigns.web.routes import NoQuery
from lifesigns.web.table import CALLS
from tests.web.hub import RunningHub, running_hub

EXAMPLES: Final = int(os.environ.get("SCHEMA_EXAMPLES", "6"))
"""Good questions for each call, and half as many bad ones."""

ENDLESS: Final = ("/api/v1/events",)
"""Streams do not end by themselves; test_events.py reads them."""

WAIT_MAX: Final = 0.02
"""Of a long poll, in seconds."""

KNOWN: Final = {
    "agent_id": "coder-7",
    "task_id": "t-19",
    "message_id": "m-1",
    "order_id": "n-1",
    "name": "search",
    "intervention_id": "",  # made by `furnish`
}

HARDLY: Final = {
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("DELETE", "/api/v1/sessions/{session_id}"),
    ("DELETE", "/api/v1/hubs/{name}"),
    ("POST", "/api/v1/hubs/{name}/drain"),
    ("DELETE", "/api/v1/hubs/{name}/drain"),
    ("DELETE", "/api/v1/tokens/{token_id}"),
    ("POST", "/api/v1/tokens/{token_id}/rotate"),
    ("DELETE", "/api/v1/silences/{silence_id}"),
    ("POST", "/api/v1/alerts/{alert_id}/ack"),
    ("POST", "/api/v1/groups/{group}/release"),
    ("POST", "/api/v1/tasks/{task_id}/release"),
    ("POST", "/api/v1/messages/{message_id}/ack"),
    ("POST", "/api/v1/messages/{message_id}/read"),
    ("POST", "/api/v1/escalations/{intervention_id}/decision"),
    ("GET", "/api/v1/audit/consistency"),
    ("PUT", "/api/v1/tasks/{task_id}/checkpoints/{checkpoint_id}"),
    ("GET", "/api/v1/tasks/{task_id}/checkpoints/{checkpoint_id}"),
    ("POST", "/api/v1/tasks/{task_id}/recover"),
    ("GET", "/api/v1/audit/checkpoint"),
    ("GET", "/api/v1/audit/proof/{n}"),
}
"""Calls that chance hardly gets right: it would have to guess a secret, a token or who is meant."""

PATIENT: Final = profile("balanced").with_changes(
    {"silence": {"interval": 300.0, "timeout": 900.0, "ping_wait": 30.0}}
)
"""Agents that beat once are well for as long as these tests take on any machine: a probe would tell of others by a 503."""

CHECKS: Final = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
)


async def furnish(hub: RunningHub) -> None:
    """Agents, tasks, messages and orders, under the names that the description gives as examples."""
    await hub.post("/api/v1/beats", [{"agent_id": "coder-7", "task_id": "t-19"}, {"agent_id": "reviewer-1"}])
    signals = [
        {"type": "task_assigned", "agent_id": "coder-7", "task_id": "t-19", "expected_for": 60},
        {"type": "breaker", "agent_id": "coder-7", "name": "search", "state": "open"},
        {"type": "error", "agent_id": "reviewer-1", "message": "x", "recoverable": False},
        {"type": "doing", "agent_id": "coder-7", "doing": "waiting_for_human"},
        {"type": "checkpoint", "agent_id": "coder-7", "task_id": "t-19", "checkpoint_id": "cp-1"},
    ]
    assert (await hub.post("/api/v1/signals", signals)).json()["rejected"] == []
    message = {"message_id": "m-1", "agent_id": "coder-7", "to": "reviewer-1"}
    assert (await hub.post("/api/v1/messages", message)).status_code == 202
    assert (await hub.post("/api/v1/tasks/t-19/claim", {"agent_id": "coder-7"})).status_code == 200
    escalated = await hub.post("/api/v1/agents/reviewer-1/escalate", {"reason": "it burns money"})
    KNOWN["intervention_id"] = escalated.json()["id"]
    now = hub.service.clock()
    inquiry = AskStatus(now, "n-1", 1, "coder-7", None, task_id="t-19", text="well?", answer_by=now + 3600)
    hub.service.hub.deliver(inquiry)


@pytest.fixture(scope="module")
def hub() -> Iterator[RunningHub]:
    """A hub in a thread of its own: schemathesis asks and waits."""
    running: Future[RunningHub] = Future()
    stop = asyncio.Event()
    loop = asyncio.new_event_loop()

    async def run() -> None:
        try:
            async with running_hub(policy=PATIENT) as hub:
                await furnish(hub)
                running.set_result(hub)
                await stop.wait()
        except BaseException as error:
            if not running.done():
                running.set_exception(error)
            raise

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    try:
        yield running.result(30)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()


@pytest.fixture
def coder(hub: RunningHub) -> None:
    """Chance may have let it leave, or begun another life without its breaker: then it begins one with it."""
    headers = {"authorization": f"Bearer {hub.token}"}
    with httpx2.Client(base_url=hub.url, headers=headers, trust_env=False, verify=False) as http:
        coder = http.get("/api/v1/agents/coder-7").json()
        breakers = [breaker["name"] for breaker in coder["circuit_breakers"]]
        if coder["state"] in ("terminated", "disconnected") or KNOWN["name"] not in breakers:
            life = {"agent_id": "coder-7", "incarnation": uuid.uuid4().hex}
            http.post("/api/v1/beats", json={**life, "task_id": "t-19"})
            breaker = {**life, "type": "breaker", "name": KNOWN["name"], "state": "open"}
            assert http.post("/api/v1/signals", json=breaker).json()["rejected"] == []


@pytest.fixture(scope="module")
def api(hub: RunningHub) -> Any:
    return schemathesis.openapi.from_url(f"{hub.url}/openapi.json")


def rows() -> list[tuple[str, str, GenerationMode]]:
    """Every call with good questions; with bad ones, where something can be wrong."""
    asked = [call for call in CALLS if call.path not in ENDLESS]
    can_be_wrong = [call for call in asked if "{" in call.path or call.body or call.query is not NoQuery]
    return [
        *((call.method, call.path, GenerationMode.POSITIVE) for call in asked),
        *((call.method, call.path, GenerationMode.NEGATIVE) for call in can_be_wrong),
    ]


def schema_walk(examples: int) -> settings:
    """The same examples each time, as many as are asked for, however long they take."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.usefixtures("coder")
@pytest.mark.parametrize(("method", "path", "mode"), rows())
def test_every_answer_is_one_that_is_described(
    hub: RunningHub, api: Any, method: str, path: str, mode: GenerationMode
) -> None:
    answered: dict[int, str] = {}

    @schema_walk(EXAMPLES if mode is GenerationMode.POSITIVE else EXAMPLES // 2)
    @given(case=api[path][method].as_strategy(generation_mode=mode), known=st.booleans())
    def ask(case: Any, known: bool) -> None:
        if known:
            _name(case)
        if _is_long(case.query.get("wait")):
            case.query["wait"] = WAIT_MAX
        response = case.call(headers={"authorization": f"Bearer {hub.token}"}, timeout=30)
        answered[response.status_code] = response.text
        case.validate_response(response, checks=list(CHECKS))

    ask()
    if mode is GenerationMode.POSITIVE and (method, path) not in HARDLY:
        # Keeps this honest: an API that answers 404 to everything would pass.
        assert any(status < 400 for status in answered), answered


def _name(case: Any) -> None:
    """Ask about things that are there; most that chance would ask for are not."""
    for name in case.path_parameters:
        case.path_parameters[name] = KNOWN.get(name, "x")
    if "name" in case.path_parameters:  # The breaker of this name is of this agent, and open.
        for key, value in (("agent", KNOWN["agent_id"]), ("state", ["open"])):
            if key in case.query:
                case.query[key] = value
    if "key" in case.query:
        case.query["key"] = f"task-sentinel/workers/{KNOWN['agent_id']}/heartbeat"
    if isinstance(case.body, dict) and "agent_id" in case.body:
        case.body["agent_id"] = KNOWN["agent_id"]
    if isinstance(case.body, dict) and "to" in case.body:
        case.body["to"] = KNOWN["agent_id"]


def _is_long(wait: Any) -> bool:
    return isinstance(wait, int | float) and WAIT_MAX < wait <= 60
