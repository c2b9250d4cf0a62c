"""Checkpoints that were kept: in files, and the newest one in the state folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lifesigns.errors import UsageError
from lifesigns.hub.audit.seal_file import SealFile


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """A checkpoint, and where it was found."""

    where: str
    note: str


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
        note = file_.read()
        if note is not None:
            found.append(KeptCheckpoint(f"the checkpoint {file_.path}", note))
    return found
