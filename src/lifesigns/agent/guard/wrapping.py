"""Wrapping: a function with a breaker around every call.

The wrapper is a function of the same kind as the wrapped one (so `inspect` and frameworks see no difference), with
its name, signature and docstring, and the breaker as `.breaker`. For a generator the call lasts from the first item
to the last; a consumer that stops early cancels it.

Closed breakers that count nothing but failures in a row have a quick wrapper: no clock, no lock, one read and one
write. That is most calls of most programs, and `make bench` watches what it costs.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.agent.guard.guard import Breaker

F = TypeVar("F", bound=Callable[..., Any])
"""The very type of the function. A protocol with a `.breaker` would be lost on methods of instances and classes."""

Function = Callable[..., Any]


def wrapped(breaker: Breaker, function: F) -> F:
    """The function, guarded. Above or below `@staticmethod` and `@classmethod` is the same."""
    what: Any = function
    if isinstance(what, staticmethod | classmethod):
        return cast("F", type(what)(wrapped(breaker, what.__func__)))
    if isinstance(what, type) or not callable(what):
        raise UsageError(f"breaker {breaker.name!r} guards functions and methods, not {what!r}")
    guarded: Any = update_wrapper(_wrapper(what)(breaker, what), what)
    guarded.breaker = breaker
    return cast("F", guarded)


def _wrapper(function: Function) -> Callable[[Breaker, Function], Function]:
    """The kind of wrapper for this kind of function; for an object that is called, its `__call__` decides."""
    kind = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    for is_kind, wrapper in _WRAPPERS:
        if is_kind(function) or is_kind(kind):
            return wrapper
    return _of_function


def _of_function(breaker: Breaker, function: Function) -> Function:
    machine, end = breaker._machine, breaker.end

    def careful(*args: Any, **kwargs: Any) -> Any:
        return breaker.run(function, args, kwargs)

    def quick(*args: Any, **kwargs: Any) -> Any:
        permit = machine._pass
        if permit is None:
            return breaker.run(function, args, kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            end(permit, 0.0, error)
            raise
        if permit is machine._pass:
            machine._failures = 0
        return result

    return quick if breaker.counts_rows_only else careful


def _of_coroutine(breaker: Breaker, function: Function) -> Function:
    machine, end = breaker._machine, breaker.end

    async def careful(*args: Any, **kwargs: Any) -> Any:
        return await breaker.acall(function, *args, **kwargs)

    async def quick(*args: Any, **kwargs: Any) -> Any:
        permit = machine._pass
        if permit is None:
            return await breaker.acall(function, *args, **kwargs)
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            end(permit, 0.0, error)
            raise
        if permit is machine._pass:
            machine._failures = 0
        return result

    return quick if breaker.counts_rows_only else careful


def _of_generator(breaker: Breaker, function: Function) -> Function:
    """We do not remember it as running (`step_in`): between two items the consumer runs, outside the call."""

    def guarded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        permit, began_at = breaker.begin()
        try:
            result = yield from function(*args, **kwargs)
        except BaseException as error:
            breaker.end(permit, began_at, error)
            raise
        breaker.end(permit, began_at, None, result)
        return result

    return guarded


def _of_async_generator(breaker: Breaker, function: Function) -> Function:
    async def guarded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        permit, began_at = breaker.begin()
        items = function(*args, **kwargs)
        step = items.asend(None)
        try:
            while True:
                item = await step
                try:
                    sent = yield item
                except GeneratorExit:
                    await items.aclose()
                    raise
                except BaseException as thrown:  # noqa: BLE001 -- it is the inner generator's to handle
                    step = items.athrow(thrown)
                else:
                    step = items.asend(sent)
        except StopAsyncIteration:
            breaker.end(permit, began_at, None)
        except BaseException as error:
            breaker.end(permit, began_at, error)
            raise

    return guarded


_WRAPPERS: tuple[tuple[Callable[[object], bool], Callable[[Breaker, Function], Function]], ...] = (
    (inspect.iscoroutinefunction, _of_coroutine),
    (inspect.isasyncgenfunction, _of_async_generator),
    (inspect.isgeneratorfunction, _of_generator),
)
