"""Contents of checkpoints in a folder: `<folder>/<task>/<digest>`, a file each, named by its SHA-256.

A file gets its name only when all of it is on disk: we write it under another name, flush it and rename it. Nothing is
changed in place. Without room, the oldest goes: first the oldest of a task beyond its share, then the oldest of all
tasks; the newest of each task goes last.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import Struct

from lifesigns.errors import AdapterError
from lifesigns.files import sync_folder, write_whole
from lifesigns.ports import TooLarge

MB: Final = 1024 * 1024
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Room(Struct, frozen=True):
    """The limits."""

    content_bytes: int = 64 * MB
    task_contents: int = 64
    """As many as the engine remembers of a task's chain."""
    task_bytes: int = 256 * MB
    total_bytes: int = 2048 * MB


@dataclass(slots=True)
class _File:
    path: Path
    size: int
    kept_at: int


class FolderContents:
    """`Contents` in a folder of this machine. Only one process writes there."""

    def __init__(self, folder: Path, room: Room | None = None) -> None:
        self._folder = folder
        self._room = room or Room()
        self._turn = threading.Lock()
        self._total: int | None = None
        """Bytes in the folder; None before the first scan."""

    async def keep(self, task_id: str, content: bytes) -> str:
        return await asyncio.to_thread(self._keep, task_id, content)

    async def read(self, task_id: str, digest: str) -> bytes | None:
        return await asyncio.to_thread(self._read, task_id, digest)

    # --- in a thread ----------------------------------------------------------------------------------

    def _keep(self, task_id: str, content: bytes) -> str:
        room = self._room
        most = min(room.content_bytes, room.task_bytes, room.total_bytes)
        if len(content) > most:
            raise TooLarge(f"{len(content)} bytes are more than a checkpoint may have ({most})")
        digest = hashlib.sha256(content).hexdigest()
        path = self._place(task_id) / digest
        try:
            with self._turn:
                if _holds(path, content):
                    os.utime(path)  # It is the newest again.
                else:
                    self._write(path, content)
                    self._make_room(path)
        except OSError as error:
            # A full disk may have room again, and most other troubles of a disk may pass.
            full = " (it is full)" if error.errno in _FULL else ""
            raise AdapterError(
                f"{self._folder} does not take a checkpoint: {error.strerror}{full}", transient=True
            ) from error
        return digest

    def _read(self, task_id: str, digest: str) -> bytes | None:
        try:
            with (self._place(task_id) / digest).open("rb") as file:
                return file.read(self._room.content_bytes + 1)
        except (FileNotFoundError, IsADirectoryError):
            return None
        except OSError as error:
            raise AdapterError(
                f"a checkpoint in {self._folder} cannot be read: {error.strerror}", transient=True
            ) from error

    def _place(self, task_id: str) -> Path:
        """A task's id may be anything, also a path upwards, so the folder's name is the id's digest."""
        return self._folder / hashlib.sha256(task_id.encode()).hexdigest()[:32]

    def _write(self, path: Path, content: bytes) -> None:
        replaced = path.stat().st_size if path.exists() else 0
        write_whole(path, content)
        sync_folder(self._folder)
        if self._total is not None:
            self._total += len(content) - replaced

    # --- room -----------------------------------------------------------------------------------------

    def _make_room(self, newest: Path) -> None:
        if self._total is None:
            self._total = sum(file.size for file in self._files())
        mine = sorted(_files_in(newest.parent), key=lambda file: file.kept_at)
        mine_bytes = sum(file.size for file in mine)
        while len(mine) > self._room.task_contents or mine_bytes > self._room.task_bytes:
            oldest = next(file for file in mine if file.path != newest)
            mine.remove(oldest)
            mine_bytes -= oldest.size
            self._drop(oldest)
        if self._total > self._room.total_bytes:
            for file in self._oldest_first(newest):
                self._drop(file)
                if self._total <= self._room.total_bytes:
                    return

    def _oldest_first(self, spared: Path) -> list[_File]:
        """Everything that may go; the newest of each task last."""
        files = list(self._files())
        newest: dict[Path, _File] = {}
        for file in files:
            newer = newest.get(file.path.parent)
            if newer is None or file.kept_at > newer.kept_at:
                newest[file.path.parent] = file
        droppable = [file for file in files if file.path != spared]
        return sorted(droppable, key=lambda file: (newest[file.path.parent] is file, file.kept_at))

    def _drop(self, file: _File) -> None:
        file.path.unlink(missing_ok=True)
        self._total = (self._total or 0) - file.size
        with suppress(OSError):  # The folder is not empty.
            file.path.parent.rmdir()

    def _files(self) -> Iterator[_File]:
        for task in os.scandir(self._folder):
            if task.is_dir(follow_symlinks=False):
                yield from _files_in(Path(task.path))


def _files_in(folder: Path) -> Iterator[_File]:
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            state = entry.stat(follow_symlinks=False)
            yield _File(Path(entry.path), state.st_size, state.st_mtime_ns)


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file exists and is intact: a damaged one is written again."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False
