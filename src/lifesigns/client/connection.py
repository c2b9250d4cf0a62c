"""Connection: a hub's address and how to talk to it. Of several hubs, with commas between them, we use one until it
does not answer.

We send a token only to the given address and follow no redirect. A hub on this machine is reached directly, whatever
proxy the environment names; for one elsewhere the environment's proxy counts.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from lifesigns.client.request import Reply, Request
from lifesigns.client.tries import Tries
from lifesigns.config import hub_locator
from lifesigns.errors import UsageError
from lifesigns.wire.addresses import addresses_of, exposure, is_loopback

CONNECT_FOR: Final = 5.0
SILENT_FOR: Final = 45.0
"""A stream of events sends something every 15 s; after two missing ones it is dead."""


class Connection:
    """What both clients need to know about a hub."""

    def __init__(self, hub: str | None, token: str | None, timeout: float, retry_for: float) -> None:
        locator = hub_locator.find(os.environ, hub, token)
        self._hubs = [_checked(address) for address in addresses_of(locator.hub)]
        self.token = locator.token
        self.timeout = timeout
        self.retry_for = retry_for
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token):
            raise UsageError("token has signs that no HTTP header can carry: is there a line break in it?")
        if self.token is not None and (why := next(filter(None, map(exposure, self._hubs)), "")):
            raise UsageError(why)
        for name, value in (("timeout", self.timeout), ("retry_for", self.retry_for)):
            if not value >= 0:
                raise UsageError(f"{name} is {value!r}, but it is a number of seconds")

    @property
    def hub(self) -> str:
        """The current one."""
        return self._hubs[0]

    def tries(self, request: Request[Any], now: float) -> Tries:
        """The tries of one call."""
        return Tries(request, self.hub, self.retry_for, now, hubs=len(self._hubs))

    def move_on(self) -> None:
        """Switch to the next hub, if there are several. Threads that do so at once skip one at worst."""
        self._hubs = [*self._hubs[1:], self._hubs[0]]

    def settings(self) -> dict[str, Any]:
        """The constructor arguments of httpx2's clients."""
        headers = {"user-agent": "lifesigns-client", "accept": "application/json"}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        return {
            "headers": headers,
            "verify": _trust(self._hubs),
            "trust_env": not any(is_loopback(hub) for hub in self._hubs),
            "timeout": self._timeout(self.timeout),
            "follow_redirects": False,
        }

    def request_arguments(self, request: Request[Any]) -> dict[str, Any]:
        """The arguments of httpx2 for a request."""
        headers = dict(request.headers)
        if request.body is not None:
            headers["content-type"] = "application/json"
        return {
            "method": request.method,
            "url": f"{self.hub.rstrip('/')}{request.path}",
            "params": list(request.query),
            "content": request.body,
            "headers": headers,
            "timeout": self._timeout(self.timeout + request.waits_for),
        }

    def stream_arguments(self, request: Request[Any], last_id: str) -> dict[str, Any]:
        """The arguments of httpx2 to listen to a stream."""
        headers = {"accept": "text/event-stream"}
        if last_id:
            headers["last-event-id"] = last_id
        return {**self.request_arguments(request), "headers": headers, "timeout": self._timeout(SILENT_FOR)}

    def _timeout(self, answer_for: float) -> httpx2.Timeout:
        return httpx2.Timeout(answer_for, connect=min(CONNECT_FOR, answer_for))


def reply_of(response: httpx2.Response) -> Reply:
    """A whole response as a value."""
    return Reply(response.status_code, response.headers, response.content)


def was_heard(error: Exception) -> bool:
    """Whether the hub may have received a failed request: not if no connection came about."""
    return not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def _seen(text: str) -> bool:
    """Whether it has neither spaces nor invisible characters."""
    return text.isprintable() and " " not in text


def _checked(hub: str) -> str:
    try:
        parts = urlsplit(hub)
        parts.port  # noqa: B018 -- raises if it is none
        httpx2.URL(hub)
    except (ValueError, httpx2.InvalidURL) as error:
        raise UsageError(f"hub is {hub!r}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not _seen(hub):
        raise UsageError(f"hub is {hub!r}, but a client needs an address like http://127.0.0.1:8710")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(
            f"hub is {parts.scheme}://{parts.hostname}...: it takes no user, query or fragment; "
            "a token is given as token= or LIFESIGNS_TOKEN"
        )
    return hub


def _trust(hubs: Sequence[str]) -> ssl.SSLContext:
    """The system's authorities or those of `SSL_CERT_FILE`, as in the sender; without TLS we do not load them, which
    would take longer than the rest of a small call."""
    if any(urlsplit(hub).scheme == "https" for hub in hubs):
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
