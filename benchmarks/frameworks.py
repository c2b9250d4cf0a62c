"""What our adapters add to a tool call of an agent framework: their hooks are called as the framework calls them, with a real
sender and a hub over HTTP behind. What the framework itself spends on calling a hook is not ours and not in it.

CPU time of the agent's thread, the median over single calls; what the relay's thread sends meanwhile is in `sender`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from statistics import median
from types import SimpleNamespace
from typing import Any, Final

from benchmarks.sender import _hub

CALLS: Final = 3000
ARGS: Final = {"path": "src/lifesigns/core/engine.py", "pattern": "def hear"}
RESULT: Final = "src/lifesigns/core/engine.py:120: def hear(self, signal, now):"

Call = Callable[[], None]


def call_us(_: int = 0) -> dict[str, float]:
    """Microseconds a tool call takes longer, by framework."""
    with _hub() as url:
        return {name: _median_us(prepared(url)) for name, prepared in WAYS.items()}


def _median_us(call: Call) -> float:
    took = []
    for _ in range(CALLS):
        began = time.thread_time_ns()
        call()
        took.append(time.thread_time_ns() - began)
    return median(took) / 1000


def _finish(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run one that never waits, without a loop around it."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")


async def _returned(*_: object) -> Any:
    return SimpleNamespace(is_error=False, content=RESULT)


def _langchain(url: str) -> Call:
    from lifesigns.integrations.langchain import RunCallbacks
    from lifesigns.integrations.runs import Watch

    callbacks = RunCallbacks()
    callbacks.watched, callbacks.claims = Watch("langchain", "bench", hub=url), False
    callbacks.on_chain_start({}, {}, run_id="graph", parent_run_id=None)
    output = SimpleNamespace(content=RESULT, status="success")

    def call() -> None:
        callbacks.on_chain_start({}, {}, run_id="node", parent_run_id="graph")
        callbacks.on_tool_start({"name": "grep"}, "", run_id="t", parent_run_id="node", inputs=ARGS)
        callbacks.on_tool_end(output, run_id="t")
        callbacks.on_chain_end({}, run_id="node")

    return call


def _openai_agents(url: str) -> Call:
    from lifesigns.integrations import openai_agents as adapter
    from lifesigns.integrations.runs import Watch

    hooks = adapter.ToldRun()
    hooks.watched = Watch("openai_agents", "bench", hub=url)
    adapter._key.set(hooks.begin("go"))
    context = SimpleNamespace(tool_call_id="c", tool_arguments='{"path": "engine.py"}')
    tool = SimpleNamespace(name="grep")

    def call() -> None:
        _finish(hooks.on_tool_start(context, None, tool))
        _finish(hooks.on_tool_end(context, None, tool, RESULT))

    return call


def _pydantic_ai(url: str) -> Call:
    from lifesigns.integrations.pydantic_ai import ToldRun
    from lifesigns.integrations.runs import Watch

    told = ToldRun(Watch("pydantic_ai", "bench", hub=url))
    ctx = SimpleNamespace(run_id="r", conversation_id="c")
    told._begin(ctx)
    asked = SimpleNamespace(tool_call_id="c", tool_name="grep")

    async def handler(args: object) -> str:
        return RESULT

    return lambda: _finish(told.tool_execute(ctx, call=asked, tool_def=None, args=ARGS, handler=handler))


def _celery(url: str) -> Call:
    from lifesigns.integrations.celery import ToldWorker

    worker, task = ToldWorker("bench", {"hub": url}), SimpleNamespace(name="grep")

    def call() -> None:
        worker.on_prerun("id", task, ["engine.py"], {})
        worker.on_postrun("id")

    return call


def _claude_agent_sdk(url: str) -> Call:
    from lifesigns.integrations.claude_agent_sdk import ToldSessions
    from lifesigns.integrations.runs import Watch

    told = ToldSessions(Watch("claude_agent_sdk", "bench", hub=url))
    common = {"session_id": "s", "tool_name": "Grep", "tool_input": ARGS, "tool_use_id": "t"}
    before = {**common, "hook_event_name": "PreToolUse"}
    after = {**common, "hook_event_name": "PostToolUse", "tool_response": RESULT}

    def call() -> None:
        _finish(told.hook(before, "t", None))
        _finish(told.hook(after, "t", None))

    return call


def _google_adk(url: str) -> Call:
    from lifesigns.integrations.google_adk import ToldRun
    from lifesigns.integrations.runs import Watch

    class Plugin(ToldRun, SimpleNamespace):
        pass

    plugin = Plugin("lifesigns")
    plugin.watched = Watch("google_adk", "bench", hub=url)
    plugin._begin(SimpleNamespace(invocation_id="i", session=SimpleNamespace(id="s")))
    context = SimpleNamespace(invocation_id="i", function_call_id="c")
    tool, result = SimpleNamespace(name="grep"), {"result": RESULT}

    def call() -> None:
        _finish(plugin.before_tool_callback(tool=tool, tool_args=ARGS, tool_context=context))
        _finish(plugin.after_tool_callback(tool=tool, tool_args=ARGS, tool_context=context, result=result))

    return call


def _crewai(url: str) -> Call:
    from lifesigns.integrations import crewai as adapter
    from lifesigns.integrations.runs import Watch

    adapter._current.set(Watch("crewai", "bench", hub=url).begin(1))
    agent = SimpleNamespace(role="coder")
    context = SimpleNamespace(crew=None, agent=agent, tool_name="grep", tool_input=ARGS, tool_result=RESULT)

    def call() -> None:
        adapter._before_tool(context)
        adapter._after_tool(context)

    return call


def _llama_index(url: str) -> Call:
    from lifesigns.integrations import llama_index as adapter
    from lifesigns.integrations.runs import Watch

    class Plain:
        async def _call_tool(self, ctx: Any, tool: Any, tool_input: dict[str, Any]) -> Any:
            return await _returned()

    class Agent(adapter.ToldAgent, Plain):
        pass

    adapter._current.set(Watch("llama_index", "bench", hub=url).begin(1))
    agent = Agent()
    tool = SimpleNamespace(metadata=SimpleNamespace(get_name=lambda: "grep"))
    return lambda: _finish(agent._call_tool(None, tool, ARGS))


def _smolagents(url: str) -> Call:
    from lifesigns.integrations.runs import Watch
    from lifesigns.integrations.smolagents import ToldAgent

    plain = SimpleNamespace(run=None, execute_tool_call=lambda name, args: RESULT)
    watched = Watch("smolagents", "bench", hub=url)
    told = ToldAgent(plain, watched)
    told._current = watched.begin(1)
    return lambda: told.execute_tool_call("grep", ARGS) and None


def _autogen(url: str) -> Call:
    from lifesigns.integrations import autogen as adapter
    from lifesigns.integrations.runs import Watch

    run = Watch("autogen", "bench", hub=url).begin(1)
    assert run is not None

    class ToolCallRequestEvent:
        content = (SimpleNamespace(id="c", name="grep", arguments='{"path": "engine.py"}'),)

    class ToolCallExecutionEvent:
        content = (SimpleNamespace(call_id="c", is_error=False, content=RESULT),)

    asked, done = ToolCallRequestEvent(), ToolCallExecutionEvent()

    def call() -> None:
        adapter._tell(run, asked)
        adapter._tell(run, done)

    return call


WAYS: Final[dict[str, Callable[[str], Call]]] = {
    "LangChain": _langchain,
    "OpenAI Agents": _openai_agents,
    "Pydantic AI": _pydantic_ai,
    "Celery": _celery,
    "Claude Agent SDK": _claude_agent_sdk,
    "Google ADK": _google_adk,
    "CrewAI": _crewai,
    "LlamaIndex": _llama_index,
    "smolagents": _smolagents,
    "AutoGen": _autogen,
}
