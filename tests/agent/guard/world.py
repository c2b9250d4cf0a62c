"""What the tests of the guard share: a clock that is set by hand, and something that is down when we say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lifesigns.agent.guard.breakers import Registry
from lifesigns.agent.guard.guard import Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Down(Exception):
    """What a service that is down raises."""


class Service:
    """Counts its calls; raises `Down` while it is down."""

    def __init__(self, down: bool = False) -> None:
        self.down = down
        self.calls = 0

    def __call__(self, answer: Any = None) -> Any:
        self.calls += 1
        if self.down:
            raise Down
        return answer

    async def acall(self, answer: Any = None) -> Any:
        return self(answer)


def breaker(clock: Callable[[], float] | None = None, **settings: Any) -> Breaker:
    """A breaker of its own, in no registry."""
    settings.setdefault("registry", None)
    return Breaker("api", clock=clock or Clock(), **settings)


def fail(one: Breaker, times: int = 3) -> None:
    for _ in range(times):
        try:
            with one:
                raise Down
        except Down:
            pass


def opened(clock: Clock | None = None, **settings: Any) -> tuple[Breaker, Clock]:
    """A breaker that just opened, and its clock; 60 s later it is half-open."""
    clock = clock or Clock()
    one = breaker(clock, **settings)
    fail(one, one.policy.failure_threshold)
    assert one.state == "open"
    return one, clock


def half_open(**settings: Any) -> tuple[Breaker, Clock]:
    one, clock = opened(**settings)
    clock.now += 60.0
    return one, clock


def registry_with(*names: str) -> Registry:
    registry = Registry()
    for name in names:
        Breaker(name, registry=registry)
    return registry
