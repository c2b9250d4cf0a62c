"""Receipts: what became of received messages; and a beat as received."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lifesigns.views.moments import Moment


class RejectedMessage(Struct):
    """A refused message of a delivery: its place, the field, and why."""

    index: int
    field: str
    detail: str


class Receipt(Struct):
    """The result of a delivery, and the orders waiting for these agents."""

    accepted: int
    rejected: list[RejectedMessage]
    orders: Mapping[str, list[Mapping[str, Any]]]


class LastBeat(Struct):
    """A beat as received."""

    received_at: Moment
    beat: Any
