"""The newest seal in the state folder: it exposes an attacker who cuts the log in the database, seals and all."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Final

from lifesigns.errors import UsageError
from lifesigns.files import write_whole
from lifesigns.hub.audit.notes import NOTE_MAX

FILE_NAME: Final = "audit.checkpoint"

log: Final = logging.getLogger("lifesigns.hub")


class SealFile:
    """A file that is always replaced as a whole, and never by an older seal."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._size = -1
        self._writing = threading.Lock()

    def read(self) -> str | None:
        """The note in it; None if there is none. Raises `UsageError` if it cannot be read."""
        try:
            with self.path.open("rb") as file:
                return file.read(NOTE_MAX + 1).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}") from error

    def begin(self, note: str) -> None:
        """Write the seal of an empty log, if there is no seal yet."""
        if not self.path.exists():
            self.write(0, note)

    def write(self, size: int, note: str) -> None:
        """Replace the seal. If the disk fails, log it: the log itself is stored elsewhere."""
        with self._writing:
            if size <= self._size:
                return
            try:
                write_whole(self.path, note.encode(), mode=0o644)
            except OSError as error:
                log.warning(
                    "%s was not written: %s",
                    self.path,
                    error.strerror,
                    extra={"action": "audit_seal_not_written"},
                )
            else:
                self._size = size
