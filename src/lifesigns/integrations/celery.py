"""Celery, watched.

    watch(app, "worker-1")

A worker is an agent: each process that runs tasks, so `worker-1/2` is the second process of a prefork pool. A task is a
call. A queue repeats itself, so equal tasks that succeed are work; the same task that fails in the same way again and again
is a loop. A declared retry is none.

A worker outlives its tasks, so here a life is that of the process, not of a run.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from typing import Any, Final

from lifesigns.agent.sender.calls import ToolCall
from lifesigns.agent.sender.evidence import of_arguments
from lifesigns.agent.sender.stopping import Stop
from lifesigns.integrations.runs import AgentRun, RunLife, Watch, attached, harmless

KNOWN: Final = "5.7.0"
RESTS_AFTER: Final = 30.0
"""Seconds after a failed task until a worker without another one is idle."""


def watch(app: Any, agent_id: str | None = None, **options: Any) -> Any:
    """Watch the workers of this app in this process, and in those that a pool forks from it. Returns the app."""
    worker = ToldWorker(agent_id, options)
    attached("celery", KNOWN, lambda: _connect(worker), otherwise=lambda: None)
    return app


def _connect(worker: ToldWorker) -> None:
    signals = import_module("celery.signals")
    for signal, handler in (
        (signals.worker_ready, worker.on_ready),
        (signals.worker_shutdown, worker.on_shutdown),
        (signals.worker_process_init, worker.on_process_init),
        (signals.worker_process_shutdown, worker.on_shutdown),
        (signals.task_prerun, worker.on_prerun),
        (signals.task_retry, worker.on_retry),
        (signals.task_failure, worker.on_failure),
        (signals.task_postrun, worker.on_postrun),
    ):
        signal.connect(handler, weak=False)


class TaskCall:
    """One task, as a call. Its arguments count only if it fails: equal tasks that succeed are no loop."""

    def __init__(self, life: RunLife, task_id: str, name: str, args: object) -> None:
        self._args = args
        self.has_failed = False
        self._call: ToolCall = life.tool(name, {"task": task_id}).__enter__()

    def failed(self, error: object, *, retried: bool = False) -> None:
        self.has_failed = True
        self._call._args = of_arguments(self._args)
        self._call._retry = retried
        self._call.failed(error, type(error).__name__)

    def over(self) -> None:
        self._call.__exit__(None, None, None)


class ToldWorker:
    """The signals of Celery, as reports of this process."""

    def __init__(self, agent_id: str | None, options: dict[str, Any]) -> None:
        self._options = {"on_stop": _stop, **options}
        self._watch = Watch("celery", agent_id, **self._options)
        self._calls: dict[str, TaskCall] = {}
        self._forks = False
        self._resting: threading.Timer | None = None

    @harmless
    def on_ready(self, sender: Any = None, **_: Any) -> None:
        """Of a pool that forks, the processes are the workers; otherwise this one is."""
        pool = getattr(sender, "pool", None)
        self._forks = "prefork" in type(pool).__module__
        if not self._forks:
            self._run()

    @harmless
    def on_process_init(self, **_: Any) -> None:
        """In a process of a pool. A pool without processes says this too."""
        process = import_module("billiard").current_process()
        if process.name == "MainProcess":
            return
        number = getattr(process, "index", os.getpid()) + 1
        self._watch = Watch("celery", f"{self._watch.agent_id}/{number}", **self._options)
        self._forks = False
        self._run()

    @harmless
    def on_shutdown(self, **_: Any) -> None:
        run = self._watch.find(os.getpid())
        if run is not None:
            self._watch.end(os.getpid())
            run.life.wait_until_gone()  # A process of a pool has no other end to wait at.

    @harmless
    def on_prerun(self, task_id: str, task: Any, args: Any = (), kwargs: Any = None, **_: Any) -> None:
        run = None if self._forks else self._run()
        if run is None:
            return
        if not self._calls:
            run.life.doing("working")
        self._calls[task_id] = TaskCall(run.life, task_id, task.name, [list(args), kwargs or {}])

    @harmless
    def on_retry(self, request: Any, reason: Any = None, **_: Any) -> None:
        call = self._calls.get(request.id)
        if call is not None:
            call.failed(getattr(reason, "exc", None) or reason or "retried", retried=True)

    @harmless
    def on_failure(self, task_id: str, exception: Any = None, **_: Any) -> None:
        call = self._calls.get(task_id)
        if call is not None:
            call.failed(exception)

    @harmless
    def on_postrun(self, task_id: str, **_: Any) -> None:
        call = self._calls.pop(task_id, None)
        if call is not None:
            call.over()
        if call is not None and call.has_failed:
            self._rest_later()
        else:
            self._rest()

    def _rest_later(self) -> None:
        """To be idle ends what was done in a row, and a task that fails may come again at once."""
        if self._resting is None or not self._resting.is_alive():
            self._resting = threading.Timer(RESTS_AFTER, self._rest)
            self._resting.daemon = True
            self._resting.start()

    @harmless
    def _rest(self) -> None:
        run = self._watch.find(os.getpid())
        if run is not None and not self._calls:
            run.life.doing("idle")

    def _run(self) -> AgentRun | None:
        return self._watch.begin(os.getpid())


def _stop(stop: Stop) -> None:
    """A warm shutdown: the worker finishes what it has begun. In a process of a prefork pool it has no effect."""
    state: Any = import_module("celery.worker.state")
    state.should_stop = 0
