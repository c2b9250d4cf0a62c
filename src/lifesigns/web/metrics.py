"""Metrics, for Prometheus. They name agents, so they are for those who may see agents: a scraper needs a viewer's token."""

from __future__ import annotations

from typing import Final

from lifesigns.web.answers import Answer
from lifesigns.web.routes import READERS, Request, Route


async def metrics(request: Request) -> Answer:
    """The fleet and the hub in numbers, in the text format of Prometheus; OpenMetrics for who accepts it."""
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
