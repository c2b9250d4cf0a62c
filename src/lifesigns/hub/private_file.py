"""Files for their owner alone: written beside their place and moved there, so that nobody ever reads half of one; the mode is
set before anything is in it, whatever the umask."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from lifesigns.errors import AdapterError

PRIVATE: Final = 0o600


def write(path: Path, content: bytes) -> None:
    """Put this into the file, in the place of one that may be there. Raises `AdapterError`."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        try:
            with os.fdopen(handle, "wb") as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), PRIVATE)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise AdapterError(f"{path} cannot be written: {error.strerror}", transient=False) from error
