"""Access: from a request's headers to its principal, or the reason why there is none.

Everything here is pure, over the headers of one request. It first refuses headers that two readers could understand
differently (a repeated header, an unknown encoding).

A fault of the request itself, in its `Host` or origin, raises, whatever the request asks for. A missing sign-in is
returned: some routes are open to all.
"""

from __future__ import annotations

import logging
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from lifesigns.hub.access import Access
from lifesigns.hub.principals import Principal
from lifesigns.web.answers import Problem
from lifesigns.web.forwarded import REACHED, SIGNED_IN
from lifesigns.web.host_policy import HostPolicy

__all__ = [
    "PINGED",
    "Headers",
    "HostPolicy",
    "admit",
    "bearer_of",
    "check_page",
    "cookie_name",
    "headers_of",
    "refused",
    "session_of",
    "session_shown",
    "token_shown",
]

PINGED: Final = "/ping/"
SAFE: Final = frozenset({"GET", "HEAD"})
HEADERS_MAX: Final = 100
HEADER_BYTES_MAX: Final = 32 * 1024
OWN_PAGES: Final = (b"same-origin", b"none")
"""`Sec-Fetch-Site` of requests by our own page, and by a person who typed the address."""

Headers = Mapping[bytes, bytes]
Scope = Mapping[str, Any]

log: Final = logging.getLogger("lifesigns.web")

_ONCE: Final = frozenset(
    {
        *(b"host", b"authorization", b"cookie", b"origin", b"sec-fetch-site", b"x-forwarded-proto"),
        *(b"content-length", b"content-encoding", b"transfer-encoding"),
    }
)
"""Headers that we act on, or that say where a request ends: at most once each."""


def headers_of(scope: Scope) -> Headers:
    """The headers of a request by name; raises a `Problem` if they are too many or ambiguous."""
    raw: list[tuple[bytes, bytes]] = scope["headers"]
    headers = dict(raw)
    if len(headers) != len(raw):
        _check_repeated(raw)
    if len(raw) > HEADERS_MAX or sum(map(len, headers.values())) > HEADER_BYTES_MAX:
        raise Problem(431, f"over {HEADERS_MAX} headers, or over {HEADER_BYTES_MAX} bytes of them")
    if b"transfer-encoding" in headers and headers[b"transfer-encoding"].lower() != b"chunked":
        raise Problem(
            400, "Transfer-Encoding may be chunked and nothing else", headers={"Connection": "close"}
        )
    return headers


def admit(
    scope: Scope, headers: Headers, access: Access, now: float, host_policy: HostPolicy
) -> Principal | Problem:
    """The principal who sent this request, or why there is none; raises a `Problem` if the request itself is bad."""
    host_policy.check_host(headers.get(b"host"))
    if scope["method"] not in SAFE:
        check_page(headers, host_policy)
    if b"authorization" not in headers:
        return _by_cookie(scope, headers, access, now, host_policy)
    bearer = token_shown(scope, headers)
    if bearer is None:
        return _nobody("Authorization has to be: Bearer <token>")
    principal = access.principal(bearer, now)
    if principal is None:
        return refused(scope, access, now, host_policy, "the token is unknown, revoked or too old")
    return principal


def check_page(headers: Headers, host_policy: HostPolicy) -> None:
    """Raises a `Problem` if the browser says that another page sends this. Clients that are no browsers say nothing."""
    origin = headers.get(b"origin")
    if origin is not None and not host_policy.same_origin(origin, headers[b"host"]):
        raise Problem(
            403, f"Origin is {origin[:100].decode('latin-1')!r}, and other pages have no business here"
        )
    if headers.get(b"sec-fetch-site", b"none") not in OWN_PAGES:
        raise Problem(403, "Sec-Fetch-Site says that another page asks, and those have no business here")


def token_shown(scope: Scope, headers: Headers) -> bytes | None:
    """The token in the headers of this request, if there is one."""
    bearer = bearer_of(headers)
    return _password_of(headers) if bearer is None and scope["path"].startswith(PINGED) else bearer


def bearer_of(headers: Headers) -> bytes | None:
    """The token in the headers, if there is one."""
    said = headers.get(b"authorization", b"")
    if said[:7].lower() == b"bearer ":
        return said[7:].strip()
    # OTEL_EXPORTER_OTLP_HEADERS is percent-encoded, and not every exporter decodes it (that of Claude Code does not).
    return said[9:].strip() if said[:9].lower() == b"bearer%20" else None


