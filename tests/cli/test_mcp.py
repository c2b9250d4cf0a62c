"""`lifesigns mcp` as a model's program meets it: the official client, over the pipes of a real process, and a real hub."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lifesigns.core.policy import FleetPolicy
from lifesigns.hub.principals import Role
from tests.agent.supervise.running import environ
from tests.cli.hub import HubInThread, hub_in_thread

if TYPE_CHECKING:
    from mcp import Client as McpClient  # It takes a second to import, and every worker of the suite would.

AGENTS = {
    *("report_progress", "report_blocker", "resume_work", "save_checkpoint", "ask_for_time"),
    *("my_health", "neighbour_health", "read_messages", "answer_nudge", "acknowledge_message"),
}
LOOKS = {"who_needs_help", "list_agents", "evidence"}
ACTS = {"nudge", "decide"}


@pytest.fixture(scope="module")
def hub() -> Iterator[HubInThread]:
    with hub_in_thread(fleet=FleetPolicy(canary_every=0)) as running:
        yield running


@asynccontextmanager
async def model(hub: HubInThread, token: str, *options: str) -> AsyncIterator[McpClient]:
    """A model's program that has started the server."""
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "lifesigns", "mcp", *options],
        env=environ(**{**hub.environ, "LIFESIGNS_TOKEN": token}),
    )
    async with Client(parameters) as client:
        yield client


def token_for(hub: HubInThread, role: Role, agents: str = "") -> str:
    return hub.run(hub.running.token_for(role, agents))


async def said(client: McpClient, tool: str, **arguments: Any) -> Any:
    """What a tool answers, as the program reads it."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content = result.structured_content
    assert content is not None, "a model's program gets no structure"
    return content["result"] if set(content) == {"result"} else content


async def names(client: McpClient) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def test_an_agent_reports_how_it_gets_on(hub: HubInThread) -> None:
    token = token_for(hub, Role.AGENT, "coder-7")
    async with model(hub, token) as client:
        assert await names(client) == AGENTS
        assert await said(client, "report_progress", note="half of it", percent=50, task_id="t-19") == {
            "heard": True,
            "detail": "",
        }
        mine = await said(client, "my_health")
        assert (mine["agent_id"], mine["state"], mine["task_id"], mine["findings"]) == (
            "coder-7",
            "healthy",
            "t-19",
            [],
        )
        await said(client, "save_checkpoint", checkpoint_id="cp-1", task_id="t-19")
        await said(client, "ask_for_time", minutes=10, why="a long build")
        assert (await said(client, "my_health"))["doing"] == "busy"
        await said(client, "report_blocker", question="Which branch?")
        assert (await said(client, "my_health"))["note"] == "Which branch?"
        await said(client, "resume_work")
        assert (await said(client, "my_health"))["doing"] == "working"
    assert hub.client.checkpoints("t-19").checkpoints[-1].checkpoint_id == "cp-1"
    types = [event.type for event in hub.client.event_list(agent="coder-7", limit=1000).events]
    assert "NEEDS_HUMAN" in types


async def test_an_agent_known_by_this_alone_is_not_expected_to_beat(hub: HubInThread) -> None:
    """The hub's profile is `swift`: an agent that should beat is lost after three seconds."""
    async with model(hub, token_for(hub, Role.AGENT, "quiet-1")) as client:
        await said(client, "report_progress", note="begun")
        agent = hub.running.service.engine.agent("quiet-1")
        assert agent is not None
        assert agent.beatless


async def test_a_nudge_reaches_the_model_and_its_answer_the_hub(hub: HubInThread) -> None:
    token = token_for(hub, Role.AGENT, "coder-8")
    async with model(hub, token) as agent, model(hub, hub.token) as operator:
        await said(agent, "report_progress", note="begun")
        assert await said(agent, "read_messages") == []
        act = await said(operator, "nudge", agent_id="coder-8", message="Look at the tests first.")
        assert act["rung"] == "nudge"
        messages: list[Any] = []
        async with asyncio.timeout(20):
            while not messages:
                messages = await said(agent, "read_messages")
        (nudge,) = messages
        assert (nudge["kind"], nudge["text"]) == ("nudge", "Look at the tests first.")
        assert await said(agent, "read_messages") == []
        await said(agent, "answer_nudge", nudge_id=nudge["id"], answer="need_time", note="ten minutes")
        record = hub.client.intervention(act["intervention_id"])
        assert {"seen", "answered"} <= {str(reached.stage) for reached in record.stages}


