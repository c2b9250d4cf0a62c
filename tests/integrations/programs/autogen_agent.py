"""An agent of AutoGen, as a user writes it."""

from __future__ import annotations

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

import tools
from lifesigns.integrations.autogen import watch

CAN = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "family": "unknown",
    "structured_output": False,
}
client = OpenAIChatCompletionClient(
    model="scripted", base_url=f"{tools.MODEL_URL}/v1", api_key="dummy", model_info=CAN, max_retries=0
)
offered = [
    FunctionTool(one, description="a tool") for one in (tools.look, tools.broken, tools.hang, tools.slow)
]
agent = AssistantAgent("worker", client, tools=offered, max_tool_iterations=100)
agent = watch(agent, tools.AGENT, **tools.OPTIONS)
result = asyncio.run(agent.run(task=tools.PROMPT))
print("ended:", result.messages[-1].content)
