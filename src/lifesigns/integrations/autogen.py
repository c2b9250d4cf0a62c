"""AutoGen AgentChat, watched.

    agent = watch(AssistantAgent("worker", model_client, tools=tools), "coder-7")

One run is one answer of the agent: `run`, `run_stream`, or its turn in a team. The events of that stream tell of tools before
and after; the model client is watched itself, because events do not tell when a model is asked.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

from lifesigns.integrations.runs import AgentRun, Cost, Watch, attached, harmless

KNOWN: Final = "0.7.5"
_current: ContextVar[AgentRun | None] = ContextVar("lifesigns_autogen_run", default=None)


def watch(agent: Any, agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """The agent, watched: its runs, models, tools and handoffs; nudges reach the model, and a stop ends the run."""
    watched = Watch("autogen", agent_id, cost=cost, **options)
    attached("autogen-agentchat", KNOWN, lambda: _attach(agent, watched), otherwise=lambda: None)
    return agent


def _attach(agent: Any, watched: Watch) -> None:
    stream = agent.on_messages_stream
    agent._model_client = ToldModel(agent._model_client)

    async def told_stream(messages: Any, cancellation_token: Any) -> Any:
        key = object()
        watched.begin(key)
        run = watched.find(key)
        around = _current.get()
        _current.set(run)
        try:
            async for event in stream(messages, cancellation_token):
                if run is not None:
                    _tell(run, event)
                if type(event).__name__ == "Response":  # The last one: who has it reads no further.
                    watched.end(key)
                yield event
                _current.set(run)  # Who reads the stream may be in another context by now.
        except BaseException as error:
            watched.end(key, error)
            raise
        finally:
            _current.set(around)
        watched.end(key)

    agent.on_messages_stream = told_stream


@harmless
def _tell(run: AgentRun, event: Any) -> None:
    """What an event of the stream says about tools."""
    match type(event).__name__:
        case "ToolCallRequestEvent":
            for call in event.content:
                run.tool_started(call.id, call.name, _arguments(call.arguments))
        case "ToolCallExecutionEvent":
            for done in event.content:
                if done.is_error:
                    run.tool_failed(done.call_id, done.content)
                else:
                    run.tool_finished(done.call_id, done.content)
        case "HandoffMessage":
            run.hands_over(event.target)


class ToldModel:
    """The agent's model client; all but the calls of the model is as it was."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    async def create(self, messages: Any, **kwargs: Any) -> Any:
        run, key = _current.get(), object()
        if run is None:
            return await self._inner.create(messages, **kwargs)
        messages = run.ask_model(key, messages, _message)
        try:
            result = await self._inner.create(messages, **kwargs)
        except BaseException as error:
            run.model_failed(key, error)
            raise
        _finish(run, key, result)
        return result

    async def create_stream(self, messages: Any, **kwargs: Any) -> Any:
        run, key, last = _current.get(), object(), None
        if run is not None:
            messages = run.ask_model(key, messages, _message)
        try:
            async for last in self._inner.create_stream(messages, **kwargs):
                yield last
        except BaseException as error:
            if run is not None:
                run.model_failed(key, error)
            raise
        if run is not None:
            _finish(run, key, last)


def _message(text: str) -> Any:
    return import_module("autogen_core.models").UserMessage(content=text, source="lifesigns")


def _finish(run: AgentRun, key: object, result: Any) -> None:
    used = getattr(result, "usage", None)
    run.model_finished(key, getattr(used, "prompt_tokens", 0), getattr(used, "completion_tokens", 0))


def _arguments(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
