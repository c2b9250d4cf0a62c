"""LlamaIndex agents, watched.

    agent = watch(FunctionAgent(tools=tools, llm=llm), "coder-7")

The events of a workflow can be read once, and they are the user's. So the agent gets a class that is its own with the run, the
step of the model and the tool call around.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from importlib import import_module
from types import new_class
from typing import Any, Final

from lifesigns.errors import RunStopped
from lifesigns.integrations.runs import AgentRun, Cost, Watch, attached, harmless

KNOWN: Final = "0.14.25"
WAITS: Final = "WaitingForEvent"
"""What a tool raises while it waits for an event of the user's; its name, because it is private."""
_current: ContextVar[AgentRun | None] = ContextVar("lifesigns_llama_index_run", default=None)
_followed: set[Any] = set()
_watches: dict[int, Watch] = {}
"""By the agent, which takes no further fields."""


def watch(agent: Any, agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """The agent, watched: its runs, models and tools; nudges reach the model, and a stop ends the run."""
    watched = Watch("llama_index", agent_id, cost=cost, **options)
    attached("llama-index-core", KNOWN, lambda: _attach(agent, watched), otherwise=lambda: None)
    return agent


def _attach(agent: Any, watched: Watch) -> None:
    kind = new_class(type(agent).__name__, (ToldAgent, type(agent)))
    _watches[id(agent)] = watched
    object.__setattr__(agent, "__class__", kind)


class ToldAgent:
    """An agent that says when a run begins and ends, when its model is asked, and which tools it calls."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        watched, key = _watches[id(self)], object()
        watched.begin(key)
        run = watched.find(key)
        token = _current.set(run)
        try:
            handler = super().run(*args, **kwargs)  # type: ignore[misc]
        except BaseException as error:
            watched.end(key, error)
            raise
        finally:
            _current.reset(token)

        following = asyncio.ensure_future(_follow(handler, watched, key))
        _followed.add(following)
        following.add_done_callback(_followed.discard)
        return handler

    async def take_step(self, ctx: Any, llm_input: Any, tools: Any, memory: Any) -> Any:
        run, key = _current.get(), object()
        step = super().take_step  # type: ignore[misc]
        if run is None:
            return await step(ctx, llm_input, tools, memory)
        llm_input = run.ask_model(key, llm_input, _message)
        try:
            output = await step(ctx, llm_input, tools, memory)
        except BaseException as error:
            run.model_failed(key, error)
            raise
        _finish(run, key, output)
        return output

    async def _call_tool(self, ctx: Any, tool: Any, tool_input: dict[str, Any]) -> Any:
        run, key = _current.get(), object()
        call = super()._call_tool  # type: ignore[misc]
        if run is None:
            return await call(ctx, tool, tool_input)
        name = _name(tool) or "tool"
        run.tool_started(key, name, tool_input)
        try:
            output = await call(ctx, tool, tool_input)
        except BaseException as error:
            if WAITS in type(error).__name__:
                run.tool_finished(key)
                run.asks(f"{name} waits for an answer.")
            else:
                run.tool_failed(key, error)
            raise
        _called(run, key, output)
        return output


@harmless
def _name(tool: Any) -> str:
    return str(tool.metadata.get_name())


@harmless
def _called(run: AgentRun, key: object, output: Any) -> None:
    if output.is_error:
        run.tool_failed(key, output.content)
    else:
        run.tool_finished(key, output.content)


async def _follow(handler: Any, watched: Watch, key: object) -> None:
    """A run ends with its result, whoever waits for that."""
    try:
        await handler.stop_event_result()
    except asyncio.CancelledError:
        watched.end(key)
        raise
    except Exception as error:  # noqa: BLE001 -- the agent's own, and its user gets it too
        watched.end(key, None if "Cancelled" in type(error).__name__ else _root_of(error))
    else:
        watched.end(key)


def _message(text: str) -> Any:
    return import_module("llama_index.core.llms").ChatMessage(role="user", content=text)


@harmless
def _finish(run: AgentRun, key: object, output: Any) -> None:
    raw = output.raw
    used = raw.get("usage") if isinstance(raw, dict) else getattr(raw, "usage", None)
    run.model_finished(key, _count(used, "prompt_tokens"), _count(used, "completion_tokens"))


def _count(used: Any, name: str) -> int:
    value = used.get(name) if isinstance(used, dict) else getattr(used, name, 0)
    return value if isinstance(value, int) else 0


def _root_of(error: BaseException | None) -> BaseException | None:
    """A workflow wraps what a step raises."""
    cause = None if error is None else error.__cause__
    return cause if isinstance(cause, RunStopped) else error
