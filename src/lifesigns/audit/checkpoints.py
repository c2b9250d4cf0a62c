"""Stored checkpoints: in files, and the newest one in the state folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from lifesigns.errors import UsageError
from lifesigns.hub.audit import notes
from lifesigns.hub.audit.seal_file import SealFile

TIMEOUT: Final = 30.0


class KeptCheckpoint(Struct, frozen=True):
    """A checkpoint, and where it is stored."""

    where: str
    note: str | None
    """None: missing from where a hub writes it."""


def kept_checkpoints(files: Iterable[Path], state: Path | None = None) -> list[KeptCheckpoint]:
    """The checkpoints in these files, and in the state folder if there is one there."""
    found = []
    for file in files:
        try:
            found.append(KeptCheckpoint(f"the checkpoint {file}", file.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the checkpoint {file} cannot be read: {error}") from error
    if state is not None:
        file_ = SealFile(state)
        found.append(KeptCheckpoint(f"the checkpoint {file_.path}", file_.read()))
    return found


def witnessed(place: str) -> list[KeptCheckpoint]:
    """All checkpoints of this witness: a file, or the answer of an address to GET."""
    text = (
        _fetched(place)
        if place.startswith(("http://", "https://"))
        else _read(Path(place.removeprefix("file:")))
    )
    found = [KeptCheckpoint(f"a checkpoint of the witness {place}", note) for note in notes.split(text)]
    if not found:
        raise UsageError(f"the witness {place} has no checkpoint")
    return found


def _fetched(url: str) -> str:
    import httpx2

    try:
        answer = httpx2.get(url, timeout=TIMEOUT, follow_redirects=True)
        answer.raise_for_status()
    except httpx2.HTTPError as error:
        raise UsageError(f"the witness {url} does not answer: {error}") from error
    return answer.text


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the witness {path} cannot be read: {error}") from error
