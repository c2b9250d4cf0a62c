"""Service manager: what we tell systemd about ourselves, if it started us with `Type=notify` or a watchdog."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Final

SAID_TWICE: Final = 2
"""A watchdog is answered twice in its time, as systemd recommends: one late answer is no failure."""


class ServiceManager:
    """The one that started us, by our environment; without one, all of this does nothing."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self.every = _watchdog_every(environ)
        """How often it wants to hear `WATCHDOG=1`; None if it does not."""
        self.due_at = inf if self.every is None else 0.0

    def say(self, **said: str) -> None:
        """Say `READY="1"`, `STATUS="..."` and the like. Never blocks, never raises."""
        address = self._address
        if not address.startswith(("/", "@")):
            return
        text = "\n".join(f"{name}={' '.join(value.split())}" for name, value in said.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.sendto(text.encode(), f"\0{address[1:]}" if address[0] == "@" else address)

    def look(self, now: float) -> None:
        """Say that we live, if that is due."""
        if self.every is not None and now >= self.due_at:
            self.due_at = now + self.every
            self.say(WATCHDOG="1")


def _watchdog_every(environ: Mapping[str, str]) -> float | None:
    wanted, whose = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(os.getpid()))
    if not wanted.isdecimal() or len(wanted) > 18 or whose != str(os.getpid()) or int(wanted) == 0:
        return None
    return int(wanted) / 1e6 / SAID_TWICE