def _password_of(headers: Headers) -> bytes | None:
    """The password of Basic authentication: what fetches a URL often knows no other (`curl --netrc`). Whoever it says to be, the
    password is the token. Only where jobs ping, so that no browser ever keeps a token for the rest."""
    said = headers.get(b"authorization", b"")
    if said[:6].lower() != b"basic ":
        return None
    try:
        return b64decode(said[6:].strip(), validate=True).partition(b":")[2]
    except ValueError:
        return None


def refused(scope: Scope, access: Access, now: float, host_policy: HostPolicy, detail: str) -> Problem:
    """The answer to a wrong secret; after many of them, to wait. Neither answer nor log repeats the secret."""
    return refused_from(host_policy.address(scope), access, now, detail)


def refused_from(address: str, access: Access, now: float, detail: str) -> Problem:
    """As `refused`, of somebody at this address."""
    failures = access.throttle.failed(address, now)
    if failures.worth_logging:
        log.warning(
            "%s: %s%s",
            address,
            detail,
            "; and again and again" if failures.too_many else "",
            extra={"action": "token_refused"},
        )
    if failures.too_many:
        return Problem(
            429,
            f"{failures.count} wrong tokens within a minute from this address",
            headers={"Retry-After": str(failures.retry_after)},
        )
    return _nobody(detail, error="invalid_token")


def session_of(headers: Headers, scope: Scope, host_policy: HostPolicy, ending: str = "") -> str | None:
    """The session in the cookies, or the cookie with our name and this ending. None if there are two: another server
    set one of them."""
    cookies = headers.get(b"cookie")
    if cookies is None:
        return None
    name = f"{cookie_name(scope, host_policy)}{ending}".encode()
    found = [
        value
        for key, _, value in (part.strip().partition(b"=") for part in cookies.split(b";"))
        if key == name
    ]
    return found[0].decode("latin-1") if len(found) == 1 else None


def session_shown(scope: Scope, host_policy: HostPolicy) -> str | None:
    """The session that authenticates a request; None if a token does."""
    headers = headers_of(scope)
    return None if b"authorization" in headers else session_of(headers, scope, host_policy)


def cookie_name(scope: Scope, host_policy: HostPolicy) -> str:
    """The name of our cookie. With the port, because browsers share cookies between hubs on different ports of one
    machine; and over TLS with the prefix that keeps other hosts from setting it."""
    server = scope.get("server")
    name = f"lifesigns_{server[1] if server else 0}"
    return f"__Host-{name}" if host_policy.tls else name


# --- parts --------------------------------------------------------------------------------------------


def _check_repeated(raw: list[tuple[bytes, bytes]]) -> None:
    seen = set()
    for name, _ in raw:
        if name in seen and name in _ONCE:
            raise Problem(
                400, f"the header {name.decode('latin-1')} stands twice", headers={"Connection": "close"}
            )
        seen.add(name)


def _by_cookie(
    scope: Scope, headers: Headers, access: Access, now: float, host_policy: HostPolicy
) -> Principal | Problem:
    """Browsers add cookies by themselves, so with a cookie the page that asks matters, even for reading: a page on
    another port of this machine would send our cookie, and could read the stream of events. It may read what all may: a
    link on it leads to the dashboard. A job's ping changes something though it is a GET, so no cookie is good for it: a link
    in a letter is opened as if its address were typed."""
    if scope["path"].startswith(PINGED):
        return _nobody("a job shows its token")
    session = session_of(headers, scope, host_policy)
    if session is None:
        return _nobody("a token is needed: Authorization: Bearer <token>")
    principal = access.session(session, now) or _signed_in_elsewhere(scope, access, now)
    if principal is None:
        return _nobody("you are not signed in any more")
    try:
        check_page(headers, host_policy)
    except Problem as problem:
        return problem
    if scope["method"] not in SAFE and b"origin" not in headers:
        raise Problem(403, "a change by a browser has to say its Origin")
    return principal


def _signed_in_elsewhere(scope: Scope, access: Access, now: float) -> Principal | None:
    """Of a session that another hub on the store knows, and says so."""
    token_id = scope.get(SIGNED_IN) if REACHED in scope else None
    entry = access.tokens.holder(token_id, now) if token_id else None
    return None if entry is None else entry.principal


def _nobody(detail: str, error: str = "") -> Problem:
    challenge = 'Bearer realm="lifesigns"' + (f', error="{error}"' if error else "")
    return Problem(401, detail, headers={"WWW-Authenticate": challenge})
