"""Notices: what a program says to its service manager, as systemd understands it (`sd_notify`).

The child gets a `NOTIFY_SOCKET` of ours. `WATCHDOG=1` is a sign that its main loop goes round, `STATUS=` is what it does,
`STOPPING=1` that it ends, `EXTEND_TIMEOUT_USEC=` that it needs more time, `WATCHDOG_USEC=` how often it will be heard.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NOTICE_MAX: Final = 4096
NOTICES_MAX: Final = 64
"""How many we read at once: a child that says more must not keep us from our work."""
STATUS_MAX: Final = 200
EXTENSION_MAX: Final = 300.0
"""How much time a child can ask for at once; it may ask again."""


class NotifySocket:
    """A datagram socket in a folder that only its user can enter."""

    def __init__(self, folder: Path) -> None:
        self.path: str | None = str(folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(self.path)
        except OSError:  # A name of more than 107 bytes has no room in an address.
            self.path = None

    @property
    def fd(self) -> int:
        return self._socket.fileno()

    def take(self) -> list[dict[str, str]]:
        """What was said since the last time."""
        said: list[dict[str, str]] = []
        with suppress(BlockingIOError):
            while len(said) < NOTICES_MAX:
                said.append(_read(self._socket.recv(NOTICE_MAX)))
        return said

    def environ(self, environ: Mapping[str, str], watchdog: float | None) -> dict[str, str]:
        """A child's environment: with our socket instead of the one that our own service manager gave us."""
        if self.path is None:
            return dict(environ)
        kept = {
            name: value
            for name, value in environ.items()
            if not name.startswith(("NOTIFY_SOCKET", "WATCHDOG_"))
        }
        told = {"NOTIFY_SOCKET": self.path}
        if watchdog is not None:
            told["WATCHDOG_USEC"] = str(round(watchdog * 1e6))
        return kept | told

    def close(self) -> None:
        self._socket.close()


def _read(data: bytes) -> dict[str, str]:
    lines = data.decode(errors="replace").split("\n")
    return {name: value for name, sign, value in (line.partition("=") for line in lines) if sign}


@dataclass(slots=True)
class Notices:
    """What one life has said by now."""

    watchdog_every: float | None = None
    """How often `WATCHDOG=1` must come; None if nobody promised it."""
    pinged_at: float = 0.0
    ready: bool = False
    stopping: bool = False
    status: str = ""
    more_time: float = 0.0
    """Seconds that it asked for and nobody has granted yet."""
    main_pid: int | None = None

    @property
    def state(self) -> tuple[bool, bool, str]:
        """What it says of itself: another state is news."""
        return self.ready, self.stopping, self.status

    def hear(self, said: Mapping[str, str], now: float) -> None:
        """It said this. What cannot be read is as if it was not said, as systemd has it."""
        self.ready = self.ready or said.get("READY") == "1"
        self.stopping = self.stopping or said.get("STOPPING") == "1"
        if "STATUS" in said:
            self.status = said["STATUS"].strip()[:STATUS_MAX]
        if (every := _seconds(said.get("WATCHDOG_USEC"))) is not None:
            self.watchdog_every, self.pinged_at = every or None, now
        if said.get("WATCHDOG") == "1":
            self.pinged_at = now
        if (more := _seconds(said.get("EXTEND_TIMEOUT_USEC"))) is not None:
            self.more_time = min(more, EXTENSION_MAX)
        if (pid := said.get("MAINPID", "")).isdecimal() and len(pid) < 10:
            self.main_pid = int(pid)

    def lag(self, now: float) -> float:
        """For how long its main loop has not been heard, if that is longer than it promised; else 0."""
        if self.watchdog_every is None:
            return 0.0
        silent_for = now - self.pinged_at
        return silent_for if silent_for > self.watchdog_every else 0.0


def _seconds(microseconds: str | None) -> float | None:
    if microseconds is None or not microseconds.isdecimal() or len(microseconds) > 18:
        return None
    return int(microseconds) / 1e6
