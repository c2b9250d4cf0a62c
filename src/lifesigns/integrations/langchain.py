"""LangChain and LangGraph, watched.

    agent = create_agent(model, tools, middleware=[watch("coder-7")])
    graph.invoke(state, config={"callbacks": [callback("coder-7")]})

Callbacks tell everything: runs, models, tools, interrupts. They cannot change what the model reads, so nudges need the
middleware of `create_agent`, which also says which of the runs in this process are the agent's.

A graph that is interrupted waits for a human, and the same thread resumes it: that is one life.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

from lifesigns.integrations.runs import AgentRun, Bystander, Cost, Watch, attached, extended, harmless

KNOWN: Final = "1.4.7"
INTERRUPT: Final = "GraphInterrupt"
"""What LangGraph raises inside of a graph that waits for a human; its name, because LangChain alone does not have it."""
SEEN_MAX: Final = 100_000
"""Chains whose parents we remember while they run."""


def watch(agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """Middleware for `create_agent`: its runs are watched, nudges reach its model, and a stop ends it."""
    watched = Watch("langchain", agent_id, cost=cost, **options)
    return attached("langchain", KNOWN, lambda: _middleware(watched), otherwise=_idle_middleware)


def _middleware(watched: Watch) -> Any:
    callbacks = _callbacks(watched, claims=True)
    var: ContextVar[Any] = ContextVar("lifesigns", default=callbacks)
    import_module("langchain_core.tracers.context").register_configure_hook(var, inheritable=True)
    middleware = extended(RunMiddleware, import_module("langchain.agents.middleware").AgentMiddleware)
    middleware.callbacks = callbacks
    return middleware


def callback(agent_id: str | None = None, *, cost: Cost | None = None, **options: Any) -> Any:
    """A callback handler for any chain or graph: its runs are watched and a stop ends them. No nudges: callbacks change nothing."""
    watched = Watch("langchain", agent_id, cost=cost, **options)
    return attached("langchain-core", KNOWN, lambda: _callbacks(watched, claims=False), otherwise=Bystander)


def _idle_middleware() -> Any:
    """Does nothing. Made by LangChain itself: it compares what a middleware has with a class that we could not find."""
    try:
        return import_module("langchain.agents.middleware").before_agent(lambda state, runtime: None)
    except (AttributeError, ImportError):
        return Bystander()


def _callbacks(watch: Watch, *, claims: bool) -> Any:
    handler = extended(RunCallbacks, import_module("langchain_core.callbacks").BaseCallbackHandler)
    handler.watched, handler.claims = watch, claims
    return handler


class RunCallbacks:
    """LangChain's callbacks as reports of runs. Its methods are called with what LangChain has, by name."""

    run_inline = True
    raise_error = True
    """So that `RunStopped` can end a run; no other error leaves this class."""
    watched: Watch
    claims: bool
    """Whether a run is ours only when the middleware has said so."""

    def __init__(self) -> None:
        super().__init__()
        self._parents: dict[Any, Any] = {}
        self._threads: dict[Any, Any] = {}
        """The life of a thread that waits for a human, by its thread id."""
        self._keys: dict[Any, Any] = {}
        """The key of a chain's run, where that is ours."""

    # --- runs -----------------------------------------------------------------------------------------------------

    @harmless
    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, **more: Any) -> None:
        parent = more.get("parent_run_id")
        if len(self._parents) >= SEEN_MAX:
            self._parents.clear()
        self._parents[run_id] = parent
        thread = (more.get("metadata") or {}).get("thread_id")
        if thread is not None:
            self._parents[run_id, "thread"] = thread
        if parent is None and (not self.claims or thread in self._threads):
            self._begin(run_id)

    @harmless
    def on_chain_end(self, outputs: Any, *, run_id: Any, **more: Any) -> None:
        self._over(run_id, None)

    @harmless
    def on_chain_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
        if type(error).__name__ == INTERRUPT:
            self._interrupted(self._parents.get(run_id), error)
            self._over(run_id, None)
        else:
            self._over(run_id, error)

    def _interrupted(self, graph: Any, error: BaseException) -> None:
        """The graph waits for a human. Its life stays open until its thread is resumed."""
        run = self.watched.find(self._keys.get(graph))
        thread = self._parents.get((graph, "thread"))
        if run is not None:
            if thread is not None:
                self._threads[thread] = self._keys[graph]
            asked = error.args[0] if error.args and isinstance(error.args[0], tuple | list) else error.args
            run.asks("; ".join(_question(one) for one in asked) or "it was interrupted")

    def claim(self, node_run: Any) -> AgentRun | None:
        """The run of the graph whose node this is."""
        graph = self._parents.get(node_run)
        if graph is None:
            return None
        return self.watched.find(self._keys.get(graph)) or self._begin(graph)

    def _begin(self, run_id: Any) -> AgentRun | None:
        """A run begins, or the one goes on that waited for a human."""
        thread = self._parents.get((run_id, "thread"))
        waited = self._threads.pop(thread, None) if thread is not None else None
        key = run_id if waited is None else waited
        self._keys[run_id] = key
        if waited is not None and (run := self.watched.find(waited)) is not None:
            run.is_answered()
            return run
        return self.watched.begin(key, parent=self._run_of(self._parents.get(run_id)))

    def _over(self, run_id: Any, error: BaseException | None) -> None:
        self._parents.pop(run_id, None)
        thread = self._parents.pop((run_id, "thread"), None)
        key = self._keys.pop(run_id, None)
        if key is not None and not (thread is not None and self._threads.get(thread) == key):
            self.watched.end(key, error)

    def _run_of(self, run_id: Any) -> AgentRun | None:
        """The nearest run around this one that is ours."""
        for _ in range(100):
            if run_id is None:
                return None
            if run_id in self._keys:
                return self.watched.find(self._keys[run_id])
            run_id = self._parents.get(run_id)
        return None

    # --- models -----------------------------------------------------------------------------------------------------

    @harmless
    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **more: Any) -> None:
        self._model_started(run_id, more.get("parent_run_id"))

    @harmless
    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: Any, **more: Any) -> None:
        self._model_started(run_id, more.get("parent_run_id"))

    def _model_started(self, run_id: Any, parent: Any) -> None:
        run = self._run_of(parent)
        if run is not None:
            run.end_if_told()
            self._parents[run_id] = parent
            run.model_started(run_id)

    @harmless
    def on_llm_end(self, response: Any, *, run_id: Any, **more: Any) -> None:
        run = self._run_of(self._parents.pop(run_id, None))
        if run is not None:
            message = getattr(response.generations[0][0], "message", None)
            used = getattr(message, "usage_metadata", None) or {}
            model = (getattr(message, "response_metadata", None) or {}).get("model_name", "")
            run.model_finished(run_id, used.get("input_tokens", 0), used.get("output_tokens", 0), model=model)

    @harmless
    def on_llm_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
        run = self._run_of(self._parents.pop(run_id, None))
        if run is not None:
            run.model_failed(run_id, error)

    # --- tools --------------------------------------------------------------------------------------------------------

    @harmless
    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Any, **more: Any) -> None:
        parent = more.get("parent_run_id")
        run = self._run_of(parent)
        if run is not None:
            self._parents[run_id] = parent
            inputs = more.get("inputs")
            run.tool_started(
                run_id, (serialized or {}).get("name", "tool"), input_str if inputs is None else inputs
            )

    @harmless
    def on_tool_end(self, output: Any, *, run_id: Any, **more: Any) -> None:
        run = self._run_of(self._parents.pop(run_id, None))
        if run is None:
            return
        content = getattr(output, "content", output)
        if getattr(output, "status", "") == "error":
            run.tool_failed(run_id, content)
        else:
            run.tool_finished(run_id, content)

    @harmless
    def on_tool_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
        run = self._run_of(self._parents.pop(run_id, None))
        if run is None:
            return
        if type(error).__name__ == INTERRUPT:
            run.tool_finished(run_id)  # It asks a human, and is called again with the answer.
        else:
            run.tool_failed(run_id, error)


