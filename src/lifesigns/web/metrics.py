"""Metrics, for Prometheus. They name agents, so a scraper needs a token that may see agents: a viewer's."""

from __future__ import annotations

from typing import Final

from lifesigns.web.answers import Answer
from lifesigns.web.routes import READERS, Request, Route


async def metrics(request: Request) -> Answer:
    """The fleet and the hub in numbers, in the text format of Prometheus; or OpenMetrics, if the client accepts it."""
    text, content_type = request.site.metrics.text(request.header(b"accept") or "")
    return Answer(text, content_type=content_type.encode())


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
