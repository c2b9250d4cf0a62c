"""Runs: what every adapter of an agent framework needs. The adapters know their framework; this knows `Sender`.

    watch = Watch("langchain", "coder-7")
    run = watch.begin(run_id)
    run.tool_started(call_id, "grep", {"pattern": "x"})
    run.tool_finished(call_id, "3 matches")
    watch.end(run_id)

One run is one life of the agent (decision 0099): what one run does again is not held against the next. Runs at the same
time are agents of their own: `coder-7`, `coder-7/2`.

The law: no exception of ours reaches the agent, but `RunStopped`, which ends a run that the hub wants to end. No call waits.
"""

from __future__ import annotations

import atexit
import logging
import re
import threading
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from importlib import metadata
from types import new_class
from typing import Any, Final, ParamSpec, TypeVar

from lifesigns.agent.identity import checked_id
from lifesigns.agent.sender.calls import ModelCall, ToolCall
from lifesigns.agent.sender.shutdown import error_line
from lifesigns.assembly.senders import Sender
from lifesigns.errors import RunStopped

log: Final = logging.getLogger("lifesigns.integrations")

OPEN_MAX: Final = 1000
"""Open calls of one run, and open runs of one watch. More means that the framework does not tell of their ends: the oldest
are forgotten."""
LEAVING_MAX: Final = 1000
NOTE: Final = "Note from the monitor (lifesigns): "

Cost = Callable[[str, int, int], float]
"""Dollars for a model's name, its tokens in and its tokens out."""
P = ParamSpec("P")
T = TypeVar("T")


def harmless(method: Callable[P, T]) -> Callable[P, T | None]:
    """An error in it is logged, once for each kind, and the agent goes on. For hooks that are awaited: `harmless_hook`."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return method(*args, **kwargs)
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 -- ours, and the agent must not suffer from it
            _complain(method.__qualname__, error)
            return None

    return guarded


def harmless_hook(hook: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, Coroutine[Any, Any, None]]:
    """The same for a hook that the framework awaits."""

    @wraps(hook)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            await hook(*args, **kwargs)
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 -- ours, and the agent must not suffer from it
            _complain(hook.__qualname__, error)

    return guarded


_complained: set[tuple[str, type]] = set()


def _complain(where: str, error: Exception) -> None:
    kind = (where, type(error))
    if kind not in _complained:
        _complained.add(kind)
        log.error("%s failed, and the agent goes on; this is logged once", where, exc_info=error)


def attached(package: str, known: str, attach: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """What `attach` makes; with a framework that has no place for it any more, what `otherwise` makes, so that the agent runs
    unwatched. Warns of that, and of a version that was never tried: `known` is the one we ran, and counts up to its minor
    version if that is below 1.0, else its major."""
    found = _installed(package)
    try:
        made = attach()
    except Exception as error:  # noqa: BLE001 -- whatever has changed there, the agent must not suffer from it
        log.warning(
            "%s %s cannot be watched by lifesigns, which knows %s: %s. The agent runs unwatched",
            package,
            found,
            known,
            error_line(error),
        )
        return otherwise()
    if _series(found) != _series(known):
        log.warning(
            "%s %s was never tried with lifesigns, which knows %s: the agent runs, but not all of it may be seen",
            package,
            found,
            known,
        )
    return made


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(of unknown version)"


def _series(version: str) -> tuple[str, ...]:
    major, minor, *_ = [*re.findall(r"\d+", version), "0", "0"]
    return (major, minor) if major == "0" else (major,)


class Bystander:
    """Stands where a framework wants an object of ours, if its class for that is gone. Whatever hook of it is called, it does nothing."""

    name = "lifesigns"

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, None]]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


async def _nothing(*_: object, **__: object) -> None:
    return None


def extended(ours: type[T], base: Any) -> T:
    """An object of our class that is also one of the framework's, which is imported only when it is used."""
    return new_class(f"Lifesigns{ours.__name__}", (ours, base))()  # type: ignore[no-any-return]


class RunLife(Sender):
    """The sender of one run. A stop is a word to it: the framework ends the run at its next step."""

    def begin(self) -> None:
        self._start("word")

    @property
    def is_gone(self) -> bool:
        """Whether its good-bye has arrived, or was given up."""
        return self._session.gone.done()

    def end(self, error: BaseException | None, *, parked: bool) -> None:
        """The run is over, by this error if there is one. `parked`: a limit of the model's provider ended it, which is no crash."""
        if isinstance(error, RunStopped) and self.stopping:
            error = None
        if parked and error is not None:
            self.leave(error_line(error))
        else:
            self.leave(self._reason(error), crashed=self._crashed(error))


