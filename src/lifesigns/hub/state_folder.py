"""The state folder: one hub at a time, and the address of that hub.

A hub trusts its contents: tokens, keys, all it knows about agents. So the folder and all in it must belong to the user
who runs the hub (or to root), and no other user may write there. The hub refuses to start with any other folder. Files
that others could only read are closed by their readers.

The running hub holds `hub.lock`; the system releases it when the hub ends in any way. `hub.url` has the address, for
all clients of the same user; it stays behind after a crash, and then a client says that the hub does not answer.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lifesigns.errors import UsageError
from lifesigns.files import PRIVATE, write_whole

LOCK: Final = "hub.lock"
URL: Final = "hub.url"
DATABASE: Final = "lifesigns.db"

log: Final = logging.getLogger("lifesigns.hub")


def default_store(state: Path) -> str:
    """The store of a hub without a configured one."""
    return f"sqlite://{state.absolute() / DATABASE}"


def sqlite_path(url: str) -> Path | None:
    """The file of an SQLite store: everything after `sqlite://`, as it is; None if it is another store."""
    scheme, _, path = url.partition("://")
    return Path(path).absolute() if scheme == "sqlite" and path else None


def faults(path: Path, owner: int) -> Iterator[str]:
    """Why `owner` cannot trust this file or folder, or its contents, and what to type; nothing if it is fine. In a
    folder closed to other users the contents are out of reach, whatever their own mode."""
    if not hasattr(os, "geteuid"):
        return  # Windows: the folder below the user's profile is the user's by inheritance.
    shut = path.is_dir() and not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    for one in (path, *(path.rglob("*") if path.is_dir() else ())):
        try:
            found, link = one.stat(), one.lstat()
        except FileNotFoundError:
            continue  # A running hub has deleted it since, or a link leads nowhere.
        stranger = next((uid for uid in (link.st_uid, found.st_uid) if uid not in (owner, 0)), None)
        if stranger is not None:
            yield (
                f"{one} belongs to user {stranger}, not to user {owner} who runs the hub: who made it would decide "
                f"what the hub believes. If you trust it: chown -R {owner} {shlex.quote(str(path))}"
            )
        elif not shut and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            yield (
                f"{one} can be written by others (mode {stat.S_IMODE(found.st_mode):04o}), who would decide what the "
                f"hub believes. If you trust it: chmod -R go-w {shlex.quote(str(path))}"
            )


def check(path: Path) -> None:
    """Raise `UsageError` if the current user cannot trust it."""
    if hasattr(os, "geteuid") and (wrong := next(faults(path, os.geteuid()), "")):
        raise UsageError(wrong)


def hub_name(folder: Path) -> str:
    """The name of the hub of this folder among the hubs on one store. A copy of the folder on another machine has
    another name."""
    return f"{socket.gethostname()}-{zlib.crc32(os.fsencode(folder.absolute())):08x}"


@contextmanager
def claimed_database(path: Path | None) -> Iterator[None]:
    """Hold the file of an SQLite store for the time of the block: two hubs would depose each other. None: another
    store."""
    if path is None:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise UsageError(
            f"the store {path} cannot be used: {error.strerror}; choose another --store"
        ) from error
    with _held(
        handle, f"uses the database {path} already; stop it, choose another --store, or share a PostgreSQL"
    ):
        yield


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold the folder for the time of the block; made if it is missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check(folder)
        _close_database(folder)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        mend = "choose another with --state"
        if isinstance(error, PermissionError) and hasattr(os, "geteuid"):
            mend = (
                f"give it to who runs the hub (chown -R {os.geteuid()} {shlex.quote(str(folder))}), or {mend}"
            )
        raise UsageError(f"the state folder {folder} cannot be used: {error.strerror}; {mend}") from error
    with _held(handle, f"serves from {folder} already; stop it, or choose another --state"):
        yield


@contextmanager
def _held(handle: int, why_not: str) -> Iterator[None]:
    """Hold a lock file for the time of the block; the system releases it when this process ends in any way."""
    try:
        if not _locked(handle):
            holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
            raise UsageError(f"a hub (process {holder or 'unknown'}) {why_not}")
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _close_database(folder: Path) -> None:
    """A person who copied it here may have left it readable for all."""
    for path in folder.glob(f"{DATABASE}*") if hasattr(os, "geteuid") else ():
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) and path.stat().st_uid == os.geteuid():
            path.chmod(PRIVATE)
            log.warning(
                "%s could be read by others; it is closed now", path, extra={"action": "store_exposed"}
            )


@contextmanager
def announced(folder: Path, url: str) -> Iterator[None]:
    """Announce the hub at `url` to clients of this folder, for the time of the block."""
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
