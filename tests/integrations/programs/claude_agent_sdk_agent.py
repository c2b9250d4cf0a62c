"""An agent of the Claude Agent SDK, as a user writes it. Its tools are a server in this process."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import tools

os.environ.update(
    ANTHROPIC_BASE_URL=tools.MODEL_URL,
    ANTHROPIC_API_KEY="sk-ant-dummy",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    CLAUDE_CODE_MAX_RETRIES="0",
    IS_SANDBOX="1",
    ENABLE_TOOL_SEARCH="false",
)

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

from lifesigns.integrations.claude_agent_sdk import watch


def offered(function: Any) -> Any:
    @tool(function.__name__, "a tool", {"path": str})
    async def call(args: dict[str, Any]) -> dict[str, Any]:
        said = await asyncio.to_thread(function, args["path"])
        return {"content": [{"type": "text", "text": said}]}

    return call


async def allow(name: str, args: Any, context: Any) -> PermissionResultAllow:
    await asyncio.to_thread(input, "asked a human")
    return PermissionResultAllow()


server = create_sdk_mcp_server(
    "t", tools=[offered(one) for one in (tools.look, tools.broken, tools.hang, tools.slow)]
)
asks = tools.SCRIPT == "ask"
options = ClaudeAgentOptions(
    mcp_servers={"t": server},
    permission_mode="default" if asks else "bypassPermissions",
    can_use_tool=allow if asks else None,
    setting_sources=[],
)
options = watch(options, tools.AGENT, **tools.OPTIONS)


async def main() -> None:
    async with ClaudeSDKClient(options) as client:
        await client.query(tools.PROMPT)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print("ended:", message.result)


asyncio.run(main())
