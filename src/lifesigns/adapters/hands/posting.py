"""Posting an order to somebody's server, and what the answer means.

    2xx              it is done, or taken
    408, 425, 429    come again, after `Retry-After` if it says so
    5xx, no answer   come again
    anything else    refused for good

With each order go headers by which its receiver knows it again and can trust it:

    Idempotency-Key       the same for every try of an order, also after a crash of the hub
    Lifesigns-Epoch       of the hub that gave it: refuse one that is lower than you have seen
    Lifesigns-Timestamp   seconds since 1970, when it was sent
    Lifesigns-Signature   v1=HEX: HMAC-SHA256 with your secret over `TIMESTAMP.BODY`, the bytes as they came

An address may be a secret itself, so no error says more of it than the host.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx2
import msgspec

from lifesigns.core.effects import Order
from lifesigns.errors import UsageError
from lifesigns.ports import NotDone, sameness

TIMEOUT: Final = 20.0
ANSWER_MAX: Final = 64 * 1024
QUOTED_MAX: Final = 200
VERSION: Final = 1
_AGAIN: Final = frozenset({408, 425, 429})

_library = logging.getLogger("httpx2")
if _library.level == logging.NOTSET:
    _library.setLevel(logging.WARNING)  # It logs every address it posts to, and ours may be secrets.


class Webhook:
    """Posts orders to one address."""

    def __init__(
        self,
        url: str,
        *,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        try:
            self._url = httpx2.URL(url)
        except httpx2.InvalidURL:
            self._url = httpx2.URL("")
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise UsageError("the address needs to look like https://host/path")  # Not repeated: a secret.
        self._secret = secret
        self._headers = dict(headers or {})
        path = self._url.raw_path.decode()
        hidden = (
            secret,
            *self._headers.values(),
            url,
            self._url.userinfo.decode(),
            path if len(path) > 8 else "",
        )
        self._hidden = tuple(one for one in hidden if one)
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None
        self._turn = asyncio.Lock()

    async def post(self, order: Order, kind: str, facts: Mapping[str, Any]) -> Any:
        """The JSON of a 2xx answer, None if it has none; `NotDone` for anything else."""
        body = msgspec.json.encode({"version": VERSION, "type": kind, **facts})
        try:
            status, answer, retry_after = await self._send(body, self._signed(order, body))
        except httpx2.TimeoutException:
            raise NotDone(f"{self._url.host}: no answer within {self._timeout:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise NotDone(self._clean(f"{self._url.host}: {str(error) or type(error).__name__}")) from None
        if 200 <= status < 300:
            return _json(answer)
        quoted = " ".join(answer.decode("utf-8", "replace").split())
        said = f"{self._url.host} answered {status}" + (f": {quoted}" if quoted else "")
        transient = status in _AGAIN or status >= 500
        raise NotDone(self._clean(said), transient=transient, retry_after=retry_after)

    async def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    def _signed(self, order: Order, body: bytes) -> dict[str, str]:
        headers = {
            **self._headers,
            "Content-Type": "application/json",
            "Idempotency-Key": sameness(order),
            "Lifesigns-Epoch": str(order.epoch),
        }
        if self._secret:
            at = str(int(time.time()))
            headers["Lifesigns-Timestamp"] = at
            headers["Lifesigns-Signature"] = f"v1={signature(self._secret, at, body)}"
        return headers

    async def _send(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, float | None]:
        client = await self._connected()
        async with client.stream("POST", self._url, content=body, headers=headers) as response:
            received = bytearray()
            async for piece in response.aiter_bytes():
                received += piece
                if len(received) > ANSWER_MAX:
                    break
            return response.status_code, bytes(received[:ANSWER_MAX]), _retry_after(response.headers)

    async def _connected(self) -> httpx2.AsyncClient:
        async with self._turn:
            if self._client is None:
                # Who is to be trusted is read from the disk, and takes a while: not on the hub's loop, and only for TLS.
                self._client = await asyncio.to_thread(
                    httpx2.AsyncClient,
                    timeout=self._timeout,
                    headers={"User-Agent": "lifesigns"},
                    verify=self._url.scheme == "https",
                )
            return self._client

    def _clean(self, text: str) -> str:
        for hidden in self._hidden:
            text = text.replace(hidden, "***")
        return text[:QUOTED_MAX]


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What the header says after `v1=`."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def identity(order: Order) -> dict[str, Any]:
    """What every post says of its order."""
    return {
        "id": order.order_id,
        "epoch": order.epoch,
        "agent_id": order.agent_id,
        "incarnation": order.incarnation,
    }


def _json(body: bytes) -> Any:
    """An answer that is no JSON says nothing: a bare `ok` is as good as an empty one."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, or a date; None if it says nothing of use."""
    said = headers.get("retry-after", "").strip()
    if said.isdecimal() and len(said) < 10:
        return float(said)
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time()) if said else None
    except (ValueError, OverflowError):
        return None
