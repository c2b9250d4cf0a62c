"""One connection to a NATS server, by nats-py. Its own reconnecting is off: see `server_bus.py`."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from typing import Any, Final

from nats import errors
from nats.aio.client import Client
from nats.aio.subscription import Subscription

from lifesigns.adapters.bus.nats_parser import TurnParser
from lifesigns.adapters.bus.server_bus import Receive
from lifesigns.adapters.bus.skipping import WhatIsUnwanted
from lifesigns.errors import AdapterError

logger = logging.getLogger("lifesigns.bus")

_CONNECT_FOR: Final = 2
_FOR_EVER: Final = 10**6
"""Seconds nats-py waits for an answer; our own limit is in `server_bus.py`. If nats-py's wait ended first, it would
cancel the future of that answer, and the late answer would then silently end its reading."""


async def open_connection(
    servers: Sequence[str],
    user: str | None,
    password: str | None,
    receive: Receive,
    unwanted: WhatIsUnwanted,
) -> NatsConnection:
    """Connect to one of the servers, or raise `AdapterError`."""
    connection = NatsConnection(receive, unwanted)
    try:
        await connection.client.connect(
            servers=list(servers),
            error_cb=connection.note,
            name="lifesigns",
            allow_reconnect=False,
            # The smallest value that ends: nats-py tries each server twice, then gives up.
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=_CONNECT_FOR,
            # No buffering for later, no waiting for the network: our own limits are in `server_bus.py`.
            pending_size=0,
            user=user if password is not None else None,
            password=password,
            token=user if password is None else None,
        )
    except (OSError, errors.Error, ValueError) as error:  # ValueError: the peer does not speak NATS.
        await connection.close()
        cause = connection.last_error or error
        raise AdapterError(
            f"cannot connect to {','.join(servers)}: {_text(cause)}", transient=not _is_final(cause)
        ) from cause
    except BaseException:
        await connection.close()
        raise
    connection.payload_max = connection.client.max_payload
    return connection


class NatsConnection:
    """A `ServerConnection` of `server_bus.py`."""

    def __init__(self, receive: Receive, unwanted: WhatIsUnwanted) -> None:
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.refusal: str | None = None
        self.payload_max = 0
        self.last_error: Exception | None = None
        self.client = _Client(receive, self._end, unwanted)
        self._subscriptions: dict[str, Subscription] = {}
        self._questions: set[asyncio.Task[float]] = set()

    @property
    def backlog(self) -> int:
        return self.client.pending_data_size

    async def send(self, subject: str, payload: bytes) -> None:
        try:
            await self.client.publish(subject, payload)
        except (OSError, errors.Error) as error:
            raise AdapterError(f"nothing was sent to {subject!r}: {_text(error)}") from error

    async def listen(self, pattern: str) -> None:
        try:
            self._subscriptions[pattern] = await self.client.subscribe(pattern)
        except (OSError, errors.Error) as error:
            self._end(_text(error))

    async def unlisten(self, pattern: str) -> None:
        try:
            await self._subscriptions.pop(pattern).unsubscribe()
        except (OSError, errors.Error) as error:
            self._end(_text(error))

    def ask(self) -> asyncio.Future[Any]:
        # Not `flush`: that returns without an answer if the reading has ended.
        task = asyncio.create_task(self.client.rtt(timeout=_FOR_EVER))
        self._questions.add(task)
        task.add_done_callback(self._answered)
        return task

    async def close(self) -> None:
        self._end("closed")
        for task in tuple(self._questions):
            task.cancel()
        await self.client.close()

    async def note(self, error: Exception) -> None:
        """Record an error; nats-py calls this for every error it does not raise."""
        self.last_error = error
        if "permissions violation" in str(error):
            self.refusal = _text(error)
        logger.debug("NATS: %s", _text(error))

    def _answered(self, task: asyncio.Task[float]) -> None:
        self._questions.discard(task)
        if not task.cancelled():
            task.exception()  # Retrieve it here, too, because the caller of `ask` may be gone.

    def _end(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)


class _Client(Client):
    """nats-py's client with our own receiving, closing and TLS check."""

    def __init__(self, receive: Receive, on_end: Any, unwanted: WhatIsUnwanted) -> None:
        super().__init__()
        self._receive = receive
        self._on_end = on_end
        self._ps = TurnParser(self, self._take, unwanted)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        self._take(sid, subject, data)

    def _take(self, sid: int, subject: bytes, data: bytes) -> None:
        # The original puts it into an unbounded queue of its own task; ours is `Delivery`, and bounded. Subjects are
        # bytes to the server: the original stops reading for good at the first one that is not UTF-8.
        subscription = self._subs.get(sid)
        if subscription is not None:
            self._receive(subscription.subject, subject.decode(errors="replace"), data)

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        # Every end goes through here. The original first sends what is pending: on a frozen server that never returns,
        # on a dead one it raises and leaves its tasks running. Then it waits until the socket is closed: after a failed
        # TLS handshake that never returns either. So we abort the socket here.
        self._on_end(_text(self.last_error) if self.last_error else "closed by the server")
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
            self._transport = None
        await super()._close(status, do_cbs)

    def _connect_command(self) -> bytes:
        # nats-py calls this after TLS, if the server wants TLS, and before it sends a password.
        server = self._current_server
        if server is not None and server.uri.scheme == "tls" and not self._server_info.get("tls_required"):
            raise errors.Error("nats: the server offers no TLS, but the address says tls://")
        # We use no headers. A server strips them for a client that wants none: nobody can send us what takes longer to read.
        self._server_info["headers"] = False
        return super()._connect_command()


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error).removeprefix("nats: ").strip().strip("'") or type(error).__name__


def _is_final(error: BaseException) -> bool:
    """Whether a retry would fail as well: wrong credentials, an untrusted certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    return isinstance(error, errors.Error) and any(
        word in str(error).lower() for word in ("authorization", "authentication", "no tls")
    )
