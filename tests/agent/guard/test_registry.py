"""One name, one breaker; who watches is told everything, in order, outside of any lock."""

from __future__ import annotations

import threading
from contextvars import copy_context
from typing import Any

import pytest

from lifesigns.agent.guard.breakers import BREAKERS, NAMES_MAX, Registry
from lifesigns.agent.guard.guard import Breaker, guard
from lifesigns.core.breaker import Turn
from lifesigns.core.policy import BreakerPolicy
from lifesigns.errors import BreakerOpen, PolicyError, UsageError
from tests.agent.guard.world import Clock, Service, fail, registry_with


def test_the_same_name_is_the_same_breaker() -> None:
    registry = Registry()
    one = guard("api", registry=registry, failure_threshold=5)
    assert guard("api", registry=registry) is one
    assert guard("api", registry=registry, failure_threshold=5) is one
    assert guard("api", BreakerPolicy(failure_threshold=5), registry=registry) is one
    assert guard("other", registry=registry) is not one
    assert registry.get("api") is one
    assert registry.get("nobody") is None
    assert [each.name for each in registry.all()] == ["api", "other"]


def test_many_who_ask_for_a_new_name_at_once_get_the_same_breaker() -> None:
    registry = Registry()
    start = threading.Barrier(50)
    got: list[Breaker] = []

    def ask() -> None:
        start.wait(30)
        got.append(guard("api", registry=registry, failure_threshold=5))

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(got) == 50
    assert {id(each) for each in got} == {id(registry.get("api"))}


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (
            {"failure_threshold": 3},
            "exists with failure_threshold=5; it cannot also have failure_threshold=3",
        ),
        ({"policy": BreakerPolicy()}, "failure_threshold=5.*failure_threshold=3"),
        ({"ignore": KeyError}, "ignore=.*ignore="),
        ({"clock": Clock()}, "clock=.*clock="),
    ],
)
def test_two_different_wishes_for_one_name_are_an_error_that_names_both(wish: Any, message: str) -> None:
    registry = Registry()
    guard("api", registry=registry, failure_threshold=5)
    with pytest.raises(UsageError, match=message):
        guard("api", registry=registry, **wish)


def test_a_second_breaker_of_a_name_is_an_error() -> None:
    registry = registry_with("api")
    with pytest.raises(UsageError, match="'api' exists already"):
        Breaker("api", registry=registry)
    Breaker("api", registry=None)


def test_the_names_are_bounded() -> None:
    registry = registry_with(*(f"request-{n}" for n in range(NAMES_MAX)))
    with pytest.raises(UsageError, match="'one-more' would be one more than 1000"):
        guard("one-more", registry=registry)
    guard("request-7", registry=registry)


@pytest.mark.parametrize(
    ("name", "threshold", "wait"), [("tool_execution", 5, 30), ("checkpoint_write", 3, 120), ("x", 3, 60)]
)
def test_some_names_have_defaults_of_their_own(name: str, threshold: int, wait: float) -> None:
    policy = Breaker(name, registry=None, half_open_requests=2).policy
    assert (policy.failure_threshold, policy.recovery_timeout, policy.half_open_requests) == (
        threshold,
        wait,
        2,
    )


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"failure_treshold": 3},
            PolicyError,
            "breaker.failure_treshold: is unknown; known are .*failure_threshold",
        ),
        ({"failure_threshold": 0}, PolicyError, "breaker.failure_threshold"),
        ({"recovery_timeout": "60"}, PolicyError, "breaker.recovery_timeout: needs a number, not '60'"),
        ({"ignore": "KeyError"}, UsageError, "ignore: 'KeyError' is neither"),
        ({"ignore": (KeyError, int)}, UsageError, "ignore: <class 'int'> is not a type of exception"),
        ({"ignore": dict}, UsageError, "is not a type of exception"),
        ({"name": ""}, UsageError, "1 to 128 characters, not 0"),
        ({"name": "x" * 129}, UsageError, "not 129"),
        ({"name": Service()}, UsageError, "a breaker needs a name, like guard"),
    ],
)
def test_what_cannot_work_is_refused_with_its_name(
    settings: Any, error: type[Exception], message: str
) -> None:
    registry = Registry()
    with pytest.raises(error, match=message):
        guard(**{"name": "api", "registry": registry, **settings})
    assert registry.all() == []


