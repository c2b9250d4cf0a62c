"""One HTTP/1.1 connection over asyncio streams, with as much of the protocol as a sender needs.

It uses the standard library alone, because it runs inside every agent, where httptools would cost a quarter of a
megabyte and save nothing (decision 0070). Everything is bounded: the time to connect, the time to answer, the size of
heads and bodies. A connection that was left in the middle of anything is not used again.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from lifesigns.errors import AdapterError, UsageError
from lifesigns.wire.addresses import exposure

CONNECT_FOR: Final = 3.0
ANSWER_FOR: Final = 5.0
HEAD_MAX: Final = 64 * 1024
HEADERS_MAX: Final = 128
BODY_MAX: Final = 8 * 1024 * 1024
_PORTS: Final = {"http": 80, "https": 443}


class Target(Struct, frozen=True):
    """The address of a hub."""

    url: str
    secure: bool
    host: str
    port: int
    prefix: str

    @classmethod
    def of(cls, url: str) -> Target:
        """The parts of an address, or a `UsageError`."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UsageError(f"hub is {url!r}: {error}") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise UsageError(f"hub is {url!r}, but it has to look like http://127.0.0.1:8710")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise UsageError(
                f"hub is {parts.scheme}://{parts.hostname}...: it takes no user, query or fragment; "
                "a token is given as token= or LIFESIGNS_TOKEN"
            )
        secure = parts.scheme == "https"
        return cls(url, secure, parts.hostname, port or _PORTS[parts.scheme], parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """The value of the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.secure else "http"] else f"{host}:{self.port}"


class Reply(Struct, frozen=True):
    """The status and body of an answer."""

    status: int
    body: bytes


@cache
def trust() -> ssl.SSLContext:
    """Trusts the system's authorities, or those of `SSL_CERT_FILE`. Read once, because that takes a while."""
    return ssl.create_default_context()


class HttpConnection:
    """A connection that opens when needed, stays, and reopens after a loss. One request at a time."""

    def __init__(self, target: Target, token: str | None) -> None:
        self._target = target
        head = f"Host: {target.authority}\r\nUser-Agent: lifesigns\r\nAccept: application/json\r\n"
        self._head = head + (f"Authorization: Bearer {token}\r\n" if token else "")
        self._exposure = exposure(target.url) if token else ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    async def connect(self) -> None:
        """Be connected, or fail."""
        async with self._turn:
            await self._connected()

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        key: str = "",
        answer_for: float = ANSWER_FOR,
    ) -> Reply:
        """One request, with its `Idempotency-Key`, and its reply. Raises a transient `AdapterError` if no server answers,
        or not in HTTP."""
        request = self._request(method, path, body, key)
        async with self._turn:
            fresh = self._is_idle() is None
            try:
                return await self._exchange(request, answer_for)
            except _GoneError as error:
                if fresh or self._closed:
                    raise self._trouble(str(error)) from error
            # The server closed it while it was idle, before it read the request: that happens to every kept connection.
            try:
                return await self._exchange(request, answer_for)
            except _GoneError as error:
                raise self._trouble(str(error)) from error

    def close(self) -> None:
        """Close at once, whatever is open."""
        self._closed = True
        self._hang_up()

    async def _exchange(self, request: bytes, answer_for: float) -> Reply:
        reader, writer = await self._connected()
        kept = False
        try:
            async with asyncio.timeout(answer_for):
                writer.write(request)
                await writer.drain()
                reply, kept = await _read_reply(reader)
                return reply
        except TimeoutError:
            raise self._trouble(f"no answer within {answer_for:g} s") from None
        except OSError as error:
            raise _GoneError(str(error) or type(error).__name__) from error
        except (asyncio.LimitOverrunError, ValueError) as error:
            raise self._trouble(f"its answer is no HTTP: {error}") from error
        finally:
            if not kept:
                self._hang_up()

    def _request(self, method: str, path: str, body: bytes | None, key: str) -> bytes:
        head = f"{method} {self._target.prefix}{path} HTTP/1.1\r\n{self._head}"
        if key:
            head += f"Idempotency-Key: {key}\r\n"
        if body is None:
            return f"{head}\r\n".encode("latin-1")
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body

    def _is_idle(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """The kept connection, unless the other side has closed it."""
        if self._streams is not None and (self._streams[0].at_eof() or self._streams[1].is_closing()):
            self._hang_up()
        return self._streams

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._closed:
            raise self._trouble("this link is closed")
        if self._exposure:  # An agent continues without its hub; log and alert tell the user.
            raise AdapterError(self._exposure, transient=False)
        streams = self._is_idle()
        if streams is None:
            target = self._target
            tls = trust() if target.secure else None
            try:
                async with asyncio.timeout(CONNECT_FOR):
                    streams = await asyncio.open_connection(target.host, target.port, ssl=tls, limit=HEAD_MAX)
            except TimeoutError:
                raise self._trouble(f"no connection within {CONNECT_FOR:g} s") from None
            except ssl.SSLCertVerificationError as error:
                raise AdapterError(f"{target.url}: {error.verify_message}", transient=False) from error
            except OSError as error:
                raise self._trouble(str(error) or type(error).__name__) from error
            self._streams = streams
        return streams

    def _hang_up(self) -> None:
        if self._streams is not None:
            writer, self._streams = self._streams[1], None
            with suppress(RuntimeError):  # The loop is closed, and so is the socket.
                writer.transport.abort()

    def _trouble(self, detail: str) -> AdapterError:
        return AdapterError(f"{self._target.url}: {detail}", transient=True)


# --- reading ----------------------------------------------------------------------------------------------------


class _GoneError(Exception):
    """The connection ended before an answer began."""


async def _read_reply(reader: asyncio.StreamReader) -> tuple[Reply, bool]:
    """The reply, and whether the connection can be kept."""
    status = 100
    version, headers = "", dict[str, str]()
    while status < 200:  # 1xx come before the real one
        version, status = await _read_status(reader)
        headers = await _read_headers(reader)
    options = {option.strip() for option in headers.get("connection", "").lower().split(",")}
    kept = "close" not in options and version == "HTTP/1.1"
    if status in (204, 304):
        return Reply(status, b""), kept
    body, ended = await _read_body(reader, headers)
    return Reply(status, body), kept and ended


async def _read_status(reader: asyncio.StreamReader) -> tuple[str, int]:
    line = await reader.readline()
    if not line:
        raise _GoneError("the connection was closed without an answer")
    parts = line.decode("latin-1").split(None, 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdecimal():
        raise ValueError(f"it begins with {line[:60]!r}")
    return parts[0], int(parts[1])


async def _read_headers(reader: asyncio.StreamReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(HEADERS_MAX):
        line = await reader.readline()
        if not line.endswith(b"\n"):
            raise ValueError("it ended within its head")
        if not line.strip():
            return headers
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    raise ValueError(f"it has more than {HEADERS_MAX} headers")


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> tuple[bytes, bool]:
    """The body, and whether the head told its end; if not, it ends with the connection."""
    try:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return await _read_chunks(reader), True
        if (length := headers.get("content-length")) is not None:
            return await reader.readexactly(_size(length, 10)), True
        body = await reader.read(BODY_MAX + 1)
        while body and len(body) <= BODY_MAX and (more := await reader.read(BODY_MAX)):
            body += more
        _check(len(body))
        return body, False
    except asyncio.IncompleteReadError as error:
        raise ValueError(f"it ended after {len(error.partial)} of {error.expected} bytes") from error


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := _size((await reader.readline()).decode("latin-1").partition(";")[0].strip(), 16):
        _check(len(body) + size)
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await _read_headers(reader)  # trailers, or the empty line
    return bytes(body)


def _size(text: str, digits: int) -> int:
    size = int(text, digits)
    if size < 0:
        raise ValueError(f"it announces {size} bytes")
    _check(size)
    return size


def _check(size: int) -> None:
    if size > BODY_MAX:
        raise ValueError(f"it has more than {BODY_MAX} bytes")
