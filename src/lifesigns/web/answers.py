"""Answers: JSON, and problems as RFC 9457 has them."""

from __future__ import annotations

import gzip
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import msgspec

from lifesigns.ports.correlation import correlation_id
from lifesigns.views import ProblemDetails

GZIP_FROM: Final = 1400
"""Smaller answers fit into one packet anyway."""

GZIP_BESIDE_FROM: Final = 128 * 1024
"""Compressing this takes a millisecond or two; larger ones are compressed in another thread."""

encoded: Final = msgspec.json.Encoder().encode
JSON: Final = b"application/json"
PROBLEM: Final = b"application/problem+json"

Header = tuple[bytes, bytes]


NOT_GUESSED: Final[Header] = (b"x-content-type-options", b"nosniff")
NOT_STORED: Final[Header] = (b"cache-control", b"no-store")
ONLY_TLS: Final[Header] = (b"strict-transport-security", b"max-age=31536000")


def guarded(headers: Sequence[Header], only_tls: bool) -> Sequence[Header]:
    """Adds the security headers: browsers must not guess its type, nor store it unless it may be stored, and must stay
    with TLS."""
    said = {name for name, _ in headers}
    more = [header for header in (NOT_GUESSED, NOT_STORED) if header[0] not in said]
    return [*headers, *more, ONLY_TLS] if only_tls else [*headers, *more]


@dataclass(slots=True)
class Answer:
    """A complete answer."""

    body: bytes = b""
    status: int = 200
    content_type: bytes = JSON
    headers: Sequence[Header] = ()
    final: bool = False
    """Its handler has compressed it, or decided against it."""


@dataclass(slots=True)
class Stream:
    """An answer sent piece by piece, for as long as the client listens."""

    pieces: AsyncGenerator[bytes, None]
    content_type: bytes
    headers: Sequence[Header] = ()
    status: int = field(default=200, init=False)


def answer(value: Any, status: int = 200, headers: Sequence[Header] = ()) -> Answer:
    """A value as JSON."""
    return Answer(encoded(value), status, JSON, headers)


class Problem(Exception):
    """A request that cannot be answered as asked. `detail` says what is wrong and what would be right."""

    def __init__(
        self,
        status: int,
        detail: str = "",
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        title: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title or HTTPStatus(status).phrase
        self.detail = detail
        self.field = field
        self.headers = headers or {}
        self.code = code

    def answer(self) -> Answer:
        """The problem as an answer to the request at hand."""
        shape = ProblemDetails(
            *("about:blank", self.title, self.status, self.detail, self.field, self.code),
            correlation_id.get() or None,
        )
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        return Answer(encoded(shape), self.status, PROBLEM, headers)


def squeezed(body: bytes) -> bytes:
    """Compressed with gzip: fast rather than small."""
    return gzip.compress(body, 1, mtime=0)
