"""A webhook: the notice as JSON, posted to an address of yours, and signed if you give a secret.

    Lifesigns-Timestamp   seconds since 1970, when it was sent
    Lifesigns-Signature   v1=HEX: HMAC-SHA256 with your secret over `TIMESTAMP.BODY`, the bytes as they came

Who receives it compares the signature in constant time and refuses timestamps older than a few minutes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import time
from typing import Final

import msgspec

from lifesigns.adapters.channels.posting import Poster
from lifesigns.ports import Notice
from lifesigns.wire.codec import written

VERSION: Final = 1


class WebhookChannel:
    """Posts notices as JSON to `url`; `headers` are sent along (a bearer token, say)."""

    def __init__(self, url: str, *, secret: str | None = None, headers: dict[str, str] | None = None) -> None:
        self._secret = secret
        self._headers = headers or {}
        self._poster = Poster(url, secrets=tuple(s for s in (secret, *self._headers.values()) if s))

    async def tell(self, notice: Notice) -> None:
        body = encoded(notice)
        headers = dict(self._headers)
        if self._secret:
            at = str(int(time.time()))
            headers["Lifesigns-Timestamp"] = at
            headers["Lifesigns-Signature"] = f"v1={signature(self._secret, at, body)}"
        await self._poster.post("", body, headers)

    async def close(self) -> None:
        await self._poster.close()


def encoded(notice: Notice) -> bytes:
    """A notice as others read it."""
    fields = {field.name: getattr(notice, field.name) for field in dataclasses.fields(notice)}
    moments = {"since": written(notice.since), "at": written(notice.at)}
    return msgspec.json.encode({"version": VERSION, **fields, **moments})


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What the header says after `v1=`."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
