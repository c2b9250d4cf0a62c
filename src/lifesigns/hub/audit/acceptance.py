"""A person's decision to continue a log as it is: a file in the state folder, made by `lifesigns audit accept`.

Not a call of the API: a stolen token must not be enough. A user who can write to the state folder owns the hub.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from lifesigns.errors import UsageError
from lifesigns.files import read_private, write_whole

FILE_NAME: Final = "audit.accept"
SIZE_MAX: Final = 16_384


class Acceptance(msgspec.Struct):
    """Who accepts it, and why."""

    by: str
    reason: str


def request(folder: Path, by: str, reason: str) -> None:
    """Write the file for the hub."""
    write_whole(folder / FILE_NAME, msgspec.json.encode(Acceptance(by, reason)))


def requested(folder: Path) -> Acceptance | None:
    """What the file says. Raises `UsageError` if it is not from the user who runs the hub."""
    contents = read_private(folder / FILE_NAME, SIZE_MAX)
    if contents is None:
        return None
    try:
        return msgspec.json.decode(contents[0], type=Acceptance)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{folder / FILE_NAME} cannot be read: {error}") from error


def clear(folder: Path) -> None:
    """Remove the file."""
    (folder / FILE_NAME).unlink(missing_ok=True)
