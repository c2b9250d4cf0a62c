"""The spool: events that came while the hub was away, left by the client as files.

A file is named `MOMENT@PROGRAM` and has two lines: what the client knows (`pid=..&started=..&project=..`), and the event. Only what changes the state of a
session is left there (the client's list, and `LATE` here): calls that are heard late, all at once, would look like a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from lifesigns.errors import LifesignsError, WireError
from lifesigns.files import read_private
from lifesigns.integrations.hooks.events import HookEvent, Origin, read

FILE_MAX: Final = 256 * 1024
FILES_MAX: Final = 1000
LATE: Final = frozenset(
    {"SessionStart", "SessionEnd", "UserPromptSubmit", "Notification", "Stop", "StopFailure", "Interrupt"}
)

Spooled = tuple[str, HookEvent, Origin]


def origin_of(query: str) -> Origin:
    """What the client knows, as it writes it."""
    try:
        return msgspec.convert(dict(parse_qsl(query)), Origin, strict=False)
    except msgspec.ValidationError as error:
        raise WireError("", str(error)) from None


def take(folder: Path) -> Iterator[Spooled]:
    """The events in the spool, oldest first, each once. A file that is no event is dropped."""
    try:
        paths = sorted(folder.iterdir())[:FILES_MAX]
    except OSError:
        return
    for path in paths:
        _, complete, program = path.name.rpartition("@")
        if not complete:
            continue  # In the making.
        try:
            found = read_private(path, FILE_MAX)
            path.unlink(missing_ok=True)
            if found is None:
                continue
            query, _, raw = found[0].partition(b"\n")
            yield program, read(raw), origin_of(query.decode("ascii", "replace"))
        except (LifesignsError, OSError):
            continue
