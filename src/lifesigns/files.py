"""Files that exist as a whole or not at all: written beside their place, synced, then moved there. And files for their
owner alone."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO, Final

from lifesigns.errors import UsageError

PRIVATE: Final = 0o600


def write_whole(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write the file, or replace it; makes a missing folder.

    The mode is set before the content, whatever the umask. While it is written, its name begins with a dot.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            file.write(content)
            sync(file)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync(file: BinaryIO) -> None:
    """Return when the written bytes are on disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """A new name is on disk only when its folder is."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_private(path: Path, size_max: int) -> tuple[bytes, str] | None:
    """The content of a file of ours, at most `size_max` bytes, and what we did if others could read it (usually
    nothing); None if there is no file. Raises `UsageError` if another user owns it, or it is no file."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    try:
        exposed = _restrict_to_owner(path, handle)
        return os.read(handle, size_max), exposed
    finally:
        os.close(handle)


def _restrict_to_owner(path: Path, handle: int) -> str:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path} is not a file")
    if not hasattr(os, "geteuid"):
        return ""  # Windows: a folder below the user's profile is the user's by inheritance.
    if status.st_uid not in (os.geteuid(), 0):
        raise UsageError(f"{path} belongs to user {status.st_uid}, not to {os.geteuid()} who runs this hub")
    if not status.st_mode & 0o077:
        return ""
    try:
        os.fchmod(handle, PRIVATE)
    except OSError as error:
        return f"and that could not be changed ({error.strerror})"
    return "and is closed now"
