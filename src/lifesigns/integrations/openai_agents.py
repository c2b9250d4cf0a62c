"""OpenAI Agents SDK, watched.

    await Runner.run(agent, "...", hooks=watch("coder-7"))

Run hooks tell of agents, models, tools and handoffs, but not that a run failed. So the SDK's default runner is replaced by
one that does the same, and knows when a run that has our hooks begins and how it ends.

A run that stops for an approval waits for a human; the run that takes its state up goes on with the same life.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

from lifesigns.integrations.runs import AgentRun, Cost, Watch, attached, extended, harmless, harmless_hook

KNOWN: Final = "0.24.0"
FAILED: Final = "An error occurred while running the tool"
"""How the SDK begins what a model reads of a tool that failed; hooks see nothing else of it."""

_key: ContextVar[object] = ContextVar("lifesigns_openai_run", default=None)
"""Which run this is: hooks run in tasks of their own, which inherit it."""


def watch(agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """Hooks for `Runner.run`: its runs are watched, nudges reach the model, and a stop ends the run."""
    watched = Watch("openai_agents", agent_id, cost=cost, **options)
    return attached("openai-agents", KNOWN, lambda: _hooks(watched), otherwise=lambda: None)


def _hooks(watched: Watch) -> Any:
    hooks = extended(ToldRun, import_module("agents").RunHooks)
    hooks.watched = watched
    _watch_ends()
    return hooks


def _watch_ends() -> None:
    """Once for each process: have the SDK's runner say how runs end."""
    running = import_module("agents.run")
    runner = running.get_default_agent_runner()
    if not isinstance(runner, RunnerWithEnds):
        running.set_default_agent_runner(extended(RunnerWithEnds, running.AgentRunner))


class RunnerWithEnds:
    """The SDK's runner; of runs with our hooks it says when they begin and end."""

    async def run(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002 -- the SDK's name
        hooks = kwargs.get("hooks")
        run = super().run  # type: ignore[misc]
        if not isinstance(hooks, ToldRun):
            return await run(starting_agent, input, **kwargs)
        key = hooks.begin(input)
        token = _key.set(key)
        try:
            result = await run(starting_agent, input, **kwargs)
        except BaseException as error:
            hooks.over(key, error)
            raise
        finally:
            _key.reset(token)
        hooks.over(key, None, result)
        return result

    def run_streamed(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002 -- the SDK's name
        hooks = kwargs.get("hooks")
        run = super().run_streamed  # type: ignore[misc]
        if not isinstance(hooks, ToldRun):
            return run(starting_agent, input, **kwargs)
        key = hooks.begin(input)
        token = _key.set(key)
        try:
            result = run(starting_agent, input, **kwargs)
        except BaseException as error:
            hooks.over(key, error)
            raise
        finally:
            _key.reset(token)
        hooks.end_with(key, result)
        return result


class ToldRun:
    """Run hooks as reports. Its methods are called by the SDK."""

    watched: Watch

    def __init__(self) -> None:
        self._waiting: dict[object, object] = {}
        """Runs that wait for a human, by the input they began with."""

    # --- begin and end: called by our runner -------------------------------------------------------------------------

    @harmless
    def begin(self, given: Any) -> object:
        """A run begins, or one goes on that waited: then its input is a state."""
        original = getattr(given, "_original_input", None)
        key = self._waiting.pop(_name(original), None) if original is not None else None
        run = self.watched.find(key)
        if run is not None:
            run.is_answered()
            return key
        key = object()
        self.watched.begin(key)
        return key

    @harmless
    def over(self, key: object, error: BaseException | None, result: Any = None) -> None:
        run = self.watched.find(key)
        asked = getattr(result, "interruptions", None)
        if run is None or not asked or run.is_stopping:
            self.watched.end(key, error)
            return
        self._waiting[_name(result.input)] = key
        names = ", ".join(str(getattr(one, "name", None) or "a call") for one in asked)
        run.asks(f"May it call {names}?")

    @harmless
    def end_with(self, key: object, result: Any) -> None:
        """A streamed run ends with the task that runs it."""

        def over(task: Any) -> None:
            cancelled = task.cancelled()
            self.over(key, None if cancelled else task.exception(), None if cancelled else result)

        result.run_loop_task.add_done_callback(over)

    @harmless
    def _run(self) -> AgentRun | None:
        return self.watched.find(_key.get())

    # --- the SDK's hooks ------------------------------------------------------------------------------------------------

    @harmless_hook
    async def on_agent_start(self, context: Any, agent: Any) -> None:
        run = self._run()
        if run is not None:
            run.hands_over(agent.name)

    @harmless_hook
    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        run = self._run()
        if run is None:
            return
        run.end_if_told()
        note = run.note()
        if note is not None:
            input_items.append({"role": "user", "content": note})
        run.model_started("model")

    @harmless_hook
    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        run = self._run()
        if run is not None:
            used = response.usage
            run.model_finished("model", used.input_tokens, used.output_tokens, model=_model_of(agent))

    @harmless_hook
    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        run = self._run()
        if run is not None:
            run.tool_started(_call_of(context), tool.name, getattr(context, "tool_arguments", None))

    @harmless_hook
    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        run = self._run()
        if run is None:
            return
        if isinstance(result, str) and result.startswith(FAILED):
            run.tool_failed(_call_of(context), result)
        else:
            run.tool_finished(_call_of(context), result)


def _call_of(context: Any) -> object:
    return getattr(context, "tool_call_id", None) or id(context)


def _model_of(agent: Any) -> str:
    model = agent.model
    return str(model if isinstance(model, str) else getattr(model, "model", ""))


def _name(given: Any) -> object:
    """The input of a run, as its state repeats it."""
    return given if isinstance(given, str) else repr(given)
