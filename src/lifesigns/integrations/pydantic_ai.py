"""Pydantic AI, watched.

    agent = Agent(model, tools=tools, capabilities=[watch("coder-7")])

Its hooks wrap runs, model requests and tool calls, so everything has a beginning and an end. A run that ends with
requests for approval waits for a human; the run with the answers, which has the same conversation, goes on with its life.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from lifesigns.integrations.runs import AgentRun, Cost, Watch, attached, harmless

KNOWN: Final = "2.66.0"
DEFERS: Final = {"ApprovalRequired", "CallDeferred"}
"""What a tool raises that has not failed: somebody else has to act first."""


def watch(agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """A capability for `Agent`: its runs are watched, nudges reach the model, and a stop ends the run."""
    told = ToldRun(Watch("pydantic_ai", agent_id, cost=cost, **options))
    return attached("pydantic-ai-slim", KNOWN, lambda: _hooks(told), otherwise=lambda: _no_capability)


def _no_capability(ctx: Any) -> None:
    """Pydantic AI asks such a function for the capability of each run."""
    return


def _hooks(told: ToldRun) -> Any:
    hooks = import_module("pydantic_ai.capabilities").Hooks()
    hooks.on.run(told.run)
    hooks.on.model_request(told.model_request)
    hooks.on.tool_execute(told.tool_execute)
    return hooks


class ToldRun:
    """The hooks, as reports. Its methods are called by Pydantic AI, and do what they wrap."""

    def __init__(self, watched: Watch) -> None:
        self._watched = watched
        self._waiting: dict[Any, Any] = {}
        """Runs that wait for a human, by their conversation."""
        self._keys: dict[Any, Any] = {}

    async def run(self, ctx: Any, *, handler: Any) -> Any:
        self._begin(ctx)
        try:
            result = await handler()
        except BaseException as error:
            self._over(ctx, error, None)
            raise
        self._over(ctx, None, result)
        return result

    async def model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        run = self._run(ctx)
        if run is None:
            return await handler(request_context)
        run.end_if_told()
        self._tell(run, request_context)
        call = object()
        run.model_started(call)
        try:
            response = await handler(request_context)
        except BaseException as error:
            run.model_failed(call, error)
            raise
        self._finished(run, call, response)
        return response

    async def tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        run = self._run(ctx)
        if run is None:
            return await handler(args)
        key = object()
        run.tool_started(key, getattr(call, "tool_name", "tool"), args)
        try:
            result = await handler(args)
        except BaseException as error:
            if type(error).__name__ in DEFERS:
                run.tool_finished(key)
            else:
                run.tool_failed(key, error)
            raise
        run.tool_finished(key, result)
        return result

    # --- parts --------------------------------------------------------------------------------------------------------

    @harmless
    def _begin(self, ctx: Any) -> None:
        key = self._waiting.pop(ctx.conversation_id, None)
        run = self._watched.find(key)
        if run is not None:
            self._keys[ctx.run_id] = key
            run.is_answered()
        else:
            self._keys[ctx.run_id] = ctx.run_id
            self._watched.begin(ctx.run_id)

    @harmless
    def _over(self, ctx: Any, error: BaseException | None, result: Any) -> None:
        key = self._keys.pop(ctx.run_id, None)
        run = self._watched.find(key)
        output: Any = getattr(result, "output", None)
        if run is not None and type(output).__name__ == "DeferredToolRequests" and not run.is_stopping:
            self._waiting[ctx.conversation_id] = key
            asked = [*output.approvals, *output.calls]
            run.asks(f"May it call {', '.join(one.tool_name for one in asked)}?")
        else:
            self._watched.end(key, error)

    @harmless
    def _run(self, ctx: Any) -> AgentRun | None:
        return self._watched.find(self._keys.get(ctx.run_id))

    @harmless
    def _tell(self, run: AgentRun, request_context: Any) -> None:
        note = run.note()
        if note is not None:
            messages = import_module("pydantic_ai.messages")
            request = messages.ModelRequest(parts=[messages.UserPromptPart(note)])
            request_context.messages = [*request_context.messages, request]

    @harmless
    def _finished(self, run: AgentRun, call: object, response: Any) -> None:
        used = response.usage
        run.model_finished(
            call,
            used.input_tokens,
            used.output_tokens,
            model=response.model_name or "",
            cost=_priced(response),
        )


def _priced(response: Any) -> float | None:
    """Pydantic AI knows many models' prices; of others it raises."""
    try:
        return float(response.cost().total_price)
    except Exception:  # noqa: BLE001 -- not its business to know every model, nor ours why
        return None
