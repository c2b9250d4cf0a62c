"""The breakers of this process: one per name, listed, reported and watched.

`BREAKERS` is the default registry of `Breaker` and `guard`, and the one that a sender reports with its beats. Tests
make their own: `Registry()`.

Laws:
- One name, one breaker. At most `limit` names: names made from request data must not fill the memory.
- A thread that changes a breaker tells the listeners every turn, in order and outside of any lock. The next look
  tells a turn that time alone causes (open to half-open).
- An error in a listener is logged (`lifesigns.guard`) and disturbs nothing else.
- A fork is harmless: the child makes its locks anew, since no thread that held one exists there.
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
"""A breaker has the name of what it guards. A thousand names in one process were made from data."""

Listener = Callable[[str, Turn], object]
"""Called with the breaker's name and the turn; it should be quick, because later turns wait for it."""


class Registry:
    """Breakers by name. `defaults` gives the policy for breakers made without one."""

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
        """A new, free lock. Reentrant, because a signal handler or a finalizer may come back here."""
        self.lock = threading.RLock()

    def get(self, name: str) -> Breaker | None:
        """The breaker of this name, or None."""
        return self._breakers.get(name)

    def all(self) -> list[Breaker]:
        """Every breaker, in the order of creation."""
        with self.lock:
            return list(self._breakers.values())

    def statuses(self) -> list[BreakerStatus]:
        """The status of every breaker, in the order of creation."""
        return [breaker.status() for breaker in self.all()]

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(name, turn)` for every change of a breaker from now on; call the returned function to end that."""
        key = object()  # the listener itself would not do: it may be registered twice
        with self.lock:
            self._listeners[key] = listener

        def unwatch() -> None:
            with self.lock:
                self._listeners.pop(key, None)

        return unwatch

    def add(self, breaker: Breaker) -> None:
        """Add a new breaker; raises if its name is taken or the registry is full."""
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
        """Tell all listeners. The caller holds no lock."""
        with self.lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            try:
                listener(name, turn)
            except Exception:  # foreign code: its errors disturb nothing else
                LOG.exception("a listener failed at breaker %r turning %s", name, turn.now)


# --- forks ---------------------------------------------------------------------------------------------


class Forked(Protocol):
    """Something with a lock, which must know when it is in a new process."""

    def after_fork(self) -> None: ...


_FORKED: Final[WeakSet[Forked]] = WeakSet()


def survives_fork(thing: Forked) -> None:
    """Call `thing.after_fork()` in the child of every fork, as long as the thing exists."""
    _FORKED.add(thing)


def _after_fork() -> None:
    for thing in list(_FORKED):
        thing.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=_after_fork)

BREAKERS: Final = Registry()
"""The breakers of this process."""
