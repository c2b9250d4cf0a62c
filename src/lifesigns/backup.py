"""Backup and restore of a hub's state folder, as one file.

    manifest.json       the format, and size and digest of everything else
    state/lifesigns.db  the SQLite store at one moment
    state/...           everything else of the state folder: the audit key, tokens, checkpoint contents, respawn records

The order matters while the hub runs. We copy the newest checkpoint of the audit log before the store, or it could seal
entries that the copy of the store does not have; checkpoint contents after it, because the store names them once they
are stored.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from lifesigns.config.account import masked
from lifesigns.errors import UsageError
from lifesigns.files import PRIVATE, sync
from lifesigns.hub.audit import seal_file
from lifesigns.hub.state_folder import DATABASE, LOCK, URL, claimed, default_store, sqlite_path

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
INSIDE: Final = "state"
MANIFEST_MAX: Final = 256 * 1024 * 1024
_OF_ONE_RUN: Final = frozenset((LOCK, URL))
"""The running process and its address: true of that process only."""
_BLOCK: Final = 1024 * 1024


class BackupFile(msgspec.Struct):
    """One file of a backup."""

    name: str
    size: int
    sha256: str


class Manifest(msgspec.Struct):
    """The contents of a backup."""

    format: int
    lifesigns: str
    made_at: float
    store: str
    """The store's address, without passwords."""
    store_included: bool
    """False if the store is a server: its own tools back it up."""
    schema: int
    """The last migration of the store; 0 if it is not included."""
    files: list[BackupFile]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


# --- backup -------------------------------------------------------------------------------------------


def back_up(state: Path, store_url: str | None, to: Path, *, version: str) -> Manifest:
    """Write everything of the state folder, and the store if it is SQLite, into the new file `to`.

    `version` is that of this lifesigns.
    """
    if not state.is_dir():
        raise UsageError(f"there is no state folder {state}; name the hub's with --state")
    if to.exists():
        raise UsageError(f"{to} is there already and is not overwritten; choose another name")
    if to.absolute().is_relative_to(state.absolute()):
        raise UsageError(
            f"{to} is in the state folder itself; write the backup elsewhere, best to another disk"
        )
    url = store_url or default_store(state)
    with _staging(to) as staging:
        inside = staging / INSIDE
        inside.mkdir(mode=0o700)
        _copy(state, inside, [seal_file.FILE_NAME])
        database = sqlite_path(url)
        schema = 0
        if database is not None:
            from lifesigns.adapters.store.sqlite_copy import copy_store

            schema = copy_store(database, inside / DATABASE)
        _copy(state, inside, _names(state, database))
        manifest = Manifest(
            FORMAT,
            version,
            time.time(),
            masked(url) or "",
            database is not None,
            schema,
            [_described(inside, name) for name in sorted(_below(inside))],
        )
        (staging / MANIFEST).write_bytes(msgspec.json.encode(manifest))
        packed = staging / "packed.tar"
        _pack(staging, manifest, packed)
        _publish(packed, to)
    return manifest


def _names(state: Path, database: Path | None) -> Iterator[str]:
    """The files of the state folder that a hub needs again. Files being written begin with a dot."""
    databases = {Path(DATABASE).name, *([] if database is None else [database.name])}
    left_out = {f"{name}{ending}" for name in databases for ending in ("", "-wal", "-shm", "-journal")}
    left_out |= {*_OF_ONE_RUN, seal_file.FILE_NAME}
    for name in _below(state):
        if name not in left_out and not Path(name).name.startswith("."):
            yield name


def _below(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder).as_posix()


def _copy(state: Path, inside: Path, names: Iterator[str] | Sequence[str]) -> None:
    for name in names:
        to = inside / name
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            shutil.copy2(state / name, to, follow_symlinks=False)
        except FileNotFoundError:
            continue  # The hub has dropped it since: an old checkpoint, a settled respawn.


