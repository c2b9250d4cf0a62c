"""The laws of a guarded call, in all its forms: what is let through, what is counted, what passes through."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, aclosing, suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.agent.guard import guard as module
from lifesigns.agent.guard.guard import Breaker
from lifesigns.core.signals import BreakerState
from lifesigns.errors import BreakerOpen, UsageError
from tests.agent.guard.world import Clock, Down, Service, breaker, fail, half_open, opened

Form = Callable[[Breaker, Callable[[], Any]], Any]


def by_decorator(one: Breaker, function: Callable[[], Any]) -> Any:
    return one(function)()


def by_call(one: Breaker, function: Callable[[], Any]) -> Any:
    return one.call(function)


def by_block(one: Breaker, function: Callable[[], Any]) -> Any:
    with one:
        return function()


def by_stack(one: Breaker, function: Callable[[], Any]) -> Any:
    with ExitStack() as stack:
        stack.enter_context(one)
        return function()


def by_generator(one: Breaker, function: Callable[[], Any]) -> Any:
    @one
    def generator() -> Iterator[Any]:
        yield function()

    (item,) = generator()
    return item


def async_decorator(one: Breaker, function: Callable[[], Any]) -> Any:
    @one
    async def coroutine() -> Any:
        await asyncio.sleep(0)
        return function()

    return asyncio.run(coroutine())


def async_call(one: Breaker, function: Callable[[], Any]) -> Any:
    async def coroutine() -> Any:
        return function()

    return asyncio.run(one.acall(coroutine))


def async_block(one: Breaker, function: Callable[[], Any]) -> Any:
    async def coroutine() -> Any:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(one)
            return function()

    return asyncio.run(coroutine())


def async_generator(one: Breaker, function: Callable[[], Any]) -> Any:
    @one
    async def generator() -> AsyncIterator[Any]:
        yield function()

    async def coroutine() -> Any:
        (item,) = [item async for item in generator()]
        return item

    return asyncio.run(coroutine())


FORMS: list[Form] = [
    by_decorator,
    by_call,
    by_block,
    by_stack,
    by_generator,
    async_decorator,
    async_call,
    async_block,
    async_generator,
]
every_form = pytest.mark.parametrize("form", FORMS)
every_policy = pytest.mark.parametrize(
    "settings",
    [{}, {"failure_rate": 0.9}, {"failure_if": lambda result: result == "bad"}],
    ids=["plain", "with a rate", "judging results"],
)


@every_form
@every_policy
def test_it_opens_refuses_and_recovers(form: Form, settings: dict[str, Any]) -> None:
    clock, service = Clock(), Service(down=True)
    one = breaker(clock, **settings)
    for _ in range(3):
        with pytest.raises(Down):
            form(one, service)
    with pytest.raises(BreakerOpen) as refused:
        form(one, service)
    assert service.calls == 3, "an open breaker does not call"
    assert (refused.value.name, refused.value.until) == ("api", 1060.0)
    clock.now += 60.0
    service.down = False
    assert form(one, lambda: service("well")) == "well"
    assert one.state == "closed"
    assert module._running.get() is None, "nothing is left behind"


@every_form
def test_what_it_raises_is_the_very_same_exception(form: Form) -> None:
    error = Down("here")

    def function() -> None:
        raise error

    with pytest.raises(Down) as caught:
        form(breaker(), function)
    assert caught.value is error
    assert error.__cause__ is error.__context__ is None


def test_the_traceback_has_one_line_more_and_no_other() -> None:
    def function() -> None:
        raise Down

    with pytest.raises(Down) as caught:
        breaker()(function)()
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-2:] == [
        "quick",
        "function",
    ]


def test_a_refusal_says_how_long_to_wait() -> None:
    one, clock = opened()
    clock.now += 20.5
    with pytest.raises(BreakerOpen) as refused:
        one.call(Service())
    assert refused.value.retry_after == 39.5


# --- what counts ---------------------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("cancel", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit])
@every_policy
def test_a_cancelled_call_returns_its_permit_and_counts_for_nothing(
    form: Form, cancel: type[BaseException], settings: dict[str, Any]
) -> None:
    def cancelled() -> None:
        raise cancel

    one = breaker(**settings)
    fail(one, 2)
    with suppress(cancel, RuntimeError):  # an async generator may not end with GeneratorExit by itself
        form(one, cancelled)
    assert one.status().failures == 2
    one, _ = half_open(**settings)
    for _ in range(3):
        with suppress(cancel, RuntimeError):
            form(one, cancelled)
    assert one.state == "half_open"
    form(one, Service())
    assert one.state == "closed"


@every_form
def test_an_ignored_exception_is_neither_a_success_nor_a_failure(form: Form) -> None:
    def wrong() -> None:
        raise KeyError("a wrong question says nothing about who was asked")

    for ignore in (LookupError, (ValueError, KeyError), lambda error: isinstance(error, KeyError)):
        one = breaker(ignore=ignore)
        fail(one, 2)
        with pytest.raises(KeyError):
            form(one, wrong)
        assert one.status().failures == 2
        assert not one.is_failure(KeyError())
        assert one.is_failure(Down())


@pytest.mark.parametrize("form", [by_decorator, by_call, async_decorator, async_call])
def test_a_result_can_be_a_failure(form: Form) -> None:
    one = breaker(failure_if=lambda status: status >= 500)
    for status in (500, 503, 502):
        assert one.state == "closed"
        assert form(one, partial(int, status)) == status, "it is returned all the same"
    assert one.state == "open"
    one.reset()
    form(one, lambda: 500)
    form(one, lambda: 404)
    assert one.status().failures == 0


def test_a_predicate_that_raises_is_logged_and_taken_for_false(caplog: pytest.LogCaptureFixture) -> None:
    one = breaker(failure_if=lambda result: result.status, ignore=lambda error: error.status)
    assert one.call(lambda: "no status") == "no status"
    with pytest.raises(Down):
        one.call(Service(down=True))
    assert one.status().failures == 1
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("lifesigns.guard", "ERROR")
    ] * 2


def test_slow_calls_open_it() -> None:
    clock = Clock()
    one = breaker(clock, slow_rate=0.5, slow_call_after=2.0, min_calls=2)

    def takes(seconds: float) -> None:
        clock.now += seconds

    one.call(takes, 1.9)
    one(takes)(2.0)
    assert one.state == "open"


@given(st.lists(st.sampled_from(["ok", "fail", "ignore", "cancel", "later"]), max_size=60))
def test_all_forms_reach_the_same_state(story: list[str]) -> None:
    """However a call is guarded, the same outcomes at the same times lead to the same breaker."""

    def act(what: str) -> None:
        kinds: dict[str, type[BaseException]] = {
            "fail": Down,
            "ignore": KeyError,
            "cancel": KeyboardInterrupt,
        }
        if what in kinds:
            raise kinds[what]

    def live(form: Form) -> Any:
        clock = Clock()
        one = breaker(clock, ignore=KeyError)
        told = []
        for what in story:
            if what == "later":
                clock.now += 25.0
                continue
            try:
                form(one, partial(act, what))
                told.append("through")
            except (Down, KeyError, KeyboardInterrupt, BreakerOpen) as error:
                told.append(type(error).__name__)
        return told, one.status()

    lives = [live(form) for form in (by_decorator, by_call, by_block, by_generator)]
    assert all(each == lives[0] for each in lives)


# --- by hand and to look at ------------------------------------------------------------------------------


def test_it_can_be_turned_by_hand() -> None:
    one, service = breaker(), Service()
    turns: list[tuple[Callable[[], None], BreakerState, bool]] = [
        (one.open, BreakerState.OPEN, False),
        (one.close, BreakerState.CLOSED, True),
        (one.force_open, BreakerState.FORCED_OPEN, False),
        (one.disable, BreakerState.DISABLED, True),
        (one.observe_only, BreakerState.OBSERVING, True),
        (one.reset, BreakerState.CLOSED, True),
    ]
    for act, state, lets_through in turns:
        act()
        assert one.state is state
        before = service.calls
        with suppress(BreakerOpen):
            one(service)()
        assert (service.calls > before) is lets_through


def test_it_says_when_it_will_try_again() -> None:
    one, clock = opened()
    clock.now += 10
    assert one.time_until_half_open == 50.0
    assert repr(one) == "<Breaker 'api'>"
    one.force_open()
    assert one.time_until_half_open == float("inf")
    one.close()
    assert one.time_until_half_open is None


# --- kinds of functions ------------------------------------------------------------------------------------


class Shop:
    one = breaker()

    @one
    def method(self, x: int, *, y: str = "a") -> str:
        """What it does."""
        return f"{type(self).__name__}{x}{y}"

    @one
    async def coroutine(self, x: int) -> int:
        return x

    @staticmethod
    @one
    def static(x: int) -> int:
        return x

    @classmethod
    @one
    def of_class(cls, x: int) -> str:
        return f"{cls.__name__}{x}"

    @one
    @staticmethod
    def static_below(x: int) -> int:
        return x

    @one
    @classmethod
    def of_class_below(cls, x: int) -> str:
        return f"{cls.__name__}{x}"


async def test_methods_of_all_kinds_stay_what_they_are() -> None:
    shop = Shop()
    assert shop.method(1, y="b") == "Shop1b"
    assert await shop.coroutine(2) == 2
    assert (shop.static(3), Shop.static(3), shop.static_below(3)) == (3, 3, 3)
    assert (shop.of_class(4), Shop.of_class(4), Shop.of_class_below(4)) == ("Shop4",) * 3
    assert str(inspect.signature(Shop.method)) == "(self, x: 'int', *, y: 'str' = 'a') -> 'str'"
    assert (Shop.method.__doc__, Shop.method.__name__) == ("What it does.", "method")
    assert inspect.iscoroutinefunction(Shop.coroutine)
    assert Shop.method.__dict__["breaker"] is Shop.one


@Shop.one
def picklable(x: int) -> int:
    return x


def test_a_guarded_function_can_be_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(picklable)) is picklable


async def test_an_object_that_is_called_is_guarded_by_what_its_call_is() -> None:
    class Client:
        async def __call__(self) -> None:
            raise Down

    one = breaker()
    for function in (Client(), partial(Client().__call__)):
        with pytest.raises(Down):
            await one(function)()
    assert one.status().failures == 2


@pytest.mark.parametrize("thing", [Shop, "a string", 7, None])
def test_what_is_not_a_function_cannot_be_guarded(thing: Any) -> None:
    with pytest.raises(UsageError, match="guards functions and methods"):
        breaker()(thing)


def test_an_async_function_in_a_plain_call_is_an_error() -> None:
    """Without this it would be counted as a success before it has begun."""
    with pytest.raises(UsageError, match="acall"):
        breaker().call(Service().acall)  # type: ignore[unused-coroutine]


# --- generators ----------------------------------------------------------------------------------------------


def test_a_generator_is_one_call_from_first_item_to_last() -> None:
    one = breaker(failure_rate=1.0)

    @one
    def items() -> Generator[int, str, str]:
        got = yield 1
        assert got == "sent"
        with suppress(Down):
            yield 2
        yield 3
        return "returned"

    stream = items()
    assert one.status().calls == 0, "asking for it is no call"
    assert next(stream) == 1
    assert stream.send("sent") == 2
    assert stream.throw(Down()) == 3
    with pytest.raises(StopIteration, match="returned"):
        next(stream)
    status = one.status()
    assert (status.calls, status.failures) == (1, 0)


async def test_an_async_generator_is_one_call_from_first_item_to_last() -> None:
    one = breaker(failure_rate=1.0)
    closed = []

    @one
    async def items() -> Any:
        try:
            assert (yield 1) == "sent"
            with suppress(Down):
                yield 2
            yield 3
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    async with aclosing(items()) as stream:
        assert await anext(stream) == 1
        assert await stream.asend("sent") == 2
        assert await stream.athrow(Down()) == 3
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    assert one.status().calls == 1
    async with aclosing(items()) as stream:
        async for _ in stream:
            break
    assert closed == [True, True], "who stops early closes the inner one too"
    assert one.status().calls == 1, "and has cancelled"


async def test_a_stream_that_breaks_off_is_a_failure_and_one_that_is_left_is_not() -> None:
    one, _ = half_open()

    @one
    async def items(down: bool) -> AsyncGenerator[int, None]:
        yield 1
        if down:
            raise Down

    async with aclosing(items(down=False)) as stream:
        await anext(stream)
        with pytest.raises(BreakerOpen):
            await one.acall(Service().acall)
    assert one.state == "half_open"
    with pytest.raises(Down):
        [item async for item in items(down=True)]
    assert one.state == "open"
