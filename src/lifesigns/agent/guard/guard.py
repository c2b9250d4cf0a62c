"""Guard: a breaker around a call, in threads and on event loops.

    @lifesigns.guard("search-api", failure_threshold=5)
    async def search(query): ...

The machine is `core/breaker.py`; here are its clock, its lock and the call. `wrapping.py` puts it around a function.

Laws:
- The guard holds no lock while the guarded call runs. A closed breaker without rates takes none at all: it reads one
  attribute before the call and writes one after it, as the core allows.
- An exception of the call passes through untouched. An `Exception` is a failure unless it is ignored; anything else
  (`CancelledError`, `GeneratorExit`, `KeyboardInterrupt`, `SystemExit`) is a cancellation: the permit goes back and
  nothing counts. A returned result is a success unless `failure_if` says otherwise.
- A guarded call inside a probe of the same breaker is part of that probe. Otherwise a recursive function would refuse
  itself, and a breaker with one probe would never close again.
- A breaker's own refusal never counts as a failure of what it guards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import CoroutineType
from typing import Any, Final, ParamSpec, Self, TypeVar

from lifesigns.agent.guard.breakers import BREAKERS, LOG, Registry, survives_fork
from lifesigns.agent.guard.settings import (
    Ignore,
    changed,
    checked_ignore,
    checked_name,
    differences,
    policy_for,
)
from lifesigns.agent.guard.wrapping import F, wrapped
from lifesigns.core import breaker as core
from lifesigns.core.breaker import BreakerStatus, Permit
from lifesigns.core.policy import BreakerPolicy
from lifesigns.core.signals import BreakerState
from lifesigns.errors import BreakerOpen, UsageError

P = ParamSpec("P")
R = TypeVar("R")

Entry = tuple["Breaker", Permit, float, "Entry | None"]
"""A running guarded call: its breaker, its permit, its start, and the call around it."""

_running: ContextVar[Entry | None] = ContextVar("lifesigns_guarded", default=None)
"""The guarded calls this thread or task is inside of. A task inherits those of the task that started it."""

_PART_OF_A_PROBE: Final = Permit(-1)
"""It belongs to no generation, so the call's outcome does not count; the probe around it does."""