def _described(inside: Path, name: str) -> BackupFile:
    path = inside / name
    return BackupFile(name, path.stat().st_size, _digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pack(staging: Path, manifest: Manifest, to: Path) -> None:
    handle = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(handle, "wb") as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(staging / MANIFEST, MANIFEST, filter=_nobodys)
            for one in manifest.files:
                tar.add(staging / INSIDE / one.name, f"{INSIDE}/{one.name}", filter=_nobodys)
        sync(file)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the owner, which means nothing on another machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _publish(packed: Path, to: Path) -> None:
    """Give it its name, unless that was taken meanwhile."""
    try:
        os.link(packed, to)
    except FileExistsError as error:
        raise UsageError(f"{to} is there already and is not overwritten; choose another name") from error
    except OSError:  # A file system without hard links.
        packed.rename(to)


# --- restore ------------------------------------------------------------------------------------------


def restore(file: Path, state: Path) -> Manifest:
    """Restore the state folder from a backup: whole and checked, or not at all."""
    state = state.absolute()
    with claimed(state), _staging(state) as staging:
        there = sorted(path.name for path in state.iterdir() if path.name != LOCK)
        if there:
            raise UsageError(
                f"the state folder {state} is not empty ({there[0]}) and is not overwritten; "
                "move it away, or choose another with --state"
            )
        manifest = _unpack(file, staging)
        _check(manifest, staging / INSIDE, file)
        (state / LOCK).unlink()
        try:
            (staging / INSIDE).replace(state)
        except OSError as error:
            raise UsageError(
                f"{state} cannot be replaced: {error.strerror}; if something is mounted there, restore into a folder below it"
            ) from error
    return manifest


def _unpack(file: Path, staging: Path) -> Manifest:
    (staging / INSIDE).mkdir(mode=0o700)
    try:
        with tarfile.open(file, "r:") as tar:
            manifest = _manifest(tar, file)
            named = {f"{INSIDE}/{one.name}" for one in manifest.files}
            for member in tar:
                if member.name == MANIFEST:
                    continue
                if member.name not in named or not _is_plain(member) or not _stays_inside(member.name):
                    raise UsageError(f"{file} holds {member.name!r}, which its manifest does not name")
                _write_out(tar, member, staging / member.name)
    except FileNotFoundError as error:
        raise UsageError(f"there is no backup {file}") from error
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise UsageError(f"{file} is no backup, or is cut off: {error}") from error
    except OSError as error:
        raise UsageError(f"{file} cannot be restored: {error.strerror or error}") from error
    return manifest


def _manifest(tar: tarfile.TarFile, file: Path) -> Manifest:
    first = tar.next()
    content = None
    if first is not None and first.name == MANIFEST and first.size <= MANIFEST_MAX:
        content = tar.extractfile(first)
    if content is None:
        raise UsageError(f"{file} is no backup of lifesigns: it does not begin with {MANIFEST}")
    try:
        form = msgspec.json.decode(raw := content.read(), type=dict[str, object]).get("format")
        if form != FORMAT:
            raise UsageError(f"{file} has format {form}, but this lifesigns reads {FORMAT}; take a newer one")
        return msgspec.json.decode(raw, type=Manifest)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the manifest of {file} cannot be read: {error}") from error


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Whether it is a file that takes as much room in the backup as on the disk. One with holes fills any disk."""
    return member.isreg() and not member.issparse()


def _stays_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _write_out(tar: tarfile.TarFile, member: tarfile.TarInfo, to: Path) -> None:
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None
    mode = 0o700 if member.mode & 0o100 else PRIVATE
    handle = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(content, file, _BLOCK)
        sync(file)
    os.utime(to, (member.mtime, member.mtime))


def _check(manifest: Manifest, inside: Path, file: Path) -> None:
    for one in manifest.files:
        path = inside / one.name
        if not path.is_file():
            raise UsageError(f"{file} is not whole: {one.name} is missing. Nothing was restored")
        if path.stat().st_size != one.size or _digest(path) != one.sha256:
            raise UsageError(f"{file} is damaged: {one.name} is not what was backed up. Nothing was restored")
    if manifest.store_included:
        from lifesigns.adapters.store.sqlite_copy import check_store, newest_migration

        if manifest.schema > newest_migration():
            raise UsageError(
                f"{file} was made by lifesigns {manifest.lifesigns}, whose store this one cannot read; "
                "take that version or a newer one"
            )
        check_store(inside / DATABASE)


@contextmanager
def _staging(beside: Path) -> Iterator[Path]:
    """A folder on the same disk as `beside`; gone when the block ends."""
    folder = beside.absolute().with_name(f".{beside.name}.{secrets.token_hex(4)}")
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise UsageError(f"{folder.parent} cannot be written to: {error.strerror}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
