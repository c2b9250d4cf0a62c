"""smolagents, watched.

    agent = watch(ToolCallingAgent(tools, model), "coder-7")

Its step callbacks come after the step, when a hang is over. So its run, its tool calls and its model are watched themselves:
nothing else of it changes. The code that a `CodeAgent` runs is one call, `python`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

from lifesigns.integrations.runs import AgentRun, Cost, Watch, attached

KNOWN: Final = "1.26.0"
_current: ContextVar[AgentRun | None] = ContextVar("lifesigns_smolagents_run", default=None)


def watch(agent: Any, agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """The agent, watched: its runs, models and tools; nudges reach the model, and a stop ends the run."""
    watched = Watch("smolagents", agent_id, cost=cost, **options)
    attached("smolagents", KNOWN, lambda: _attach(agent, watched), otherwise=lambda: None)
    return agent


def _attach(agent: Any, watched: Watch) -> None:
    told = ToldAgent(agent, watched)
    agent.model = ToldModel(agent.model)
    if getattr(agent, "python_executor", None) is not None:
        agent.python_executor = ToldExecutor(agent.python_executor)
    agent.run = told.run
    if hasattr(agent, "execute_tool_call"):
        agent.execute_tool_call = told.execute_tool_call


class ToldAgent:
    """Says when a run of the agent begins and ends, and which tools it calls. Its methods stand for the agent's."""

    def __init__(self, agent: Any, watched: Watch) -> None:
        self._watched = watched
        self._run, self._execute = agent.run, getattr(agent, "execute_tool_call", None)
        self._current: AgentRun | None = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        key = object()
        run = self._current = self._watched.begin(key)
        try:
            with _within(run):
                result = self._run(*args, **kwargs)
        except BaseException as error:
            self._watched.end(key, _root_of(error))
            raise
        if isinstance(result, Iterator):
            return self._streamed(key, run, result)
        self._watched.end(key)
        return result

    def _streamed(self, key: object, run: AgentRun | None, steps: Iterator[Any]) -> Iterator[Any]:
        try:
            while True:
                with _within(run):
                    step = next(steps, _END)
                if step is _END:
                    break
                yield step
        except BaseException as error:
            self._watched.end(key, _root_of(error))
            raise
        self._watched.end(key)

    def execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
        """Called in a thread of its own, one for each of several calls."""
        run, key = self._current, object()
        execute: Any = self._execute
        if run is None:
            return execute(tool_name, arguments)
        run.tool_started(key, tool_name, arguments)
        try:
            result = execute(tool_name, arguments)
        except BaseException as error:
            run.tool_failed(key, _root_of(error))
            raise
        run.tool_finished(key, result)
        return result


_END: Final = object()


class _within:  # noqa: N801 -- used as a function
    """While its code runs, this is the run."""

    def __init__(self, run: AgentRun | None) -> None:
        self._run = run

    def __enter__(self) -> None:
        self._token = _current.set(self._run)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


class Around:
    """A part of the agent that is as it was, but for what is said of it here."""

    def __init__(self, inner: Any) -> None:
        self.__dict__["_inner"] = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_inner"], name, value)


class ToldModel(Around):
    """The agent's model."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.generate(*args, **kwargs)

    def generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        run, key = _current.get(), object()
        if run is None:
            return self._inner.generate(messages, *args, **kwargs)
        messages = run.ask_model(key, messages, _message)
        try:
            answer = self._inner.generate(messages, *args, **kwargs)
        except BaseException as error:
            run.model_failed(key, error)
            raise
        _finish(run, key, getattr(answer, "token_usage", None), self._inner)
        return answer

    def generate_stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        run, key, used = _current.get(), object(), None
        if run is None:
            yield from self._inner.generate_stream(messages, *args, **kwargs)
            return
        messages = run.ask_model(key, messages, _message)
        try:
            for part in self._inner.generate_stream(messages, *args, **kwargs):
                used = getattr(part, "token_usage", None) or used
                yield part
        except BaseException as error:
            run.model_failed(key, error)
            raise
        _finish(run, key, used, self._inner)


class ToldExecutor(Around):
    """What runs the code of a `CodeAgent`."""

    def __call__(self, code_action: str) -> Any:
        run, key = _current.get(), object()
        if run is None:
            return self._inner(code_action)
        run.tool_started(key, "python", code_action)
        try:
            result = self._inner(code_action)
        except BaseException as error:
            run.tool_failed(key, error)
            raise
        run.tool_finished(key, str(result))
        return result


def _message(text: str) -> Any:
    models = import_module("smolagents.models")
    return models.ChatMessage(role=models.MessageRole.USER, content=[{"type": "text", "text": text}])


def _finish(run: AgentRun, key: object, used: Any, model: Any) -> None:
    run.model_finished(
        key,
        getattr(used, "input_tokens", 0),
        getattr(used, "output_tokens", 0),
        model=str(getattr(model, "model_id", "")),
    )


def _root_of(error: BaseException) -> BaseException:
    """What smolagents wraps into errors of its own."""
    return error.__cause__ or error
