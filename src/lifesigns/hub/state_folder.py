"""The state folder: one hub at a time, and where that hub can be found.

`hub.lock` is held by the running hub and let go by the system when it ends, however it ends. `hub.url` says where it
listens, for every client of the same user; it stays behind after a crash, and then a client is told that nobody answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lifesigns.errors import UsageError
from lifesigns.files import write_whole

LOCK: Final = "hub.lock"
URL: Final = "hub.url"
DATABASE: Final = "lifesigns.db"


def default_store(state: Path) -> str:
    """Where a hub keeps what it knows if nothing else is said."""
    return f"sqlite://{state / DATABASE}"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """The folder is ours for the time of the block; made if it is not there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise UsageError(
            f"the state folder {folder} cannot be used: {error.strerror}; choose another with --state"
        ) from error
    try:
        if not _locked(handle):
            holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
            raise UsageError(
                f"a hub (process {holder or 'unknown'}) serves from {folder} already; stop it, or choose another --state"
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


@contextmanager
def announced(folder: Path, url: str) -> Iterator[None]:
    """Clients of this folder find the hub at `url` for the time of the block."""
    path = folder / URL
    write_whole(path, f"{url}\n".encode(), mode=0o644)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _locked(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows: the port is the only guard there.
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
