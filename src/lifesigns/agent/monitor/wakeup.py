"""Wakeup: wakes a thread that sleeps in a selector. Set as often as one likes, it wakes once."""

from __future__ import annotations

import socket


class Wakeup:
    """Rung by anybody, heard and silenced by the one who sleeps."""

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
                return  # Full, so it will wake; or closed, so nobody will.

    def silence(self) -> None:
        """To be called before what it was rung for is looked at, so that nothing is missed."""
        self._rung = False
        try:
            self._heard.recv(64)
        except OSError:
            return  # Somebody is just ringing; it is heard next time.

    def close(self) -> None:
        self._heard.close()
        self._pulled.close()
