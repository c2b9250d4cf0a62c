"""`AsyncClient`: every call of the hub's API, for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Self, TypeVar, Unpack

import httpx2

from lifesigns.client import parameters
from lifesigns.client.blocking import RETRY_FOR, TIMEOUT
from lifesigns.client.calls import Calls
from lifesigns.client.connection import Connection, reply_of, was_heard
from lifesigns.client.event_stream import EventStream, OnLink
from lifesigns.client.parameters import AgentFilterFields
from lifesigns.client.request import Request, refusal, value_of
from lifesigns.errors import HubError
from lifesigns.views import AgentHealth, EventView

T = TypeVar("T")


class AsyncClient(Calls):
    """Like `Client`, but every call is awaited: `await client.agent("coder-7")`, `async for agent in client.agents()`.
    Use it in an `async with`, or `await client.close()`."""

    def __init__(
        self,
        hub: str | None = None,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT,
        retry_for: float = RETRY_FOR,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport`: another way than the network, for a hub in this very process."""
        self._connection = Connection(hub, token, timeout, retry_for)
        self._http = httpx2.AsyncClient(**self._connection.settings(), transport=transport)

    @property
    def hub(self) -> str:
        """The hub's address."""
        return self._connection.hub

    async def send(self, request: Request[T]) -> T:
        """Send any request, with retries where that is safe."""
        connection = self._connection
        tries = connection.tries(request, time.monotonic())
        while True:
            try:
                reply = reply_of(await self._http.request(**connection.request_arguments(request)))
            except httpx2.RequestError as error:
                wait = tries.after_failure(error, time.monotonic(), heard=was_heard(error))
            else:
                again = tries.after_reply(reply, time.monotonic())
                if again is None:
                    return value_of(request, reply, connection.hub)
                wait = again
            connection.move_on()
            await asyncio.sleep(wait)

    async def agents(
        self, *, limit: int | None = None, **which: Unpack[AgentFilterFields]
    ) -> AsyncIterator[AgentHealth]:
        """Every agent that matches all conditions, in the order of their first signal; fetched page by page."""
        pages = parameters.PageFields(which, limit)
        while (request := pages.next()) is not None:
            for agent in pages.read(await self.send(request)):
                yield agent

    async def events(
        self,
        *,
        types: Sequence[str] = (),
        agent: str | None = None,
        after: int | None = None,
        reconnect: bool = True,
        on_link: OnLink | None = None,
    ) -> AsyncGenerator[EventView, None]:
        """Like `Client.events`."""
        request = parameters.events(types, agent, after)
        stream = EventStream(on_link)
        while True:
            lost: Exception | None = None
            try:
                async with aclosing(self._listen(request, stream)) as events:
                    async for event in events:
                        yield event
            except (httpx2.RequestError, HubError) as error:
                lost = error
            wait = stream.lost(lost, self.hub, reconnect=reconnect)
            self._connection.move_on()
            if wait is None:
                return
            await asyncio.sleep(wait)

    async def _listen(self, request: Request[None], stream: EventStream) -> AsyncGenerator[EventView, None]:
        stream.begin()
        async with self._http.stream(
            **self._connection.stream_arguments(request, stream.last_id)
        ) as response:
            if response.status_code != httpx2.codes.OK:
                await response.aread()
                raise refusal(reply_of(response), self.hub)
            async for piece in response.aiter_bytes():
                for event in stream.feed(piece):
                    yield event

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
