"""One pair of connections to a Redis server, by redis-py's connections: one to send, one to receive.

Protocol 2 needs two, because a subscribed connection may not publish; but every server of the family speaks it. We send
commands without waiting for their answers, as on NATS: a publisher that waited for each would send some thousand
messages a second. We wait only for the answer to a PING, which comes after all others. redis-py connects, signs in and
writes; what comes we read ourselves (`redis_parser.py`).
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections import deque
from collections.abc import Callable
from time import thread_time
from typing import Any, Final

from redis import exceptions
from redis.asyncio.connection import AbstractConnection, Connection, parse_url

from lifesigns.adapters.bus.redis_parser import Refusal, ReplyParser
from lifesigns.adapters.bus.server_bus import Receive
from lifesigns.adapters.bus.skipping import TURN_FOR, WhatIsUnwanted
from lifesigns.adapters.bus.subjects import is_plain, matcher
from lifesigns.errors import AdapterError

logger = logging.getLogger("lifesigns.bus")

_CONNECT_FOR: Final = 2.0
_WRITE_FOR: Final = 4.0
_CANCEL_AGAIN_AFTER: Final = 0.05
_READ_MAX: Final = 256 * 1024
_escape: Final = re.compile(r"([\\*?\[\]])")
_OUR_SETTINGS: Final = {
    "protocol": 2,
    "socket_connect_timeout": _CONNECT_FOR,
    "socket_timeout": _WRITE_FOR,
    "health_check_interval": 0,
    "db": 0,
}


async def open_connection(
    url: str, name: str, payload_max: int, receive: Receive, unwanted: WhatIsUnwanted
) -> RedisConnections:
    """Connect to this server, or raise `AdapterError`."""
    settings: dict[str, Any] = {**parse_url(url), **_OUR_SETTINGS}
    kind: type[AbstractConnection] = settings.pop("connection_class", Connection)
    try:
        connection = RedisConnections(kind(**settings), kind(**settings), payload_max, receive, unwanted)
    except TypeError as error:
        raise AdapterError(
            f"the address of {name} has an unknown parameter: {error}", transient=False
        ) from error
    try:
        await connection.open()
    except (OSError, exceptions.RedisError) as error:
        await connection.close()
        raise AdapterError(
            f"cannot connect to {name}: {_text(error)}", transient=not _is_final(error)
        ) from error
    except BaseException:
        await connection.close()
        raise
    return connection


class RedisConnections:
    """A `ServerConnection` of `server_bus.py`."""

    def __init__(
        self,
        sending: AbstractConnection,
        hearing: AbstractConnection,
        payload_max: int,
        receive: Receive,
        unwanted: WhatIsUnwanted,
    ) -> None:
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.refusal: str | None = None
        self.payload_max = payload_max
        self._receive = receive
        self._sending = _Pipe(sending, self, unwanted)
        self._hearing = _Pipe(hearing, self, unwanted)
        self._globs: dict[str, dict[str, Callable[[str], bool]]] = {}

    @property
    def backlog(self) -> int:
        return self._sending.backlog

    async def open(self) -> None:
        await self._sending.open()
        await self._hearing.open()

    async def send(self, subject: str, payload: bytes) -> None:
        self._sending.put("PUBLISH", subject, payload)

    async def listen(self, pattern: str) -> None:
        glob = _glob(pattern)
        patterns = self._globs.setdefault(glob, {})
        patterns[pattern] = matcher(pattern)
        if len(patterns) == 1:
            self._hearing.put("SUBSCRIBE" if is_plain(pattern) else "PSUBSCRIBE", glob)

    async def unlisten(self, pattern: str) -> None:
        glob = _glob(pattern)
        patterns = self._globs[glob]
        del patterns[pattern]
        if not patterns:
            del self._globs[glob]
            self._hearing.put("UNSUBSCRIBE" if is_plain(pattern) else "PUNSUBSCRIBE", glob)

    def ask(self) -> asyncio.Future[Any]:
        return asyncio.gather(self._sending.ask(), self._hearing.ask())

    async def close(self) -> None:
        self.end("closed")
        await self._sending.close()
        await self._hearing.close()

    def handle(self, reply: object) -> None:
        """A message on a plain subject, or an answer to a command: of the answers only refusals matter."""
        match reply:
            case [b"message", bytes(channel), bytes(payload)]:
                self.pass_on(channel, channel, payload)
            case Refusal():
                self.refusal = str(reply).removeprefix("ERR ")

    def pass_on(self, glob: bytes, channel: bytes, payload: bytes) -> None:
        """A message on a glob, to those who listen to its subject."""
        subject = channel.decode(
            errors="replace"
        )  # To the server it is bytes. Its sender pays for it in any case.
        # A glob's * also matches dots and the empty text, so that several patterns may share one.
        for pattern, is_meant in tuple(self._globs.get(glob.decode(), {}).items()):
            if is_meant(subject):
                self._receive(pattern, subject, payload)

    def end(self, reason: str) -> None:
        """Say that the connections are lost."""
        if not self.lost.done():
            self.lost.set_result(reason)


class _Pipe:
    """One connection: commands go in, replies come out, and neither waits for the other."""

    def __init__(
        self,
        connection: AbstractConnection,
        owner: RedisConnections,
        unwanted: WhatIsUnwanted,
    ) -> None:
        self.backlog = 0
        self._connection = connection
        self._owner = owner
        self._unwanted = unwanted
        self._parser = ReplyParser(owner.pass_on, self._answered)
        self._commands: list[bytes] = []
        self._has_commands = asyncio.Event()
        self._pongs: deque[asyncio.Future[None]] = deque()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        await self._connection.connect()  # type: ignore[no-untyped-call]
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._read())]

    def put(self, *command: str | bytes) -> None:
        packed = self._connection.pack_command(*command)
        self._commands += packed
        self.backlog += sum(map(len, packed))
        self._has_commands.set()

    def ask(self) -> asyncio.Future[None]:
        pong: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pongs.append(pong)
        self.put("PING")
        return pong

    async def close(self) -> None:
        # Once is not enough: what the driver awaits may end at the moment of the cancel, and then the task continues as
        # if nothing happened (`asyncio.wait_for` before Python 3.12). Waiting for it would be waiting for ever.
        running = {task for task in self._tasks if not task.done()}
        while running:
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=_CANCEL_AGAIN_AFTER)
        # Aborted, not closed: closing waits until the server has taken everything, and it may be frozen.
        writer = self._connection._writer  # redis-py has no public way.
        if writer is not None:
            writer.transport.abort()
        await self._connection.disconnect(nowait=True)

    async def _write(self) -> None:
        try:
            while True:
                await self._has_commands.wait()
                self._has_commands.clear()
                commands, self._commands = self._commands, []
                self.backlog = 0
                await self._connection.send_packed_command(commands, check_health=False)
        except (OSError, exceptions.RedisError) as error:
            self._owner.end(_text(error))

    async def _read(self) -> None:
        """While anything is unwanted, read for two thirds of the time at most: a server that cannot send 32 MB closes the connection."""
        reader, worked = (
            self._connection._reader,
            0.0,
        )  # redis-py has no public way to what it has not parsed.
        assert reader is not None
        try:
            while data := await reader.read(_READ_MAX):
                began = thread_time()
                self._parser.feed(data, self._unwanted())
                worked += thread_time() - began
                if worked >= TURN_FOR:
                    await asyncio.sleep(worked / 2 if self._unwanted() else 0)
                    worked = 0.0
        except (OSError, ValueError) as error:
            self._owner.end(_text(error))
        else:
            self._owner.end("closed by the server")

    def _answered(self, reply: object) -> None:
        if reply == b"PONG" or (type(reply) is list and reply[0] == b"pong"):
            if self._pongs and not (pong := self._pongs.popleft()).done():
                pong.set_result(None)
        else:
            self._owner.handle(reply)


def _glob(pattern: str) -> str:
    """The channel, or a glob that matches at least what the pattern matches."""
    if is_plain(pattern):
        return pattern
    return ".".join("*" if word in ("*", ">") else _escape.sub(r"\\\1", word) for word in pattern.split("."))


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError | exceptions.TimeoutError):
        return "no answer in time"
    return str(error).strip() or type(error).__name__


def _is_final(error: BaseException) -> bool:
    """Whether a retry would fail as well: wrong credentials, an untrusted certificate."""
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return True
    causes = (error, error.__cause__, error.__context__)
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes)
