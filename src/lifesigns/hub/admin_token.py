"""The admin's token in the state folder: lets the person who runs the hub on this machine in, without a prompt.

The hub closes a file that others could read, and logs a warning. It does not refuse the file, because an unwatched
fleet is worse than a mode bit, and it does not replace the token, because its owner may have put it there on purpose.
It refuses a file with another owner: that would be their token, and their key to this hub.
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
        contents = read_private(path, TOKEN_MAX + 2)
    except UsageError as error:
        raise UsageError(f"{error}; delete it and a new one is made") from error
    if contents is None:
        return None
    text, exposed = contents
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
    """Write a token into the folder, in place of the one that may be there."""
    path = folder / FILE_NAME
    try:
        write_whole(path, token.encode("ascii") + b"\n")
    except OSError as error:
        raise AdapterError(f"{path} cannot be written: {error.strerror}", transient=False) from error
