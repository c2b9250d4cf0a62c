"""Grouping: alerts of one kind that come together share a notice.

A host that dies, a provider that refuses, a network that is cut: each is one problem and many alerts. They are grouped
by host if few hosts account for nearly all of them, else by provider, else as the whole fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lifesigns.hub.alerting.alerts import Alert

FLEET: Final = "fleet"
PARTS_MAX: Final = 3
"""More groups than this at once point to a larger problem."""


def parted(alerts: Sequence[Alert], group_from: int) -> dict[str, list[Alert]]:
    """Alerts by group; under the empty name those that stay single."""
    if len(alerts) < group_from:
        return {"": list(alerts)}
    for place in ("host", "provider"):
        parts: dict[str, list[Alert]] = {}
        for alert in alerts:
            parts.setdefault(getattr(alert, place), []).append(alert)
        large = {f"{place} {name}": part for name, part in parts.items() if name and len(part) >= group_from}
        rest = len(alerts) - sum(map(len, large.values()))
        if large and len(large) <= PARTS_MAX and rest < group_from:
            grouped = {id(alert) for part in large.values() for alert in part}
            alone = [alert for alert in alerts if id(alert) not in grouped]
            return {**large, "": alone} if alone else large
    return {FLEET: list(alerts)}


def group_key(kind: str, group: str) -> str:
    """The key of a group."""
    return f"{kind}@{group}"
