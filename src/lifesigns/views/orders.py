"""Orders that wait for agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Orders(Struct, frozen=True):
    """The orders waiting for one agent, oldest first. Each is offered again until it is acknowledged or settled."""

    orders: list[Mapping[str, Any]]


class OrdersByAgent(Struct, frozen=True):
    """The orders waiting for several agents; agents without orders are left out."""

    orders: Mapping[str, list[Mapping[str, Any]]]
