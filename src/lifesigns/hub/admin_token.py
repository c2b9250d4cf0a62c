"""The admin's token in the state folder: how whoever runs the hub on this machine gets in without being asked.

The file is for its owner alone: see `private_file`.

A file that others could read is closed and a warning says so; it is not refused, because a fleet that nobody watches is
worse than a mode bit, and its token is not replaced, because whoever put it there on purpose means that one. A
file that belongs to somebody else is refused: that would be their token, and their key to this hub.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

from lifesigns.errors import UsageError
from lifesigns.hub import private_file
from lifesigns.hub.private_file import PRIVATE
from lifesigns.hub.tokens import TOKEN_MAX, is_token

FILE_NAME: Final = "admin.token"

log: Final = logging.getLogger("lifesigns.hub")


def read(folder: Path) -> str | None:
    """The token in the folder; None if there is no file."""
    path = folder / FILE_NAME
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}); delete it and a new one is made"
        ) from error
    try:
        _check(path, handle)
        text = os.read(handle, TOKEN_MAX + 2).strip()
    finally:
        os.close(handle)
    if not is_token(text):
        raise UsageError(f"{path} does not hold a token (ls_...); delete it and a new one is made")
    return text.decode("ascii")


def write(folder: Path, token: str) -> None:
    """Put a token into the folder, in the place of one that may be there."""
    private_file.write(folder / FILE_NAME, token.encode("ascii") + b"\n")


def _check(path: Path, handle: int) -> None:
    """A plain file, ours, and nobody else's to read."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{path} is not a file; delete it and a new one is made")
    if not hasattr(os, "geteuid"):
        return  # Windows: the folder below the user's profile is the user's by inheritance.
    if found.st_uid not in (os.geteuid(), 0):
        raise UsageError(
            f"{path} belongs to user {found.st_uid}, not to {os.geteuid()} who runs this hub; delete it"
        )
    if found.st_mode & 0o077:
        try:
            os.fchmod(handle, PRIVATE)
        except OSError as error:
            outcome = f"and that could not be changed ({error.strerror})"
        else:
            outcome = "and is closed now"
        log.warning(
            "%s could be read by others, %s; to be safe, revoke its token: a new one is made at once",
            path,
            outcome,
            extra={"action": "admin_token_exposed"},
        )