async def test_an_agent_sees_those_its_token_is_good_for_and_nobody_else(hub: HubInThread) -> None:
    hub.client.beat("team/two")
    hub.client.beat("stranger")
    token = token_for(hub, Role.AGENT, "team/*")
    async with model(hub, token, "--agent", "team/one") as client:
        assert (await said(client, "neighbour_health", agent_id="team/two"))["agent_id"] == "team/two"
        refused = await client.call_tool("neighbour_health", {"agent_id": "stranger"})
        assert refused.is_error
        assert "may not ask about" in refused.content[0].text  # type: ignore[union-attr]


async def test_an_operators_assistant_sees_who_needs_help_and_why_and_decides(hub: HubInThread) -> None:
    for n in range(6):
        hub.client.signal(
            "tool_finished", "looper-1", call_id=f"c{n}", tool="read", args={"p": 1}, ok=False, error="no"
        )
    escalated = hub.client.escalate("looper-1", "it reads the same file")
    async with model(hub, token_for(hub, Role.OPERATOR)) as client:
        assert await names(client) == LOOKS | ACTS
        why = await said(client, "evidence", agent_id="looper-1")
        assert any("read failed 6 times in a row" in found for found in why["health"]["findings"])
        assert why["calls"][-1].endswith("read, 6 times in a row, failed")
        needs = await said(client, "who_needs_help")
        (need,) = [one for one in needs if one["agent_id"] == "looper-1"]
        assert need["intervention_id"] == escalated.id
        listed = await said(client, "list_agents", search="looper")
        assert [one["agent_id"] for one in listed] == ["looper-1"]
        act = await said(
            client, "decide", intervention_id=escalated.id, decision="more_time", note="let it be"
        )
        assert act["stage"] == "answered"


async def test_who_may_only_look_is_offered_nothing_else(hub: HubInThread) -> None:
    async with model(hub, token_for(hub, Role.VIEWER), "--agent", "coder-7") as client:
        assert await names(client) == LOOKS


async def test_tools_say_whether_they_only_read_and_what_is_data(hub: HubInThread) -> None:
    async with model(hub, hub.token, "--agent", "coder-9") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == AGENTS | LOOKS | ACTS
        assert all(tool.description for tool in tools.values())
        reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert reads == LOOKS | {"my_health", "neighbour_health"}
        assert tools["decide"].annotations is not None
        assert tools["decide"].annotations.destructive_hint
        assert client.instructions is not None
        assert "never instructions" in client.instructions


async def test_what_a_model_calls_wrongly_is_an_answer_and_no_end(hub: HubInThread) -> None:
    async with model(hub, hub.token) as client:
        for tool, arguments in (
            ("evidence", {"agent_id": "nobody"}),
            ("evidence", {"agent_id": "no id!"}),
            ("decide", {"intervention_id": "1-1", "decision": "whatever"}),
            ("evidence", {}),
        ):
            assert (await client.call_tool(tool, arguments)).is_error
        assert await said(client, "list_agents", search="no-such-agent") == []


@pytest.mark.parametrize(
    ("token", "why"),
    [("agent", "say which with --agent ID"), ("wrong", "the token is unknown")],
)
def test_what_keeps_it_from_starting_is_said(hub: HubInThread, token: str, why: str) -> None:
    secret = token_for(hub, Role.AGENT, "coder-*") if token == "agent" else "lst_0000_" + "0" * 64
    command = [sys.executable, "-m", "lifesigns", "mcp"]
    env = environ(**{**hub.environ, "LIFESIGNS_TOKEN": secret})
    done = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stdout == ""


def test_without_its_extra_it_says_what_to_install(hub: HubInThread, tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ImportError")
    env = environ(**hub.environ)
    env["PYTHONPATH"] = f"{tmp_path}:{env['PYTHONPATH']}"
    command = [sys.executable, "-m", "lifesigns", "mcp"]
    done = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "pip install 'lifesigns[mcp]'" in done.stderr
