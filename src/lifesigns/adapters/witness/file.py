"""FileWitness: a file to which every checkpoint is added, best on another disk or a share of another machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from lifesigns.errors import AdapterError


class FileWitness:
    """Adds checkpoints to a file. Implements `lifesigns.ports.Witness`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    async def keep(self, note: str) -> None:
        """On the disk when this returns. A disk that hangs holds one thread, and not the hub."""
        try:
            await asyncio.to_thread(self._add, note)
        except OSError as error:
            raise AdapterError(f"{self._path}: {error.strerror}") from error

    async def close(self) -> None:
        """There is nothing to close."""

    def _add(self, note: str) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, f"{note}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)
