"""The dead-man's switch: somebody outside who expects a ping now and then, and raises an alarm when it stays out."""

from __future__ import annotations

from typing import Protocol


class DeadManSwitch(Protocol):
    """Takes pings. Raises `AdapterError` if it does not."""

    @property
    def name(self) -> str:
        """What it is called in logs, without secrets."""

    async def ping(self) -> None:
        """The hub watches, and all it needs is there."""

    async def close(self) -> None: ...
