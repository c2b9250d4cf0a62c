"""An agent of Pydantic AI, as a user writes it."""

from __future__ import annotations

import asyncio

from openai import AsyncOpenAI
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelRetry, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import tools
from lifesigns.integrations.pydantic_ai import watch


def broken(path: str) -> str:
    """Fail; the model reads the error."""
    try:
        return tools.broken(path)
    except OSError as error:
        raise ModelRetry(str(error)) from error


client = AsyncOpenAI(base_url=f"{tools.MODEL_URL}/v1", api_key="dummy", max_retries=0)
model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
asks = tools.SCRIPT == "ask"
agent = Agent(
    model,
    tools=[
        Tool(one, requires_approval=asks, max_retries=20)
        for one in (tools.look, tools.hang, tools.slow, broken)
    ],
    output_type=[str, DeferredToolRequests],
    capabilities=[watch(tools.AGENT, **tools.OPTIONS)],
)


async def main() -> None:
    result = await agent.run(tools.PROMPT)
    if isinstance(result.output, DeferredToolRequests):
        await asyncio.to_thread(input, "asked a human")
        approved = DeferredToolResults(approvals={one.tool_call_id: True for one in result.output.approvals})
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=approved)
    print("ended:", result.output)


asyncio.run(main())
