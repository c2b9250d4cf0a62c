"""An agent of the OpenAI Agents SDK, as a user writes it."""

from __future__ import annotations

import asyncio

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

import tools
from lifesigns.integrations.openai_agents import watch

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=f"{tools.MODEL_URL}/v1", api_key="dummy", max_retries=0)
asks = tools.SCRIPT == "ask"
offered = [
    function_tool(one, needs_approval=asks) for one in (tools.look, tools.broken, tools.hang, tools.slow)
]
model = OpenAIResponsesModel("scripted", client)
worker = Agent(name="worker", tools=offered, model=model)
agent = Agent(name="planner", handoffs=[worker], model=model) if tools.WAY == "handoff" else worker


async def main() -> None:
    hooks = watch(tools.AGENT, **tools.OPTIONS)
    if tools.WAY == "stream":
        streamed = Runner.run_streamed(agent, tools.PROMPT, hooks=hooks, max_turns=100)
        async for _ in streamed.stream_events():
            pass
        print("ended:", streamed.final_output)
        return
    result = await Runner.run(agent, tools.PROMPT, hooks=hooks, max_turns=100)
    while result.interruptions:
        await asyncio.to_thread(input, "asked a human")
        state = result.to_state()
        for one in result.interruptions:
            state.approve(one)
        result = await Runner.run(agent, state, hooks=hooks)
    print("ended:", result.final_output)


asyncio.run(main())
