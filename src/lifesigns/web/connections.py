"""Connections: how many there may be, how long each may take, and which are closed to protect the others.

    a head      must be complete some seconds after its first byte; and its size is limited
    a body      likewise, whether a handler reads it or not; trailers after it are bounded and ignored
    an answer   that its reader does not take is held for a while, and all such answers together up to a limit
    idle        connections stay open for a minute or so, for the next beat

One check a second of all connections enforces these times: a timer for each of ten thousand would cost more. The kernel
detects peers that vanished (`server.listen`). `connection.py` is a single connection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from lifesigns.web.connection import Connection

NEVER: Final = inf
CHECK_EVERY: Final = 1.0

FULL_FOR: Final = 60.0
"""Seconds since the last refused connection for which the hub still counts as full: a refused client retries within
them."""

log: Final = logging.getLogger("lifesigns.web")


class Patience(Struct, frozen=True):
    """How long we wait for a peer, in seconds."""

    head_for: float = 10.0
    body_for: float = 30.0
    """Whether a handler reads it or not; a handler waits less, see `app.py`."""
    idle_for: float = 75.0
    """Longer than the beat interval of most: a sender that beats every 60 s keeps its connection."""
    stalled_for: float = 10.0
    linger_for: float = 2.0
    """For a peer that is still sending to receive our refusal."""


class Connections:
    """All connections of one server."""

    def __init__(
        self,
        most: int = 10_000,
        most_per_address: int = 1_000,
        patience: Patience | None = None,
        unsent_max: int = 64 * 1024 * 1024,
    ) -> None:
        self.most = most
        self.most_per_address = most_per_address
        self.patience = patience or Patience()
        self.unsent_max = unsent_max
        """Limit for the bytes of all answers that their readers do not take."""
        self.turned_away = 0
        self._turned_away_at = -NEVER
        self.cut_off = 0
        """Peers that took too long."""
        self.refused: Counter[int] = Counter()
        """Refused connections and malformed requests, by the status of the answer."""
        self._open: set[Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._stalled: dict[Connection, None] = {}
        """Connections with a stalled reader, the longest first."""
        self._unsent = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def unsent(self) -> int:
        """Bytes of answers waiting for slow readers."""
        return self._unsent

    def why_full(self, _now: float) -> str:
        """Why new connections are refused; empty if none was for a minute."""
        if time.monotonic() - self._turned_away_at > FULL_FOR:
            return ""
        return (
            f"{len(self)} connections are open and there is no room for more (at most {self.most}, {self.most_per_address} from "
            "one address); raise limits.connections, and ulimit -n of the hub"
        )

    # --- what connections tell ------------------------------------------------------------------------

    def admit(self, connection: Connection) -> bool:
        """Add a new connection; False if there are too many already."""
        address = connection.address
        if len(self._open) >= self.most or self._by_address[address] >= self.most_per_address:
            self.turned_away += 1
            self._turned_away_at = time.monotonic()
            if (
                self.turned_away.bit_count() == 1
            ):  # Log the first, the second, the fourth: the log stays readable.
                log.warning(
                    "%d connections turned away so far; %d are open",
                    self.turned_away,
                    len(self._open),
                    extra={"action": "connections_full"},
                )
            return False
        self._open.add(connection)
        if address:
            self._by_address[address] += 1
        return True

    def remove(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self.flows(connection)
        self.forget_address(connection)

    def forget_address(self, connection: Connection) -> None:
        """Count this connection for its address no more."""
        address = connection.address
        if address:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def stalls(self, connection: Connection) -> None:
        """Its reader is slower than its answer. If all of them hold too much, cut the one that has stalled longest."""
        if connection not in self._stalled:
            self._stalled[connection] = None
            self._unsent += connection.unsent
        while self._unsent > self.unsent_max and self._stalled:
            self.cut(next(iter(self._stalled)), "holds an answer that it does not read")

    def flows(self, connection: Connection) -> None:
        """Its reader has caught up, or is gone."""
        if connection in self._stalled:
            del self._stalled[connection]
            self._unsent -= connection.unsent

    def cut(self, connection: Connection, why: str) -> None:
        """End it at once, whatever is under way."""
        self.cut_off += 1
        log.debug("%s %s", connection.address or "a peer", why, extra={"action": "connection_cut"})
        self.flows(connection)
        connection.transport.abort()

    # --- looking after them ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Run `check` about once a second, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(CHECK_EVERY, self.patience.head_for / 4))
            self.check(loop.time())

    def check(self, now: float) -> None:
        """End the connections whose time is over."""
        for connection in [one for one in self._open if one.due_at <= now]:
            connection.overdue()
        for connection in [one for one in self._stalled if one.is_stalled(now)]:
            self.cut(connection, "does not read its answer")

    def cut_stalled(self) -> None:
        """The server is about to end: do not wait for stalled readers."""
        self.unsent_max = 0
        for connection in tuple(self._stalled):
            self.cut(connection, "does not read its answer, and we are leaving")

    def end(self) -> None:
        """The server has ended: abort all connections."""
        for connection in tuple(self._open):
            connection.transport.abort()
