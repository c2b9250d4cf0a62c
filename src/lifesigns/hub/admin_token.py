"""The admin's token in the state folder: how whoever runs the hub on this machine gets in without being asked.

A file that others could read is closed and a warning says so; it is not refused, because a fleet that nobody watches is
worse than a mode bit, and its token is not replaced, because whoever put it there on purpose means that one. A
file that belongs to somebody else is refused: that would be their token, and their key to this hub.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from lifesigns.errors import AdapterError, UsageError
from lifesigns.files import read_private, write_whole
from lifesigns.hub.tokens import TOKEN_MAX, is_token

FILE_NAME: Final = "admin.token"

log: Final = logging.getLogger("lifesigns.hub")


def read(folder: Path) -> str | None:
    """The token in the folder; None if there is no file."""
    path = folder / FILE_NAME
    try:
        found = read_private(path, TOKEN_MAX + 2)
    except UsageError as error:
        raise UsageError(f"{error}; delete it and a new one is made") from error
    if found is None:
        return None
    text, exposed = found
    if exposed:
        log.warning(
            "%s could be read by others, %s; to be safe, revoke its token: a new one is made at once",
            path,
            exposed,
            extra={"action": "admin_token_exposed"},
        )
    text = text.strip()
    if not is_token(text):
        raise UsageError(f"{path} does not hold a token (ls_...); delete it and a new one is made")
    return text.decode("ascii")


def write(folder: Path, token: str) -> None:
    """Put a token into the folder, in the place of one that may be there."""
    path = folder / FILE_NAME
    try:
        write_whole(path, token.encode("ascii") + b"\n")
    except OSError as error:
        raise AdapterError(f"{path} cannot be written: {error.strerror}", transient=False) from error
