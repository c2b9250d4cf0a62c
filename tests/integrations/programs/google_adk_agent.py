"""An agent of Google ADK, as a user writes it."""

from __future__ import annotations

import asyncio
import os

import tools

os.environ.update(
    GOOGLE_GEMINI_BASE_URL=tools.MODEL_URL, GOOGLE_API_KEY="dummy", GOOGLE_GENAI_USE_VERTEXAI="0"
)

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types

from lifesigns.integrations.google_adk import watch


def broken(path: str) -> dict[str, str]:
    """Fail; the model reads the error."""
    try:
        return {"lines": tools.broken(path)}
    except OSError as error:
        return {"error": str(error)}


asks = tools.SCRIPT == "ask"
offered = [
    FunctionTool(one, require_confirmation=asks) for one in (tools.look, tools.hang, tools.slow, broken)
]
agent = LlmAgent(name="worker", model="gemini-2.5-flash", instruction="work", tools=offered)
runner = InMemoryRunner(agent=agent, app_name="program", plugins=[watch(tools.AGENT, **tools.OPTIONS)])


async def run(session: str, part: types.Part) -> tuple[str, object]:
    """One run: its last words, and what it asks."""
    said, asked = "", None
    message = types.Content(role="user", parts=[part])
    async for event in runner.run_async(user_id="u", session_id=session, new_message=message):
        if event.long_running_tool_ids:
            asked = next(one for one in event.get_function_calls() if one.id in event.long_running_tool_ids)
        if event.is_final_response() and event.content and event.content.parts:
            said = event.content.parts[0].text or said
    return said, asked


async def main() -> None:
    session = await runner.session_service.create_session(app_name="program", user_id="u")
    said, asked = await run(session.id, types.Part(text=tools.PROMPT))
    if asked is not None:
        await asyncio.to_thread(input, "asked a human")
        answer = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
        said, _ = await run(session.id, types.Part(function_response=answer))
    print("ended:", said)


asyncio.run(main())
