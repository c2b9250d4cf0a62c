"""Wakeup: wakes a thread that sleeps in a selector. However often it is set, it wakes once."""

from __future__ import annotations

import socket


class Wakeup:
    """Any thread rings it; the sleeping thread hears it and silences it."""

    def __init__(self) -> None:
        self._heard, self._pulled = socket.socketpair()
        self._heard.setblocking(False)
        self._pulled.setblocking(False)
        self._rung = False

    def fileno(self) -> int:
        return self._heard.fileno()

    def ring(self) -> None:
        if not self._rung:
            self._rung = True
            try:
                self._pulled.send(b"!")
            except OSError:
                return  # Full, so the thread will wake; or closed, so there is none.

    def silence(self) -> None:
        """Call this before looking at the work, so that nothing is missed."""
        self._rung = False
        try:
            self._heard.recv(64)
        except OSError:
            return  # Another thread is just ringing; we hear it next time.

    def close(self) -> None:
        self._heard.close()
        self._pulled.close()
