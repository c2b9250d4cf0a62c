"""Google ADK, watched.

    runner = InMemoryRunner(agent=agent, plugins=[watch("coder-7")])

A plugin is told of runs, agents, models and tools, and of what goes wrong in them. A run that ends with a long-running call
(a confirmation, for example) waits for a human; the next run of its session goes on with the same life.
"""

from __future__ import annotations

from importlib import import_module
from types import new_class
from typing import Any, Final

from lifesigns.integrations.runs import AgentRun, Bystander, Cost, Watch, attached, harmless, harmless_hook

KNOWN: Final = "2.13.0"


def watch(agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """A plugin for a `Runner`: its runs are watched, nudges reach the model, and a stop ends the run."""
    watched = Watch("google_adk", agent_id, cost=cost, **options)
    return attached("google-adk", KNOWN, lambda: _plugin(watched), otherwise=Bystander)


def _plugin(watched: Watch) -> Any:
    base = import_module("google.adk.plugins.base_plugin").BasePlugin
    plugin = new_class("LifesignsPlugin", (ToldRun, base))(name="lifesigns")
    plugin.watched = watched
    return plugin


class ToldRun:
    """The callbacks of a plugin, as reports. ADK calls its methods with names, and goes on if they return None."""

    watched: Watch

    def __init__(self, name: str) -> None:
        super().__init__(name=name)  # type: ignore[call-arg]
        self._waiting: dict[Any, Any] = {}
        """Runs that wait for a human, by their session."""
        self._keys: dict[Any, Any] = {}

    # --- runs -------------------------------------------------------------------------------------------------------------

    @harmless_hook
    async def before_run_callback(self, *, invocation_context: Any) -> None:
        self._begin(invocation_context)

    @harmless_hook
    async def after_run_callback(self, *, invocation_context: Any) -> None:
        self._over(invocation_context, None)

    @harmless_hook
    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        self._over(invocation_context, error)

    @harmless_hook
    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        self._seen(invocation_context, event)

    @harmless_hook
    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        run = self._run(callback_context)
        if run is not None:
            run.hands_over(agent.name)

    @harmless
    def _begin(self, context: Any) -> None:
        key = self._waiting.pop(context.session.id, None)
        run = self.watched.find(key)
        if run is not None:
            run.is_answered()
        else:
            key = context.invocation_id
            self.watched.begin(key)
        self._keys[context.invocation_id] = key

    @harmless
    def _seen(self, context: Any, event: Any) -> None:
        """A call that others have to answer leaves the run without an answer."""
        run = self.watched.find(self._keys.get(context.invocation_id))
        if run is not None and event.long_running_tool_ids and not run.is_stopping:
            self._waiting[context.session.id] = self._keys[context.invocation_id]
            run.asks(_question(event))

    @harmless
    def _over(self, context: Any, error: BaseException | None) -> None:
        key = self._keys.pop(context.invocation_id, None)
        if error is not None or self._waiting.get(context.session.id) != key:
            self._waiting.pop(context.session.id, None)
            self.watched.end(key, _root_of(error))

    def _run(self, context: Any) -> AgentRun | None:
        return self.watched.find(self._keys.get(context.invocation_id))

    # --- models -----------------------------------------------------------------------------------------------------------

    @harmless_hook
    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        run = self._run(callback_context)
        if run is None:
            return
        run.end_if_told()
        self._tell(run, llm_request)
        run.model_started(callback_context.agent_name)

    @harmless_hook
    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        run = self._run(callback_context)
        if run is not None and not llm_response.partial:
            used = llm_response.usage_metadata
            run.model_finished(
                callback_context.agent_name,
                getattr(used, "prompt_token_count", 0),
                getattr(used, "candidates_token_count", 0),
                model=getattr(llm_response, "model_version", None) or "",
            )

    @harmless_hook
    async def on_model_error_callback(
        self, *, callback_context: Any, llm_request: Any, error: Exception
    ) -> None:
        run = self._run(callback_context)
        if run is not None:
            run.model_failed(callback_context.agent_name, error)

    @harmless
    def _tell(self, run: AgentRun, request: Any) -> None:
        note = run.note()
        if note is not None:
            types = import_module("google.genai.types")
            request.contents.append(types.Content(role="user", parts=[types.Part(text=note)]))

    # --- tools ------------------------------------------------------------------------------------------------------------

    @harmless_hook
    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        run = self._run(tool_context)
        if run is not None:
            run.tool_started(tool_context.function_call_id, tool.name, tool_args)

    @harmless_hook
    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        run = self._run(tool_context)
        if run is None:
            return
        if isinstance(result, dict) and result.get("error"):
            run.tool_failed(tool_context.function_call_id, str(result["error"]))
        else:
            run.tool_finished(tool_context.function_call_id, result)

    @harmless_hook
    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception
    ) -> None:
        run = self._run(tool_context)
        if run is not None:
            run.tool_failed(tool_context.function_call_id, error)


def _question(event: Any) -> str:
    calls = [call for call in event.get_function_calls() if call.id in event.long_running_tool_ids]
    for call in calls:
        asked = (call.args or {}).get("originalFunctionCall") or {}
        if asked:
            return f"May it call {asked.get('name')}?"
    return f"It waits for {', '.join(call.name for call in calls) or 'an answer'}."


def _root_of(error: BaseException | None) -> BaseException | None:
    """ADK wraps what a plugin raises."""
    cause = None if error is None else error.__cause__
    return error if cause is None else cause