class Breaker:
    """Stops calls to something that is down. Decorator, context manager (also `async`), or `call` and `acall`.

    `policy` or single values of it (`failure_threshold=5`, `recovery_timeout=30` ...); without, the defaults for
    this name. `ignore`: exceptions that say nothing about what is guarded, as types or a predicate.
    `failure_if`: a predicate that finds a failure in what a call returned. A predicate that raises is logged and
    taken for False. `registry=None`: neither listed nor reported.
    """

    def __init__(
        self,
        name: str,
        policy: BreakerPolicy | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        ignore: Ignore = (),
        failure_if: Callable[[Any], bool] | None = None,
        registry: Registry | None = BREAKERS,
        **overrides: float | None,
    ) -> None:
        self.name = checked_name(name)
        self.policy = changed(policy or policy_for(name, (registry or BREAKERS).defaults()), overrides)
        self.ignore = checked_ignore(ignore)
        self.failure_if = failure_if
        self.clock = clock
        self._registry = registry
        self._machine = core.Breaker(name, self.policy)
        self.counts_rows_only = (
            self.policy.failure_rate is None and self.policy.slow_rate is None and failure_if is None
        )
        """Whether a success needs neither clock nor lock, because the policy has no rates."""
        self._telling = False
        self.after_fork()
        survives_fork(self)
        if registry is not None:
            registry.add(self)

    def after_fork(self) -> None:
        """A lock nobody holds. Reentrant, because a signal handler or a finalizer may come back here."""
        self._lock = threading.RLock()
        self._telling = False

    def __repr__(self) -> str:
        return f"<Breaker {self.name!r}>"

    # --- round a call ----------------------------------------------------------------------------------

    def __call__(self, function: F) -> F:
        """Decorate a function, a coroutine function, a generator or an async generator."""
        return wrapped(self, function)

    def call(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it, or raise `BreakerOpen`."""
        result = self.run(function, args, kwargs)
        if isinstance(result, CoroutineType):
            result.close()
            raise UsageError(
                f"{function!r} is async: await breaker.acall(...), call() cannot see how it ends"
            )
        return result

    async def acall(self, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call and await it, or raise `BreakerOpen`."""
        entry = self.step_in()
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            self.step_out(entry, error)
            raise
        self.step_out(entry, None, result)
        return result

    def __enter__(self) -> Self:
        _running.set(
            (self, *self.begin(), _running.get())
        )  # a generator has no other place to keep its permit
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        entry = _running.get()
        while entry is not None and entry[0] is not self:
            entry = entry[3]
        if (
            entry is not None
        ):  # otherwise it was entered in another context, as async fixtures are, and nothing counts
            _running.set(_without(_running.get(), entry))
            self.end(entry[1], entry[2], error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)

    # --- by hand ---------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open as after failures; an open breaker begins its wait anew."""
        self._locked(self._machine.open)

    def close(self) -> None:
        """Close and count from zero. The next open wait keeps the length it had grown to."""
        self._locked(self._machine.close)

    def reset(self) -> None:
        """Close and forget everything, as if new."""
        self._locked(self._machine.reset)

    def force_open(self) -> None:
        """Refuse every call until a person says otherwise."""
        self._locked(self._machine.force_open)

    def disable(self) -> None:
        """Let every call through and count nothing."""
        self._locked(self._machine.disable)

    def observe_only(self) -> None:
        """Let every call through, but count how often the breaker would have opened (`status().trips`)."""
        self._locked(self._machine.observe_only)

    # --- to look at ------------------------------------------------------------------------------------

    @property
    def state(self) -> BreakerState:
        """The state that a call would meet now."""
        return self._locked(self._machine.state)

    def status(self) -> BreakerStatus:
        """The breaker as people see it. `until` is a time of the breaker's clock."""
        return self._locked(self._machine.status)

    @property
    def time_until_half_open(self) -> float | None:
        """Seconds until the breaker tries a call again: infinity if forced open, None if not open."""
        return self._locked(self._machine.time_until_half_open)

    def is_failure(self, outcome: object) -> bool:
        """Whether this exception or result of a call counts as a failure."""
        if isinstance(outcome, BaseException):
            return isinstance(outcome, Exception) and not self._says_nothing(outcome)
        return self.failure_if is not None and _ask(self.failure_if, outcome)

    # --- the careful way through a call (wrapping.py knows a quicker one while it is closed) ---------------

    def run(self, function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """Call it and count the outcome."""
        entry = self.step_in()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            self.step_out(entry, error)
            raise
        self.step_out(entry, None, result)
        return result

    def step_in(self) -> Entry:
        """A permit for one call. A running probe is remembered, for the calls inside it."""
        permit, began_at = self.begin()
        entry = (self, permit, began_at, _running.get())
        if permit.probe:
            _running.set(entry)
        return entry

    def step_out(self, entry: Entry, error: BaseException | None, result: object = None) -> None:
        """The call of this entry is over."""
        if entry[1].probe:
            _running.set(_without(_running.get(), entry))
        self.end(entry[1], entry[2], error, result)

    def begin(self) -> tuple[Permit, float]:
        """A permit for one call, and the time; raises `BreakerOpen`."""
        permit = self._machine._pass  # the read without a lock that the core allows
        if permit is not None:
            return permit, 0.0 if self.counts_rows_only else self.clock()
        now = self.clock()
        if self._inside_a_probe():
            return _PART_OF_A_PROBE, now
        try:
            with self._lock:
                return self._machine.permit(now), now
        finally:
            self._tell()

    def end(
        self, permit: Permit, began_at: float, error: BaseException | None, result: object = None
    ) -> None:
        """The outcome of the call: an error, or if that is None, the result."""
        if error is None and self.counts_rows_only and permit is self._machine._pass:
            self._machine._failures = 0  # the write without a lock that the core allows
            return
        now = self.clock()
        if error is not None and not self.is_failure(error):
            if not permit.probe:
                return
            with self._lock:
                self._machine.release(permit, now)
        else:
            failed = error is not None or self.is_failure(result)
            count = self._machine.failure if failed else self._machine.success
            with self._lock:
                count(permit, now, now - began_at)
        self._tell()

    def _inside_a_probe(self) -> bool:
        entry = _running.get()
        while entry is not None:
            if entry[0] is self and entry[1] in self._machine._probes:
                return True
            entry = entry[3]
        return False

    # --- the rest --------------------------------------------------------------------------------------

    def _says_nothing(self, error: Exception) -> bool:
        if isinstance(error, BreakerOpen) and error.name == self.name:
            return True
        ignore = self.ignore
        return isinstance(error, ignore) if isinstance(ignore, tuple) else _ask(ignore, error)

    def _locked(self, act: Callable[[float], R]) -> R:
        try:
            with self._lock:
                return act(self.clock())
        finally:
            self._tell()

    def _tell(self) -> None:
        """Tell the registry's listeners about changes, in order: one thread tells them, the others leave their turns
        to it."""
        while self._machine.turns and self._tell_one():
            pass

    def _tell_one(self) -> bool:
        mine = False
        try:
            with self._lock:
                if self._telling or not self._machine.turns:
                    return False
                mine = self._telling = (
                    True  # in this order: an interrupt between the two must not leave it True
                )
                turn = self._machine.turns.popleft()
            if self._registry is not None:
                self._registry.tell(self.name, turn)
            return True
        finally:
            if mine:
                self._telling = False


def guard(
    name: str,
    policy: BreakerPolicy | None = None,
    *,
    registry: Registry = BREAKERS,
    **settings: Any,
) -> Breaker:
    """The breaker of this name, created on first use: as a decorator, or `with lifesigns.guard("search-api"):`.

    `settings` are those of `Breaker`. Code that shares a breaker leaves them out or passes the same; different
    settings for one name are an error.
    """
    with registry.lock:
        breaker = registry.get(checked_name(name))
        if breaker is None:
            return Breaker(name, policy, registry=registry, **settings)
    if different := differences(breaker, policy, settings):
        raise UsageError(f"breaker {name!r} exists with {different[0]}; it cannot also have {different[1]}")
    return breaker


# --- small parts ---------------------------------------------------------------------------------------


def _ask(predicate: Callable[[Any], bool], outcome: object) -> bool:
    try:
        return bool(predicate(outcome))
    except Exception:  # noqa: BLE001 -- another's code: it must not come between a call and its outcome
        LOG.exception("a predicate failed at %s", type(outcome).__name__)
        return False


def _without(stack: Entry | None, entry: Entry) -> Entry | None:
    """The running calls without this one: nearly always the innermost, unless generators interleave."""
    if stack is None:
        return None
    if stack is entry or stack[:3] == entry[:3]:  # equal: copied by the last line, for another context
        return stack[3]
    return (*stack[:3], _without(stack[3], entry))
