"""The API, row by row."""

from __future__ import annotations

from typing import Final

from lifesigns.web import (
    agents,
    alerts,
    audit,
    beats_and_orders,
    breakers,
    checkpoints,
    claims,
    events,
    fleet,
    groups,
    history,
    hooks,
    hubs,
    interventions,
    memory,
    messages,
    metrics,
    openapi,
    otlp,
    pings,
    probes,
    recoveries,
    recovery,
    sessions,
    silences,
    tasks,
    tokens,
)

ROWS: Final = (
    *beats_and_orders.CALLS,
    *agents.CALLS,
    *history.CALLS,
    *otlp.CALLS,
    *pings.CALLS,
    *hooks.CALLS,
    *interventions.CALLS,
    *fleet.CALLS,
    *events.CALLS,
    *groups.CALLS,
    *hubs.CALLS,
    *alerts.CALLS,
    *silences.CALLS,
    *breakers.CALLS,
    *tasks.CALLS,
    *checkpoints.CALLS,
    *claims.CALLS,
    *recovery.CALLS,
    *recoveries.CALLS,
    *messages.CALLS,
    *memory.CALLS,
    *audit.CALLS,
    *tokens.CALLS,
    *sessions.CALLS,
    *metrics.CALLS,
    *probes.CALLS,
)

CALLS: Final = (*ROWS, *openapi.about(ROWS))
"""All of them, and the routes that describe them."""
