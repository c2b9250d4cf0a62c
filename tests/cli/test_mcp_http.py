"""`/mcp` as a model's program meets it: the official client over HTTP, and a real hub in a process of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from lifesigns.cli import mcp_http
from lifesigns.hub.principals import Role
from lifesigns.web.answers import Problem
from tests.cli.test_mcp import ACTS, AGENTS, LOOKS, names, said
from tests.journeys.outside import Hub, Refused, serving
from tests.web.hub import running_hub

if TYPE_CHECKING:
    from mcp import Client as McpClient


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with serving(tmp_path_factory.mktemp("mcp")) as running:
        yield running


def token_for(hub: Hub, role: str, agents: str = "") -> str:
    wanted = {"role": role, "name": role} | ({"agents": agents} if agents else {})
    return str(hub.post("/api/v1/tokens", wanted)["token"])


@asynccontextmanager
async def model(hub: Hub, token: str, query: str = "") -> AsyncIterator[McpClient]:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    address = f"{hub.url}/mcp{query}"
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


async def test_an_agent_reports_and_reads_over_http(hub: Hub) -> None:
    async with model(hub, token_for(hub, "agent", "coder-7")) as client:
        assert await names(client) == AGENTS
        assert (await said(client, "report_progress", note="half", percent=50, task_id="t"))["heard"]
        await said(client, "save_checkpoint", checkpoint_id="cp-1", task_id="t")
        await said(client, "ask_for_time", minutes=10, why="a long build")
        assert (await said(client, "my_health"))["doing"] == "busy"
        await said(client, "report_blocker", question="Which branch?")
        assert (await said(client, "my_health"))["note"] == "Which branch?"
        await said(client, "resume_work")
        async with model(hub, hub.token) as operator:
            await said(operator, "nudge", agent_id="coder-7", message="Look at the tests first.")
        messages: list[Any] = []
        async with asyncio.timeout(30):
            while not messages:
                messages = await said(client, "read_messages")
        assert messages[0]["text"] == "Look at the tests first."


async def test_an_agent_sees_nobody_its_token_is_not_good_for(hub: Hub) -> None:
    hub.post("/api/v1/beats", {"agent_id": "stranger"})
    async with model(hub, token_for(hub, "agent", "coder-8")) as client:
        refused = await client.call_tool("neighbour_health", {"agent_id": "stranger"})
        assert refused.is_error
        assert "may not" in str(refused.content)
        unknown = await client.call_tool("decide", {"intervention_id": "x", "decision": "terminate"})
        assert unknown.is_error


async def test_what_a_role_may_not_do_is_not_offered(hub: Hub) -> None:
    async with model(hub, token_for(hub, "viewer")) as viewer:
        assert await names(viewer) == LOOKS
    async with model(hub, token_for(hub, "operator")) as operator:
        assert await names(operator) == LOOKS | ACTS
        hub.post("/api/v1/beats", {"agent_id": "seen"})
        assert "seen" in {agent["agent_id"] for agent in await said(operator, "list_agents")}
        assert (await said(operator, "evidence", agent_id="seen"))["health"]["state"] == "healthy"
        assert await said(operator, "who_needs_help") == []


async def test_a_token_for_several_agents_says_for_which(hub: Hub) -> None:
    token = token_for(hub, "agent", "team/*")
    async with model(hub, token, "?agent=team/a") as client:
        assert (await said(client, "report_progress", note="x"))["heard"]
        assert (await said(client, "my_health"))["agent_id"] == "team/a"
    with pytest.raises(Refused) as refused:
        ask(hub, token, "tools/list")
    assert refused.value.status == 400
    assert "?agent=ID" in refused.value.body["detail"]


def ask(hub: Hub, token: str, method: str, **more: str) -> Any:
    return hub.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method}, token=token, **more)


def test_the_doors_checks_hold_here_too(hub: Hub) -> None:
    token = token_for(hub, "viewer")
    assert ask(hub, token, "ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}
    for status, how in (
        (401, {"token": "wrong"}),
        (403, {"token": token, "Origin": "http://evil.example"}),
        (421, {"token": token, "Host": "evil.example"}),
    ):
        with pytest.raises(Refused) as refused:
            ask(hub, method="tools/list", **how)
        assert refused.value.status == status
    with pytest.raises(Refused) as refused:
        hub.request("GET", "/mcp", token=token)
    assert refused.value.status == 405


def test_what_is_no_message_is_told_so(hub: Hub) -> None:
    assert ask(hub, hub.token, "resources/list")["error"]["code"] == -32601
    assert hub.request("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
    for wrong in (b"", b"[]", b'{"jsonrpc": 2}', b"\xff", b"[" * 100_000):
        with pytest.raises(Refused) as refused:
            hub.request("POST", "/mcp", wrong)
        assert (refused.value.status, refused.value.body["error"]["code"]) == (400, -32600), wrong
    bad = {"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": ["nudge"]}}
    assert hub.request("POST", "/mcp", json.dumps(bad).encode())["error"]["code"] == -32602


def test_a_revoked_token_is_refused_at_once(hub: Hub) -> None:
    made = hub.post("/api/v1/tokens", {"role": "viewer", "name": "short"})
    assert ask(hub, made["token"], "tools/list")["result"]["tools"]
    hub.request("DELETE", f"/api/v1/tokens/{made['id']}")
    with pytest.raises(Refused) as refused:
        ask(hub, made["token"], "tools/list")
    assert refused.value.status == 401


async def test_a_hub_imports_the_tools_beside_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a second's work: on the loop it stopped the hub, and the model that asked first was throttled for it."""
    threads = []

    def imported() -> None:
        threads.append(threading.current_thread())
        raise ImportError

    monkeypatch.setattr(mcp_http, "import_tools", imported)
    with pytest.raises(Problem) as refused:
        await mcp_http.McpEndpoint()._connect(b"ls_x", None)
    assert refused.value.status == 501
    assert threads[0] is not threading.main_thread()


async def test_one_token_does_not_close_what_others_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each caller's client is kept; to ask for many agents with one token closed those of others in the middle of a call."""
    monkeypatch.setattr(mcp_http, "KNOWN_MAX", 12)
    async with running_hub() as running, mcp_http.McpEndpoint() as endpoint:
        endpoint.app = running.web
        good, evil = [(await running.token_for(Role.AGENT, name)).encode() for name in ("good-1", "evil-*")]
        before = await endpoint._server(good, None)
        for n in range(30):
            await endpoint._server(evil, f"evil-{n}")
        assert await endpoint._server(good, None) is before
        assert len(endpoint._known) == mcp_http.KNOWN_PER_TOKEN + 1


def test_a_message_that_is_too_large_is_refused_before_it_is_read(hub: Hub) -> None:
    with pytest.raises(Refused) as refused:
        hub.request(
            "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "x" * 600_000}}
        )
    assert refused.value.status == 413
