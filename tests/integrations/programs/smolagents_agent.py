"""An agent of smolagents, as a user writes it."""

from __future__ import annotations

from smolagents import OpenAIServerModel, ToolCallingAgent, tool

import tools
from lifesigns.integrations.smolagents import watch


@tool
def look(path: str) -> str:
    """Look at a file.

    Args:
        path: which
    """
    return tools.look(path)


@tool
def broken(path: str) -> str:
    """Fail.

    Args:
        path: which
    """
    return tools.broken(path)


@tool
def hang(path: str) -> str:
    """Hang.

    Args:
        path: which
    """
    return tools.hang(path)


@tool
def slow(path: str) -> str:
    """Take a moment.

    Args:
        path: which
    """
    return tools.slow(path)


model = OpenAIServerModel(
    "scripted",
    api_base=f"{tools.MODEL_URL}/v1",
    api_key="dummy",
    retry=False,
    client_kwargs={"max_retries": 0},
)
agent = ToolCallingAgent([look, broken, hang, slow], model, max_steps=100, verbosity_level=0)
agent = watch(agent, tools.AGENT, **tools.OPTIONS)
print("ended:", agent.run(tools.PROMPT))
