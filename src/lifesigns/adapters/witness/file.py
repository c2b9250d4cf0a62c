"""FileWitness: a file to which every checkpoint is added, best on another disk or a share of another machine."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

from lifesigns.errors import AdapterError
from lifesigns.files import sync


class FileWitness:
    """Adds checkpoints to a file. Implements `lifesigns.ports.Witness`.

    A share that hangs, hangs for ever: it holds one thread of ours, which neither the hub nor its end waits for.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = False
        self.name = str(path)

    async def keep(self, note: str) -> None:
        """On the disk when this returns."""
        if self._writing:
            raise AdapterError(f"{self._path}: the disk does not answer")
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()

        def settle(error: OSError | None) -> None:
            self._writing = False
            if not written.done():
                written.set_result(None) if error is None else written.set_exception(error)

        def write() -> None:
            failed: OSError | None = None
            try:
                self._add(note)
            except OSError as error:
                failed = error
            with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                loop.call_soon_threadsafe(settle, failed)

        self._writing = True
        threading.Thread(target=write, name="lifesigns witness file", daemon=True).start()
        try:
            await written
        except OSError as error:
            raise AdapterError(f"{self._path}: {error.strerror}") from error

    async def close(self) -> None:
        """There is nothing to close."""

    def _add(self, note: str) -> None:
        with self._path.open("ab") as file:
            file.write(f"{note}\n".encode())
            sync(file)