class AgentRun:
    """One run as its framework tells it. Calls are known by the framework's own ids."""

    def __init__(self, life: RunLife, cost: Cost | None) -> None:
        self.life = life
        self._cost = cost
        self._tools: dict[object, ToolCall] = {}
        self._models: dict[object, ModelCall] = {}
        self._limited = False
        self.is_waiting = False

    # --- what it does -------------------------------------------------------------------------------------------

    @harmless
    def tool_started(self, call_id: object, name: str, args: object) -> None:
        _bound(self._tools)
        self._tools[call_id] = self.life.tool(name, args).__enter__()

    @harmless
    def tool_finished(self, call_id: object, result: object = None) -> None:
        call = self._tools.pop(call_id, None)
        if call is not None:
            if result is not None:
                call.result(result)
            call.__exit__(None, None, None)

    @harmless
    def tool_failed(self, call_id: object, error: object) -> None:
        """By an exception, or by a text that says what went wrong."""
        call = self._tools.pop(call_id, None)
        if call is None:
            return
        if isinstance(error, BaseException):
            call.__exit__(type(error), error, None)
        else:
            call.failed(error)
            call.__exit__(None, None, None)

    @harmless
    def model_started(self, call_id: object) -> None:
        if call_id in self._models:
            self.model_finished(call_id)  # One that nobody told the end of.
        _bound(self._models)
        self._models[call_id] = self.life.model().__enter__()

    def ask_model(self, call_id: object, messages: Any, message: Callable[[str], Any]) -> Any:
        """A model is about to read these messages: begins its call, and returns them with what the hub wants it to read, which
        `message` makes a message of the framework of. Raises `RunStopped`."""
        self.end_if_told()
        noted = self._noted(messages, message)
        self.model_started(call_id)
        return messages if noted is None else noted

    @harmless
    def _noted(self, messages: Any, message: Callable[[str], Any]) -> Any:
        if self.is_waiting:
            self.is_answered()
        note = self.note()
        return None if note is None else [*messages, message(note)]

    @harmless
    def model_finished(
        self,
        call_id: object,
        tokens_in: int | None = 0,
        tokens_out: int | None = 0,
        *,
        model: str = "",
        cost: float | None = None,
    ) -> None:
        call = self._models.pop(call_id, None)
        if call is None:
            return
        used = tokens_in or 0, tokens_out or 0
        try:
            if cost is None and self._cost is not None:
                cost = self._cost(model, *used)
            call.tokens(*used, cost=cost or 0.0)
        finally:
            call.__exit__(None, None, None)
        if self._limited:
            self._limited = False
            self.life.doing(None)

    @harmless
    def model_failed(self, call_id: object, error: object) -> None:
        """A rate limit or an overloaded model parks the agent until a model call succeeds."""
        call = self._models.pop(call_id, None)
        limit = _limit_in(error)
        if call is not None:
            if isinstance(error, BaseException) and limit is None:
                call.__exit__(type(error), error, None)
            else:
                call.failed(error, limit)
                call.__exit__(None, None, None)
        if limit is not None:
            self._limited = True
            self.life.doing("rate_limited", until=_retry_at(error), note=told_line(error))

    # --- people, orders -------------------------------------------------------------------------------------------

    @harmless
    def asks(self, question: object) -> None:
        """It waits for a human who has to answer this."""
        self.is_waiting = True
        self.life.doing("waiting_for_human", note=told_line(question))

    @harmless
    def is_answered(self) -> None:
        self.is_waiting = False
        self.life.doing(None)

    @harmless
    def hands_over(self, name: str) -> None:
        """Another agent of the framework goes on within this run."""
        self.life.phase(name)

    @harmless
    def note(self) -> str | None:
        """What the hub wants the model to read now, or None. Ask at a turn's boundary; asking takes it."""
        texts = []
        while (nudge := self.life.next_nudge(0.0)) is not None:
            texts.append(NOTE + nudge.text)
        return "\n".join(texts) or None

    @property
    def is_stopping(self) -> bool:
        return self.life.stopping.is_set()

    def end_if_told(self) -> None:
        """Raise `RunStopped` if the hub wants this run to end: call it where the framework lets an exception end a run."""
        if self.life.stopping.is_set():
            raise self.stopped()

    def stopped(self) -> RunStopped:
        return RunStopped(self.life.stopping.reason)

    @harmless
    def ended(self, error: BaseException | None = None) -> None:
        for call_id in list(self._models):
            if error is None or isinstance(error, RunStopped):
                self.model_finished(call_id)
            else:
                self.model_failed(call_id, error)
        for call_id in list(self._tools):
            self.tool_finished(call_id)  # Nobody told us how it ended.
        _leaving.append(self.life)
        self.life.end(error, parked=self._limited)


