"""An agent of LlamaIndex, as a user writes it."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from llama_index.llms.openai_like import OpenAILike

import tools
from lifesigns.integrations.llama_index import watch


async def ask(ctx: Context, path: str) -> str:
    """Ask a human, and wait for the answer."""
    asked = InputRequiredEvent(prefix="May I?")
    answer = await ctx.wait_for_event(HumanResponseEvent, waiter_id="may", waiter_event=asked)
    return answer.response


llm = OpenAILike(
    model="scripted",
    api_base=f"{tools.MODEL_URL}/v1",
    api_key="dummy",
    is_chat_model=True,
    is_function_calling_model=True,
    max_retries=0,
)
offered = [FunctionTool.from_defaults(one) for one in (tools.look, tools.broken, tools.hang)]
slow = ask if tools.SCRIPT == "ask" else tools.slow
offered.append(FunctionTool.from_defaults(slow, name="slow", description="Take a moment."))
agent = FunctionAgent(tools=offered, llm=llm, streaming=False, timeout=None)
agent = watch(agent, tools.AGENT, **tools.OPTIONS)


async def main() -> None:
    handler = agent.run(tools.PROMPT, max_iterations=200)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            await asyncio.to_thread(input, "asked a human")
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    print("ended:", await handler)


asyncio.run(main())
