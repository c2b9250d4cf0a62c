"""Tries: whether and when to retry a failed call. No clock and no sleep: `now` comes in.

The law: a call that the hub may have received is retried only if receiving it twice is the same as once. A call that it
cannot have received, because it was not there or refused it unread, is always safe to retry.
"""

from __future__ import annotations

import os
import random
from typing import Any, Final

from lifesigns.client.request import Reply, Request
from lifesigns.errors import HubError

WAIT_MIN: Final = 0.1
WAIT_MAX: Final = 5.0
AGAIN: Final = frozenset({429, 502, 503, 504})
UNHEARD: Final = frozenset({429})
"""Refused before the hub read it."""


class Tries:
    """The tries of one call, for at most `retry_for` seconds; each of several hubs gets one, whatever that limit."""

    def __init__(
        self, request: Request[Any], hub: str, retry_for: float, now: float, *, hubs: int = 1
    ) -> None:
        self._request = request
        self._hub = hub
        self._hubs = hubs
        self._until = now + retry_for + request.waits_for
        self._made = 0

    def after_reply(self, reply: Reply, now: float) -> float | None:
        """How long to wait before the next try; None if this reply is the answer, good or bad."""
        request = self._request
        if reply.status not in AGAIN or reply.status in request.also_good:
            return None
        if not request.repeatable and reply.status not in UNHEARD:
            return None
        return self._wait(now, reply.retry_after)

    def after_failure(self, error: Exception, now: float, *, heard: bool) -> float:
        """How long to wait before the next try. Raises `HubError` if there is none."""
        wait = None if heard and not self._request.repeatable else self._wait(now, None)
        if wait is None:
            raise HubError(f"{self._hub}: {error_text(error)}") from error
        return wait

    def _wait(self, now: float, hub_wants: float | None) -> float | None:
        """None if that would be too long."""
        self._made += 1
        if self._made < self._hubs:
            return 0.0
        wait = max(backoff(self._made), hub_wants or 0.0)
        return wait if now + wait <= self._until else None


def backoff(tries: int) -> float:
    """Twice as long each time, and never quite the same: those who failed together come back one by one."""
    most = min(WAIT_MIN * 2.0 ** min(tries, 16), WAIT_MAX)
    return most * random.uniform(0.5, 1.0)  # noqa: S311 -- spreads, hides nothing


def error_text(error: Exception) -> str:
    """The text of a network error; of a refused connection the same from every client, whatever its library calls it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionError) and cause.errno:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
