"""A call is described once and sent by both clients: `Client` returns its value, `AsyncClient` an awaitable of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from lifesigns.client.request import Request

P = ParamSpec("P")
T = TypeVar("T")


class Transport(Protocol):
    """Sends a request and returns its value."""

    def send(self, request: Request[T]) -> T: ...


class AsyncTransport(Protocol):
    """Sends a request and awaits its value."""

    async def send(self, request: Request[T]) -> T: ...


class Call(Generic[P, T]):
    """A method that makes a request; on a client it is the method that sends it."""

    def __init__(self, ask: Callable[Concatenate[Any, P], Request[T]]) -> None:
        self._ask = ask
        self.__doc__ = ask.__doc__

    @overload
    def __get__(self, client: None, kind: object) -> Self: ...
    @overload
    def __get__(self, client: Transport, kind: object) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncTransport, kind: object) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: Any, kind: object) -> Any:
        if client is None:
            return self
        make = self._ask.__get__(client)

        @wraps(make)
        def send(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.send(make(*args, **kwargs))

        return send
