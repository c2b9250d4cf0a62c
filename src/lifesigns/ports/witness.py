"""The witness: somebody elsewhere who keeps every checkpoint of the audit log, so that the hub can be held to it."""

from __future__ import annotations

from typing import Protocol


class Witness(Protocol):
    """Takes checkpoints. Raises `AdapterError` if it does not."""

    @property
    def name(self) -> str:
        """What it is called in logs, without secrets."""

    async def keep(self, note: str) -> None:
        """This is the newest one. It may come twice."""

    async def close(self) -> None: ...
