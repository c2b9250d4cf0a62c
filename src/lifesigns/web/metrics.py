"""Metrics, for Prometheus. They name agents, so they are for those who may see agents: a scraper needs a viewer's token."""

from __future__ import annotations

from typing import Final

from lifesigns.web.answers import Answer
from lifesigns.web.calls import READERS, Asked, Call


async def metrics(asked: Asked) -> Answer:
    """The fleet and the hub in numbers, in the text format of Prometheus; OpenMetrics for who accepts it."""
    text, content_type = asked.site.metrics.text(asked.header(b"accept") or "")
    return Answer(text, content_type=content_type.encode())


CALLS: Final = (
    Call(
        "GET",
        "/metrics",
        READERS,
        metrics,
        str,
        content_types=("text/plain", "application/openmetrics-text"),
    ),
)
