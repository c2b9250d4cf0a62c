"""Calls from hub to hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class HubAnswer(NamedTuple):
    """What another hub answered."""

    status: int
    headers: Mapping[str, str]
    """By name, in small letters."""
    body: bytes


class HubCaller(Protocol):
    """Posts to other hubs. Raises `AdapterError` if there is no answer in time."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], within: float) -> HubAnswer: ...

    async def close(self) -> None: ...
