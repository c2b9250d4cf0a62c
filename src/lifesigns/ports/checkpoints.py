"""Where the contents of checkpoints are kept."""

from __future__ import annotations

from typing import Final, Protocol

from lifesigns.errors import AdapterError

HERE: Final = "hub:sha256:"
"""The prefix of a checkpoint's digest if the hub keeps its content."""


class TooLarge(AdapterError):
    """There is no room for this content, and there will be none."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=False)


class Contents(Protocol):
    """Stores contents by their SHA-256, each for a task. All methods raise `AdapterError` on failure."""

    async def keep(self, task_id: str, content: bytes) -> str:
        """Store the content, and return its digest when it is on disk. Existing content is not written again. If there
        is no room, the task's older contents go; raises `TooLarge` if that does not help."""

    async def read(self, task_id: str, digest: str) -> bytes | None:
        """The content under this digest, unverified; None if there is none."""