def test_a_registry_needs_room() -> None:
    with pytest.raises(UsageError, match="limit: 0"):
        Registry(0)


def test_without_a_word_it_is_the_registry_of_the_process() -> None:
    one = guard("tests.agent.guard.test_registry")
    assert one in BREAKERS.all()
    assert Breaker("tests.agent.guard", registry=None) not in BREAKERS.all()


def test_the_statuses_are_those_of_all() -> None:
    registry = registry_with("a", "b")
    guard("b", registry=registry).open()
    assert [(each.name, each.state) for each in registry.statuses()] == [("a", "closed"), ("b", "open")]


# --- watching ------------------------------------------------------------------------------------------


def watched(**settings: Any) -> tuple[Breaker, Registry, Clock, list[tuple[str, str]]]:
    registry, clock = Registry(), Clock()
    told: list[tuple[str, str]] = []
    registry.watch(lambda name, turn: told.append((name, str(turn.now))))
    return Breaker("api", clock=clock, registry=registry, **settings), registry, clock, told


def test_every_turn_is_told_once_and_in_order() -> None:
    one, _, clock, told = watched()
    fail(one)
    assert told == [("api", "open")]
    clock.now += 60.0
    assert told == [("api", "open")], "what time changes is told when somebody looks"
    one.call(Service())
    one.disable()
    assert [state for _, state in told] == ["open", "half_open", "closed", "disabled"]


def test_looking_tells_what_time_changed() -> None:
    one, registry, clock, told = watched()
    one.open()
    clock.now += 60.0
    registry.statuses()
    registry.statuses()
    assert told[1:] == [("api", "half_open")]


def test_a_refusal_tells_too() -> None:
    """A probe is lost, and nobody looks but those who call."""
    one, _, clock, told = watched()
    one.open()
    clock.now += 60.0
    copy_context().run(one.step_in)
    clock.now += 60.0
    with pytest.raises(BreakerOpen):
        one.call(Service())
    assert [state for _, state in told] == ["open", "half_open", "open"]


def test_who_stops_watching_is_told_no_more() -> None:
    one, registry, _, told = watched()
    more: list[object] = []

    def listen(*what: object) -> None:
        more.append(what)

    first, second = registry.watch(listen), registry.watch(listen)
    one.open()
    first()
    first()
    one.close()
    second()
    one.open()
    assert (len(more), len(told)) == (3, 3)


def test_a_listener_that_raises_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    one, registry, _, _ = watched()
    after: list[object] = []
    registry.watch(lambda *_: 1 / 0)
    registry.watch(lambda *what: after.append(what))
    fail(one)
    assert len(after) == 1
    assert [record.name for record in caplog.records] == ["lifesigns.guard"]


def test_a_listener_may_use_the_breaker_and_hears_of_it_afterwards() -> None:
    registry = Registry()
    one = Breaker("api", registry=registry)
    told: list[str] = []

    def listen(_: str, turn: Turn) -> None:
        if turn.now == "open":
            one.force_open()
        told.append(str(turn.now))

    registry.watch(listen)
    one.open()
    assert told == ["open", "forced_open"]


def test_a_listener_is_called_outside_of_any_lock() -> None:
    one, registry, _, _ = watched()
    free: list[bool] = []

    def look() -> None:
        free.append(one.state == "open" and len(registry.statuses()) == 1)

    def listen(*_: object) -> None:
        other = threading.Thread(target=look)
        other.start()
        other.join(10)

    registry.watch(listen)
    one.open()
    assert free == [True]


def test_a_turn_made_while_another_is_told_is_told_after_it() -> None:
    registry = Registry()
    one = Breaker("api", registry=registry)
    told: list[tuple[str, str]] = []
    telling, made = threading.Event(), threading.Event()

    def listen(_: str, turn: Turn) -> None:
        if turn.now == "open":
            telling.set()
            assert made.wait(30)
        told.append((str(turn.now), threading.current_thread().name))

    registry.watch(listen)
    first = threading.Thread(target=one.open, name="first")
    first.start()
    assert telling.wait(30)
    one.force_open()
    made.set()
    first.join(30)
    assert told == [("open", "first"), ("forced_open", "first")]
