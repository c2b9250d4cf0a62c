"""Receipts: what became of messages that were handed in, and a beat as it was received."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lifesigns.views.moments import Moment


class RejectedMessage(Struct):
    """One message of a delivery that was not accepted: which, what about it, and why."""

    index: int
    field: str
    detail: str


class Receipt(Struct):
    """What became of a delivery, and the orders that wait for these agents."""

    accepted: int
    rejected: list[RejectedMessage]
    orders: Mapping[str, list[Mapping[str, Any]]]


class LastBeat(Struct):
    """A beat as it was received."""

    received_at: Moment
    beat: Any
