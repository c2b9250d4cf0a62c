"""CrewAI, watched.

    crew = watch(Crew(agents=agents, tasks=tasks), "crew-1")

CrewAI's event bus delivers out of order, from threads of its own, so the sequence of calls comes from its hooks, which are called
in the agent's own thread; and the crew gets a class that is its own with the run around. Tokens are known at the end of a run.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from types import new_class
from typing import Any, Final

from lifesigns.integrations.runs import AgentRun, Cost, Watch, attached, harmless

KNOWN: Final = "1.15.30"
FAILED: Final = "Error executing tool"
"""How CrewAI begins what a model reads of a tool that failed."""
QUESTION: Final = "Is the answer of its task good enough?"
_current: ContextVar[AgentRun | None] = ContextVar("lifesigns_crewai_run", default=None)
_watches: dict[int, Watch] = {}
_runs: dict[int, AgentRun] = {}
"""By the crew. Its tasks may run in threads that inherit no context."""
_hooked: list[object] = []


def watch(crew: Any, agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """The crew, watched: its runs, models, tools and agents; nudges reach the model, and a stop ends the run."""
    watched = Watch("crewai", agent_id, cost=cost, **options)
    attached("crewai", KNOWN, lambda: _attach(crew, watched), otherwise=lambda: None)
    return crew


def _attach(crew: Any, watched: Watch) -> None:
    if not _hooked:
        hooks = import_module("crewai.hooks")
        hooks.register_before_llm_call_hook(_before_model)
        hooks.register_after_llm_call_hook(_after_model)
        hooks.register_before_tool_call_hook(_before_tool)
        hooks.register_after_tool_call_hook(_after_tool)
        _hooked.append(hooks)
    kind = new_class(type(crew).__name__, (ToldCrew, type(crew)))
    _watches[id(crew)] = watched
    object.__setattr__(crew, "__class__", kind)


class ToldCrew:
    """A crew that says when a run begins and ends."""

    def kickoff(self, *args: Any, **kwargs: Any) -> Any:
        key, token = self._begin()
        try:
            result = super().kickoff(*args, **kwargs)  # type: ignore[misc]
        except BaseException as error:
            self._over(key, error, None)
            raise
        finally:
            _current.reset(token)
        self._over(key, None, result)
        return result

    async def akickoff(self, *args: Any, **kwargs: Any) -> Any:
        key, token = self._begin()
        try:
            result = await super().akickoff(*args, **kwargs)  # type: ignore[misc]
        except BaseException as error:
            self._over(key, error, None)
            raise
        finally:
            _current.reset(token)
        self._over(key, None, result)
        return result

    def _begin(self) -> tuple[object, Any]:
        key, watched = object(), _watches.get(id(self))
        run = None if watched is None else watched.begin(key)
        if run is not None:
            _runs[id(self)] = run
            _watch_questions(run)
        return key, _current.set(run)

    @harmless
    def _over(self, key: object, error: BaseException | None, result: Any) -> None:
        run = _runs.pop(id(self), None)
        if run is None:
            return
        used = getattr(result, "token_usage", None)
        if used is not None:
            run.life.tokens(used.prompt_tokens, used.completion_tokens)
        aborted = run.is_stopping and error is not None
        _watches[id(self)].end(key, run.stopped() if aborted else error)


@harmless
def _watch_questions(run: AgentRun) -> None:
    """Tasks with `human_input` ask their provider."""
    providers = import_module("crewai.core.providers.human_input")
    provider = providers.get_provider()
    inner = provider.inner if isinstance(provider, ToldProvider) else provider
    providers.set_provider(ToldProvider(inner, run))


class ToldProvider:
    """Asks a human as before, and says that it does. The model may be asked again before the human is content."""

    def __init__(self, inner: Any, run: AgentRun) -> None:
        self.inner, self._run = inner, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def handle_feedback(self, formatted_answer: Any, context: Any) -> Any:
        self._run.asks(QUESTION)
        try:
            return self.inner.handle_feedback(formatted_answer, context)
        finally:
            self._run.is_answered()

    async def handle_feedback_async(self, formatted_answer: Any, context: Any) -> Any:
        self._run.asks(QUESTION)
        try:
            return await self.inner.handle_feedback_async(formatted_answer, context)
        finally:
            self._run.is_answered()


@harmless
def _run(context: Any) -> AgentRun | None:
    return _current.get() or _runs.get(id(context.crew))


def _before_model(context: Any) -> None:
    run = _run(context)
    if run is None:
        return
    if run.is_stopping:  # The only exception that CrewAI lets through.
        raise import_module("crewai.hooks.dispatch").HookAborted(reason=str(run.stopped()))
    _tell(run, context)


@harmless
def _tell(run: AgentRun, context: Any) -> None:
    if run.is_waiting:
        run.is_answered()
    note = run.note()
    if note is not None:
        context.messages.append({"role": "user", "content": note})
    if context.agent is not None:
        run.hands_over(str(context.agent.role).strip())
    run.model_started(_thinker(context))


@harmless
def _after_model(context: Any) -> None:
    run = _run(context)
    if run is not None:
        run.model_finished(_thinker(context))


@harmless
def _before_tool(context: Any) -> None:
    run = _run(context)
    if run is not None:
        run.model_finished(_thinker(context))  # Of an answer that calls tools, no hook tells.
        run.tool_started(_call(context), context.tool_name, context.tool_input)


@harmless
def _after_tool(context: Any) -> None:
    run, result = _run(context), context.tool_result
    if run is None:
        return
    if isinstance(result, str) and result.startswith(FAILED):
        run.tool_failed(_call(context), result)
    else:
        run.tool_finished(_call(context), result)


def _thinker(context: Any) -> object:
    """One agent of a crew asks its model once at a time."""
    return id(context.agent)


def _call(context: Any) -> object:
    """The hooks get the same arguments before and after, and no id of the call."""
    return id(context.tool_input), context.tool_name
