"""`Client`: every call of the hub's API, for threads and scripts."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Final, Self, TypeVar, Unpack

import httpx2

from lifesigns.client import parameters
from lifesigns.client.calls import Calls
from lifesigns.client.connection import Connection, reply_of, was_heard
from lifesigns.client.event_stream import EventStream, OnLink
from lifesigns.client.parameters import AgentFilterFields
from lifesigns.client.request import Request, refusal, value_of
from lifesigns.errors import HubError
from lifesigns.views import AgentHealth, EventView

T = TypeVar("T")

TIMEOUT: Final = 10.0
RETRY_FOR: Final = 10.0


class Client(Calls):
    """A hub, and every call of its API. Use it in a `with`, or `close` it; threads may share it.

    Without `hub` it is `LIFESIGNS_HUB`, else the hub of this user on this machine; without `token` it is
    `LIFESIGNS_TOKEN`, else the admin's, if that is the hub it belongs to.

    `timeout` is the limit of one try, `retry_for` how long a repeatable call is retried while the hub is away or busy.
    Every failure is a `HubError`: `.status` and `.detail` are the hub's answer, `.transient` says whether it may pass.
    A mistake of the caller is a `UsageError`.
    """

    def __init__(
        self,
        hub: str | None = None,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT,
        retry_for: float = RETRY_FOR,
    ) -> None:
        self._connection = Connection(hub, token, timeout, retry_for)
        self._http = httpx2.Client(**self._connection.settings())

    @property
    def hub(self) -> str:
        """The hub's address."""
        return self._connection.hub

    def send(self, request: Request[T]) -> T:
        """Send any request, with retries where that is safe."""
        connection = self._connection
        tries = connection.tries(request, time.monotonic())
        while True:
            try:
                reply = reply_of(self._http.request(**connection.request_arguments(request)))
            except httpx2.RequestError as error:
                wait = tries.after_failure(error, time.monotonic(), heard=was_heard(error))
            else:
                again = tries.after_reply(reply, time.monotonic())
                if again is None:
                    return value_of(request, reply, connection.hub)
                wait = again
            connection.move_on()
            time.sleep(wait)

    def agents(
        self, *, limit: int | None = None, **which: Unpack[AgentFilterFields]
    ) -> Iterator[AgentHealth]:
        """Every agent that matches all conditions, in the order of their first signal; fetched page by page."""
        pages = parameters.PageFields(which, limit)
        while (request := pages.next()) is not None:
            yield from pages.read(self.send(request))

    def events(
        self,
        *,
        types: Sequence[str] = (),
        agent: str | None = None,
        after: int | None = None,
        reconnect: bool = True,
        on_link: OnLink | None = None,
    ) -> Generator[EventView, None, None]:
        """Events as they happen; with `after`, also everything since the event of that id.

        The stream reconnects by itself and continues where it was, for ever; only a hub that is not there at the
        beginning, or refuses, is an error. With `reconnect=False` the end of the stream is the end. We call `on_link`
        with the reason when the stream is lost, and with None when it is connected.
        """
        request = parameters.events(types, agent, after)
        stream = EventStream(on_link)
        while True:
            lost: Exception | None = None
            try:
                yield from self._listen(request, stream)
            except (httpx2.RequestError, HubError) as error:
                lost = error
            wait = stream.lost(lost, self.hub, reconnect=reconnect)
            self._connection.move_on()
            if wait is None:
                return
            time.sleep(wait)

    def _listen(self, request: Request[None], stream: EventStream) -> Iterator[EventView]:
        """The events of one connection."""
        stream.begin()
        with self._http.stream(**self._connection.stream_arguments(request, stream.last_id)) as response:
            if response.status_code != httpx2.codes.OK:
                response.read()
                raise refusal(reply_of(response), self.hub)
            for piece in response.iter_bytes():
                yield from stream.feed(piece)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
