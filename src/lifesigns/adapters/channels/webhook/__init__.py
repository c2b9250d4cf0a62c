"""A webhook: posts the notice as JSON to your address, signed if you give a secret (`adapters.posting`)."""

from __future__ import annotations

from typing import Final

import msgspec

from lifesigns.adapters.posting import Poster, signed
from lifesigns.ports import NotDelivered, Notice
from lifesigns.wire.codec import written

VERSION: Final = 1


class WebhookChannel:
    """Posts notices as JSON to `url`, with these `headers` (a bearer token, say)."""

    def __init__(self, url: str, *, secret: str | None = None, headers: dict[str, str] | None = None) -> None:
        self._secret = secret
        self._headers = headers or {}
        self._poster = Poster(url, NotDelivered, secrets=(secret or "", *self._headers.values()))

    async def tell(self, notice: Notice) -> None:
        body = encoded(notice)
        await self._poster.post("", body, {**self._headers, **signed(self._secret, body)})

    async def close(self) -> None:
        await self._poster.close()


def encoded(notice: Notice) -> bytes:
    """The public JSON of a notice."""
    fields = msgspec.structs.asdict(notice)
    moments = {"since": written(notice.since), "at": written(notice.at)}
    return msgspec.json.encode({"version": VERSION, **fields, **moments})
