"""Serves the dashboard: what `make dashboard` built, file by file.

Every file of the built folder is a route with its exact path, so no path leads out of the folder. Browsers do not store
the page itself, so that after an update it names the new files; those have a digest in their name, and browsers keep
them for ever. The hub reads and compresses them once, when it starts.

Every client that reaches the port gets the page: it contains only a program. What it shows it has to request, and that
needs a sign-in. A hub without a built dashboard works, and says here how to get one.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from lifesigns.web.answers import NOT_STORED, Answer, Header
from lifesigns.web.routes import NO_TOKEN, Handler, Request, Route

FOLDER: Final = Path(__file__).with_name("dashboard")
"""Where `tools/dashboard.py` builds to, and where the wheel has it."""
INDEX: Final = "index.html"

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""No external resources, no frames, no script but our own files: a name that looks like a script is only a name."""

GUARDED: Final[tuple[Header, ...]] = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
)
FOR_EVER: Final[Header] = (b"cache-control", b"public, max-age=31536000, immutable")

NOT_BUILT: Final = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>lifesigns</title></head><body>
<h1>This hub works, but its dashboard was not built</h1>
<p>In a checkout of lifesigns: <code>make dashboard</code>, then start the hub again. An installed wheel has it built in.</p>
<p>Until then: <code>lifesigns watch</code> shows who is alive, and <a href="/docs">/docs</a> has the API.</p>
</body></html>
"""


def is_built(folder: Path = FOLDER) -> bool:
    """Whether there is a dashboard to serve."""
    return (folder / INDEX).is_file()


@cache
def calls(folder: Path = FOLDER) -> tuple[Route, ...]:
    """The routes of a built dashboard; without one, of the page that says so."""
    if not is_built(folder):
        return (_row("/", _Page(NOT_BUILT, b"text/html; charset=utf-8", NOT_STORED)),)
    return tuple(_rows(folder))


def _rows(folder: Path) -> Iterator[Route]:
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if not file.is_file() or name.startswith("."):
            continue
        if name == INDEX:
            yield _row("/", _Page(file.read_bytes(), b"text/html; charset=utf-8", NOT_STORED))
        else:
            yield _row(f"/{name}", _Page(file.read_bytes(), _content_type(name), FOR_EVER))


def _content_type(name: str) -> bytes:
    """By its ending; not by the machine's own tables, which may map `.js` to anything."""
    known = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
    return (known.get(Path(name).suffix) or guess_type(name)[0] or "application/octet-stream").encode()


class _Page:
    """One file, plain and compressed."""

    def __init__(self, content: bytes, content_type: bytes, keeping: Header) -> None:
        self._plain = content
        self._packed = gzip.compress(content, 9, mtime=0)
        self._content_type = content_type
        self._tag = f'"{sha256(content).hexdigest()[:16]}"'
        self._headers: Sequence[Header] = (
            *GUARDED,
            keeping,
            (b"etag", self._tag.encode()),
            (b"vary", b"accept-encoding"),
        )

    def answer(self, request: Request) -> Answer:
        """The file for this browser; 304 if it has it already."""
        known = request.header(b"if-none-match") or ""
        if known == "*" or self._tag in (one.strip().removeprefix("W/") for one in known.split(",")):
            return Answer(status=304, headers=self._headers)
        if "gzip" not in (request.header(b"accept-encoding") or ""):
            return Answer(self._plain, content_type=self._content_type, headers=self._headers, final=True)
        headers = (*self._headers, (b"content-encoding", b"gzip"))
        return Answer(self._packed, content_type=self._content_type, headers=headers, final=True)


def _row(path: str, page: _Page) -> Route:
    async def dashboard(request: Request) -> Answer:
        """A file of the dashboard."""
        return page.answer(request)

    handle: Handler = dashboard
    return Route("GET", path, NO_TOKEN, handle, str)