class Watch:
    """Who is watched, and its open runs by the framework's own ids. `options` are those of `Sender`."""

    def __init__(
        self, framework: str, agent_id: str | None = None, *, cost: Cost | None = None, **options: Any
    ) -> None:
        self.framework = framework
        self._cost = cost
        self._options = options
        self._next: RunLife | None = RunLife(agent_id, **options)  # A mistake in the options raises here.
        self.agent_id = self._next.agent_id
        self._runs: dict[object, AgentRun] = {}

    @harmless
    def begin(self, key: object, *, parent: AgentRun | None = None) -> AgentRun:
        """A run begins. A key that is known is the same run."""
        known = self._runs.get(key)
        if known is not None:
            return known
        name = _take(self.agent_id)
        try:
            life = self._life(name)
            life.metadata(framework=self.framework, parent=None if parent is None else parent.life.agent_id)
            life.begin()
        except BaseException:
            _give_back(name)
            raise
        _bound(self._runs)
        run = self._runs[key] = AgentRun(life, self._cost)
        return run

    def find(self, key: object) -> AgentRun | None:
        return self._runs.get(key)

    @harmless
    def end(self, key: object, error: BaseException | None = None) -> None:
        run = self._runs.pop(key, None)
        if run is not None:
            run.ended(error)
            _give_back(run.life.agent_id)

    def _life(self, name: str) -> RunLife:
        first, self._next = self._next, None
        if first is not None and first.agent_id == name:
            return first
        return RunLife(name, **self._options)


# --- names: two runs at a time are two agents -------------------------------------------------------------------------

_names = threading.Lock()
_taken: set[str] = set()


def _take(agent_id: str) -> str:
    """The first free name: `coder-7`, `coder-7/2`, ..."""
    with _names:
        name, number = agent_id, 1
        while name in _taken:
            number += 1
            name = f"{agent_id}/{number}"
        _taken.add(checked_id(name))
        return name


def _give_back(name: str) -> None:
    with _names:
        _taken.discard(name)


# --- the end of the process -------------------------------------------------------------------------------------------


class _GoodByes:
    """Lives whose good-bye may still be on its way: a run does not wait for it, the end of the process does."""

    def __init__(self) -> None:
        self._lives: list[RunLife] = []

    def append(self, life: RunLife) -> None:
        self._lives = [one for one in self._lives[-LEAVING_MAX:] if not one.is_gone]
        self._lives.append(life)

    def wait(self) -> None:
        for life in self._lives:
            life.wait_until_gone()


_leaving: Final = _GoodByes()
atexit.register(_leaving.wait)


# --- parts ------------------------------------------------------------------------------------------------------------

_LIMITS: Final = re.compile(
    r"\b(429|529|503)\b|rate.?limit|too many requests|overloaded|resource.?exhausted", re.I
)


def _limit_in(error: object) -> str | None:
    """The kind of error, if the model's provider refuses to work for now; it passes by itself."""
    for holder in (error, getattr(error, "response", None), getattr(error, "__cause__", None)):
        for name in ("status_code", "status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and 400 <= status <= 599:
                return str(status) if status == 429 or status >= 500 else None
    found = _LIMITS.search(f"{type(error).__name__}: {error}"[:2000])
    return None if found is None else found[1] or "rate_limit"


def _retry_at(error: object) -> float | None:
    """When the provider says to try again, by the wall clock."""
    try:
        wait = float(error.response.headers["retry-after"])  # type: ignore[attr-defined]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return time.time() + wait if 0 <= wait < 86_400 else None


def told_line(value: object) -> str:
    """A question or an error in one line."""
    text = error_line(value) if isinstance(value, BaseException) else str(value)
    return " ".join(text.split())[:500]


def _bound(calls: dict[object, Any]) -> None:
    if len(calls) >= OPEN_MAX:
        calls.pop(next(iter(calls)))