class RunMiddleware:
    """Says which graph is the agent's, hands nudges to its model, ends its run when the hub wants that."""

    callbacks: RunCallbacks

    def before_agent(self, state: Any, runtime: Any) -> None:
        self._run()

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        self._run()

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self._noted(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._noted(request))

    def _noted(self, request: Any) -> Any:
        run = self._run()
        if run is None:
            return request
        run.end_if_told()
        return self._with_note(request, run) or request

    @harmless
    def _with_note(self, request: Any, run: AgentRun) -> Any:
        note = run.note()
        if note is None:
            return None
        message = import_module("langchain_core.messages").HumanMessage(note)
        return request.override(messages=[*request.messages, message])

    @harmless
    def _run(self) -> AgentRun | None:
        config = import_module("langgraph.config").get_config()
        return self.callbacks.claim(config["callbacks"].parent_run_id)


def _question(interrupt: Any) -> str:
    """What a human is asked: as the graph said it, or which calls a person shall approve."""
    value = getattr(interrupt, "value", interrupt)
    if isinstance(value, dict):
        wishes = value.get("action_requests")
        if isinstance(wishes, list):
            return "; ".join(str(one.get("description") or one.get("name")) for one in wishes)
        return str(value.get("question") or value.get("message") or value)
    return str(value)
