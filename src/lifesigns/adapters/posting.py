"""Posts to a server over HTTP, and translates its answer into what to do next.

    2xx              accepted
    408, 425, 429    retry, after `Retry-After` if there is one
    5xx, no answer   retry
    anything else    refused for good: a retry would fail too, until somebody changes the configuration

An address may itself be a secret (a Slack webhook is), so errors show only its host. They quote the server's answer,
cut to size, without any secret.

With a secret, posts are signed:

    Lifesigns-Timestamp   seconds since 1970, when it was sent
    Lifesigns-Signature   v1=HEX: HMAC-SHA256 with the secret over `TIMESTAMP.BODY`, the bytes as they came

A receiver compares the signature in constant time and refuses timestamps older than a few minutes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Final

import httpx2
from msgspec import Struct

from lifesigns.errors import UsageError
from lifesigns.ports import NotTaken

TIMEOUT: Final = 10.0
BODY_MAX: Final = 64 * 1024
QUOTED_MAX: Final = 200
PATH_SHOWN: Final = 8
"""A path longer than this may be a secret."""
_AGAIN: Final = frozenset({408, 425, 429})

_BEFORE_SENDING: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL)
"""Errors that can only happen before the server has received anything."""

_library = logging.getLogger("httpx2")
if _library.level == logging.NOTSET:
    _library.setLevel(logging.WARNING)  # It logs every address it posts to, and ours are secrets.


@cache
def trust() -> ssl.SSLContext:
    """The trusted authorities. Read once, because that takes a tenth of a second."""
    return httpx2.create_ssl_context()


class Answer(Struct, frozen=True):
    """The server's answer."""

    status: int
    body: bytes
    retry_after: float | None


class Poster:
    """Posts to one server; raises `failure` if it refuses. `secrets` are never quoted."""

    def __init__(
        self,
        url: str,
        failure: type[NotTaken],
        *,
        secrets: tuple[str, ...] = (),
        timeout: float = TIMEOUT,
    ) -> None:
        try:
            self._url = httpx2.URL(url)
        except httpx2.InvalidURL:
            self._url = httpx2.URL("")
        if self._url.scheme not in ("http", "https") or not self._url.host:
            # The message does not repeat it: it may be a secret.
            raise UsageError("the address needs to look like https://host/path")
        self.host = self._url.host
        self._failure = failure
        userinfo, path = self._url.userinfo.decode(), self._url.raw_path.decode()
        hidden = (*secrets, url, userinfo, path if len(path) > PATH_SHOWN else "")
        self._secrets = tuple(one for one in hidden if one)
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None
        self._turn = asyncio.Lock()

    async def post(self, path: str, body: bytes, headers: Mapping[str, str], method: str = "POST") -> Answer:
        """Post, and return the answer if it is 2xx; raise otherwise. An empty path is the address itself."""
        url = self._url.copy_with(path=self._url.path.rstrip("/") + path) if path else self._url
        try:
            answer = await self._post(method, url, body, {"Content-Type": "application/json", **headers})
        except httpx2.TimeoutException as error:
            late = f"{self.host}: no answer within {self._timeout:g} s"
            raise self._failure(late, uncertain=not isinstance(error, _BEFORE_SENDING)) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            text = self._clean(f"{self.host}: {str(error) or type(error).__name__}")
            raise self._failure(text, uncertain=not isinstance(error, _BEFORE_SENDING)) from None
        if 200 <= answer.status < 300:
            return answer
        raise self.refusal(answer, answer.body.decode("utf-8", "replace"))

    def refusal(self, answer: Answer, text: str, *, transient: bool | None = None) -> NotTaken:
        """The error for an unwanted answer."""
        if transient is None:
            transient = answer.status in _AGAIN or answer.status >= 500
        quoted = " ".join(text.split())
        message = f"{self.host} answered {answer.status}" + (f": {quoted}" if quoted else "")
        return self._failure(self._clean(message), transient=transient, retry_after=answer.retry_after)

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _post(self, method: str, url: httpx2.URL, body: bytes, headers: Mapping[str, str]) -> Answer:
        client = await self._connected()
        async with client.stream(method, url, content=body, headers=dict(headers)) as response:
            received = bytearray()
            async for piece in response.aiter_bytes():
                received += piece
                if len(received) > BODY_MAX:
                    break
            return Answer(response.status_code, bytes(received[:BODY_MAX]), _retry_after(response.headers))

    async def _connected(self) -> httpx2.AsyncClient:
        async with self._turn:
            if self._client is None:
                # Reads the authorities from disk: not on the hub's loop, and only for TLS.
                verify = await asyncio.to_thread(trust) if self._url.scheme == "https" else False
                self._client = httpx2.AsyncClient(
                    timeout=self._timeout, headers={"User-Agent": "lifesigns"}, verify=verify
                )
            return self._client

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text[:QUOTED_MAX]


def signed(secret: str | None, body: bytes) -> dict[str, str]:
    """The headers that prove a body's origin; none without a secret."""
    if not secret:
        return {}
    at = str(int(time.time()))
    mark = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"Lifesigns-Timestamp": at, "Lifesigns-Signature": f"v1={mark}"}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, or a date; None if it is missing or unreadable."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else None
    except (ValueError, OverflowError):
        return None
