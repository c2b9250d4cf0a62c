"""The breakers of this process: one per name, to be listed, reported and watched.

`BREAKERS` is the registry that `Breaker` and `guard` use unless they are told otherwise, and that a sender
reports with its beats. Tests make their own: `Registry()`.

Laws:
- One name, one breaker. At most `limit` names: a name made from a request's data must not eat the memory.
- Listeners are told every turn of a breaker in the order the turns happened, outside of any lock, by a thread
  that changed it. What time alone changes (open to half-open) is told when somebody looks.
- A listener that raises is logged (`lifesigns.guard`) and disturbs nobody.
- A fork is harmless: whatever held a lock when the process forked does not exist in the child.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

from lifesigns.core.breaker import BreakerStatus, Turn
from lifesigns.core.policy import Policy
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.agent.guard.guard import Breaker

LOG: Final = logging.getLogger("lifesigns.guard")

NAMES_MAX: Final = 1000
"""Breakers are named by what they guard. A thousand different things in one process are names out of data."""

Listener = Callable[[str, Turn], object]
"""Called with the breaker's name and what changed; it should be quick, later turns wait for it."""


class Registry:
    """Breakers by name. `defaults` gives the policy for those that are made without one of their own."""

    def __init__(self, limit: int = NAMES_MAX, defaults: Callable[[], Policy] = Policy) -> None:
        if limit < 1:
            raise UsageError(f"limit: {limit} is too small for a registry, it must be at least 1")
        self.limit = limit
        self.defaults = defaults
        self._breakers: dict[str, Breaker] = {}
        self._listeners: dict[object, Listener] = {}
        self.after_fork()
        survives_fork(self)

    def after_fork(self) -> None:
        """A lock nobody holds. Reentrant, because a signal handler or a finalizer may come back here."""
        self.lock = threading.RLock()

    def get(self, name: str) -> Breaker | None:
        """The breaker of this name, or None."""
        return self._breakers.get(name)

    def all(self) -> list[Breaker]:
        """Every breaker, in the order they were made."""
        with self.lock:
            return list(self._breakers.values())

    def statuses(self) -> list[BreakerStatus]:
        """How every breaker is now, in the order they were made."""
        return [breaker.status() for breaker in self.all()]

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(name, turn)` for every change of a breaker from now on, until what is returned is called."""
        key = object()  # the listener itself would not do: it may be registered twice
        with self.lock:
            self._listeners[key] = listener

        def unwatch() -> None:
            with self.lock:
                self._listeners.pop(key, None)

        return unwatch

    def add(self, breaker: Breaker) -> None:
        """Take in a new breaker; refused if its name is taken or the registry is full."""
        with self.lock:
            if breaker.name in self._breakers:
                raise UsageError(
                    f"a breaker {breaker.name!r} exists already: share it with lifesigns.guard({breaker.name!r}), "
                    "or give this one another name or registry=None"
                )
            if len(self._breakers) >= self.limit:
                raise UsageError(
                    f"breaker {breaker.name!r} would be one more than {self.limit}: name breakers after what they "
                    "guard, not after a request, or give short-lived ones registry=None"
                )
            self._breakers[breaker.name] = breaker

    def tell(self, name: str, turn: Turn) -> None:
        """Tell all listeners. Whoever calls this holds no lock."""
        with self.lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            try:
                listener(name, turn)
            except Exception:  # another's code: what it raises disturbs nobody
                LOG.exception("a listener failed at breaker %r turning %s", name, turn.now)


# --- forks ---------------------------------------------------------------------------------------------


class Forked(Protocol):
    """Something with a lock, that must be told when it finds itself in a new process."""

    def after_fork(self) -> None: ...


_FORKED: Final[WeakSet[Forked]] = WeakSet()


def survives_fork(thing: Forked) -> None:
    """Call `thing.after_fork()` in the child of every fork, as long as there is the thing."""
    _FORKED.add(thing)


def _after_fork() -> None:
    for thing in list(_FORKED):
        thing.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=_after_fork)

BREAKERS: Final = Registry()
"""The breakers of this process."""
