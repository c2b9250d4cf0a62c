"""Where the contents of checkpoints are kept."""

from __future__ import annotations

from typing import Final, Protocol

from lifesigns.errors import AdapterError

DIGEST_SIZE: Final = 64
"""SHA-256 in lower-case hexadecimal."""

HERE: Final = "hub:sha256:"
"""What the digest of a checkpoint begins with whose content the hub keeps."""


class TooLarge(AdapterError):
    """There is no room for this content, and there will be none."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=False)


class Contents(Protocol):
    """Keeps contents by their SHA-256, each for a task. All methods raise `AdapterError` if they cannot."""

    async def keep(self, task_id: str, content: bytes) -> str:
        """Keep it, and return its digest when it is on the disk. What is there already is not written again. Older
        contents of the task go if there is no room; raises `TooLarge` if that does not help."""

    async def read(self, task_id: str, digest: str) -> bytes | None:
        """What lies under this digest, whether or not it still is what it was; None if there is nothing."""
