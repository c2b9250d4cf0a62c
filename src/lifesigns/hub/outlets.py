"""Outlets: what a hub is started with, and passes its orders, events, rows and canaries to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lifesigns.core.effects import AskSecondOpinion
from lifesigns.hub.order_ledger import OpenOrder
from lifesigns.ports import Belief, Event


class OrderOutlet(Protocol):
    """Delivers orders."""

    def carry_out(self, entry: OpenOrder) -> None: ...
    def withdraw(self, agent_id: str, order_id: str) -> None: ...


class EventOutlet(Protocol):
    """Publishes events."""

    def publish(self, events: Sequence[Event]) -> None: ...


class AlertRows(Protocol):
    """The rows of alerting in the store: it restores them, and returns the changed ones."""

    def recall(self, beliefs: Sequence[Belief]) -> None: ...
    def changed(self) -> Sequence[Belief]: ...


class OpinionOutlet(Protocol):
    """Asks hubs in other zones for a second opinion; the answers come back as signals."""

    def ask(self, order: AskSecondOpinion) -> None: ...


class CanarySender(Protocol):
    """Sends canaries out, and gets them back."""

    source: str

    def send_canary(self, seq: int) -> None: ...
