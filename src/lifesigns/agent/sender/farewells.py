"""Farewells: the end of a life that its hub could not hear, kept for the next process that reaches that hub.

When an agent ends while its hub is away, the hub comes back, hears nothing and raises an alarm. So the agent writes
its last reports into the state folder, a small file for each life, and the next process of the same account that
reaches the same hub sends them: a process that starts, one that has waited for the hub, or `lifesigns run`. They name
one life and end only that one; sending them twice changes nothing.

Only the end is kept. Other unsent reports are lost with the process, and counted in `stats`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from lifesigns import wire
from lifesigns.core.signals import AgentLeft, ProcessExited, Report, TerminationDone
from lifesigns.errors import LifesignsError, WireError

log: Final = logging.getLogger("lifesigns.sender")

LAST_REPORTS: Final = (TerminationDone, AgentLeft, ProcessExited)
FOLDER: Final = "farewells"
FILES_MAX: Final = 1_000
AT_ONCE: Final = 200
FILE_MAX: Final = 64 * 1024
FORGOTTEN_AFTER: Final = 7 * 24 * 3600.0
"""A hub forgets an agent long before this."""


class SpooledReports(Struct, frozen=True):
    """The last reports of one life, and their file."""

    path: Path
    reports: Sequence[Report]

    def forget(self) -> None:
        """The hub has them: remove the file."""
        with suppress(OSError):
            self.path.unlink()


class Farewells:
    """The farewells for one hub. `state` finds the state folder, if there is one; nothing here ever raises."""

    def __init__(self, hub: str = "", state: Callable[[], Path | None] = lambda: None) -> None:
        self._name = hashlib.blake2b(hub.encode(), digest_size=8).hexdigest()
        self._state = state

    def leave(self, reports: Sequence[Report]) -> None:
        """Keep what these reports say about an end, if anything."""
        last = [report for report in reports if isinstance(report, LAST_REPORTS)]
        if not last or (folder := self._folder()) is None:
            return
        content = b"\n".join(wire.write_each(last, wire.encode_signal))
        life = f"{last[-1].agent_id} {last[-1].incarnation}"
        path = folder / f"{hashlib.blake2b(life.encode(), digest_size=16).hexdigest()}.ndjson"
        beside = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if sum(1 for _ in folder.iterdir()) >= FILES_MAX:
                log.warning("the good-bye of %s is lost: %s is full", last[-1].agent_id, folder)
                return
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(content)
            beside.replace(path)
        except OSError as error:
            log.warning("the good-bye of %s is lost: %s", last[-1].agent_id, error)

    def collect(self) -> list[SpooledReports]:
        """The stored farewells, or some of many. Old and unreadable ones are removed."""
        folder = self._folder()
        if folder is None:
            return []
        found: list[SpooledReports] = []
        with suppress(OSError):
            for path in sorted(folder.glob("*.ndjson"))[:AT_ONCE]:
                reports = _read(path)
                if reports:
                    found.append(SpooledReports(path, reports))
                else:
                    SpooledReports(path, ()).forget()
        return found

    def _folder(self) -> Path | None:
        try:
            state = self._state()
        except LifesignsError:  # There is no home folder.
            return None
        return None if state is None else state / FOLDER / self._name


def _read(path: Path) -> list[Report]:
    """The content of our file; nothing if it is not ours, or another account could have written it."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            ours = not hasattr(os, "geteuid") or (
                found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            )
            if not ours or found.st_size > FILE_MAX or time.time() - found.st_mtime > FORGOTTEN_AFTER:
                return []
            batch = wire.decode_signals(file.read(FILE_MAX), now=time.time())
    except (OSError, WireError):
        return []
    return [report for report in batch.accepted if isinstance(report, LAST_REPORTS)]
