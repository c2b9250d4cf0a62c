"""Quotas: how much one source (a token, the bus) may hold here at once. The engine refuses what exceeds it; no other
source notices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from lifesigns.core.policy import FleetPolicy


class Quota(StrEnum):
    """What is counted by source."""

    AGENTS = "agents"
    MESSAGES = "messages"
    CLAIMS = "claims"
    TASKS = "tasks"


class HasSource(Protocol):
    """Something that counts for a source."""

    @property
    def source(self) -> str: ...


class Quotas:
    """How much each source holds. Counted again after a restart, so nothing of it is stored."""

    def __init__(self, policy: FleetPolicy, things: Mapping[Quota, Iterable[HasSource]]) -> None:
        self._limits = {
            Quota.MESSAGES: policy.messages_per_source,
            Quota.CLAIMS: policy.claims_per_source,
            Quota.TASKS: policy.tasks_per_source,
        }
        self._held: dict[Quota, dict[str, int]] = {quota: {} for quota in self._limits}
        self.refused = dict.fromkeys(Quota, 0)
        """How often each was exceeded."""
        for quota, those in things.items():
            for one in those:
                self.take(quota, one.source)

    def refusal(self, quota: Quota, source: str) -> str | None:
        """Why this source cannot have one more, or None."""
        if self._held[quota].get(source, 0) < self._limits[quota]:
            return None
        return f"the limit of {self._limits[quota]} {quota} per source is reached"

    def take(self, quota: Quota, source: str) -> None:
        held = self._held[quota]
        held[source] = held.get(source, 0) + 1

    def give_back(self, quota: Quota, source: str) -> None:
        held = self._held[quota]
        held[source] -= 1
        if not held[source]:
            del held[source]
