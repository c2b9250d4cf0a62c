"""Metrics, for Prometheus. They name agents, so a scraper needs a token that may see agents: a viewer's."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Final

from lifesigns.web.answers import Answer
from lifesigns.web.routes import READERS, Request, Route

if TYPE_CHECKING:
    from lifesigns.web.prometheus import Metrics


async def metrics(request: Request) -> Answer:
    """The fleet and the hub in numbers, in the text format of Prometheus; or OpenMetrics, if the client accepts it."""
    text, content_type = (await _made(request)).text(request.header(b"accept") or "")
    return Answer(text, content_type=content_type.encode())


async def _made(request: Request) -> Metrics:
    site = request.site
    made: Metrics | None = site.metrics
    if made is None:
        # Beside the loop, because it takes a few hundredths of a second. Who asks meanwhile waits for the same import.
        await asyncio.to_thread(import_module, "lifesigns.web.prometheus")
        from lifesigns.web.prometheus import Metrics

        made = site.metrics = Metrics(
            request.service, site.answered, site.rates, site.quotas, site.connections
        )
    return made


CALLS: Final = (
    Route(
        "GET",
        "/metrics",
        READERS,
        metrics,
        str,
        content_types=("text/plain", "application/openmetrics-text"),
    ),
)
