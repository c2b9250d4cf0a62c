"""Quotas of the web: what one token may have open here at once. The engine has those of agents (`core/quotas.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from lifesigns.config.values import Limits
from lifesigns.core.quotas import Quota
from lifesigns.hub.principals import Principal
from lifesigns.hub.service import Service
from lifesigns.hub.sign_in import LINK_FOR
from lifesigns.web.answers import Problem


class WebQuotas:
    """Refuses what exceeds a token's quota, and counts it. Other tokens do not notice."""

    def __init__(self, service: Service, limits: Limits) -> None:
        self._service = service
        self._limits = limits
        self._refused = {"event_streams": 0, "sign_in_links": 0}

    def refused(self) -> Iterator[tuple[str, int]]:
        """By quota, with those of the engine: how often it was exceeded."""
        yield from self._refused.items()
        yield from self._service.engine.quota_refusals().items()

    def check_stream(self, who: Principal) -> None:
        """Raises a `Problem` if this token has too many streams."""
        limit = self._limits.streams_per_token
        if self._service.feed.listeners_of(who.token_id) >= limit:
            raise self._over("event_streams", who, f"{limit} event streams open", 10)

    def check_link(self, who: Principal, now: float) -> None:
        """Raises a `Problem` if this token has too many unopened links."""
        limit = self._limits.links_per_token
        waits = self._service.access.sign_ins.links_of(who.token_id, now)
        if len(waits) >= limit:
            oldest = min(waits, default=LINK_FOR)
            raise self._over("sign_in_links", who, f"{limit} sign-in links that nobody opened", oldest)

    def check(self, quota: Quota, agent_id: str) -> None:
        """Raises a `Problem` if the engine refused something by the quota of its source."""
        engine = self._service.engine
        agent = engine.agent(agent_id)
        if agent is not None and (full := engine.quota_refusal(quota, agent)):
            raise Problem(429, full, headers={"Retry-After": "60"})

    def _over(self, quota: str, who: Principal, what: str, wait: float) -> Problem:
        self._refused[quota] += 1
        return Problem(
            429,
            f"{who.name!r} has {what}, which is its limit",
            headers={"Retry-After": str(max(1, ceil(wait)))},
        )
