"""The server: listens, and ends cleanly.

uvicorn on uvloop where it is available. It starts after the hub, and ends before it: what it accepted is stored.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Final

import uvicorn

from lifesigns.config.values import Limits, Listen
from lifesigns.web.app import Site, Web
from lifesigns.web.connection import Connection
from lifesigns.web.connections import Connections

BACKLOG: Final = 2048
FINISH_FOR: Final = 5
"""Seconds for requests in progress when the hub stops; the feed ends streams."""
HANDSHAKE_FOR: Final = 10.0

FILES_KEPT: Final = 64
"""Files reserved for the database, logs, the bus, and some to spare."""

SILENT_FOR: Final = 60
ASKED_EVERY: Final = 15
ASKED_TIMES: Final = 4
UNHEARD_FOR: Final = 30.0
"""After a minute of silence the kernel probes a peer; and a peer must confirm what we sent within half a minute. A
machine that lost its power says no goodbye."""


class _Server(uvicorn.Server):
    """uvicorn, with our own connections. uvicorn would handle signals itself; here the command that serves decides when
    to stop."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop, config = asyncio.get_running_loop(), self.config
        connection = partial(Connection, self._connections, config, self.server_state, {}, loop)
        self.servers = [
            await loop.create_server(
                connection,
                sock=listener,
                ssl=config.ssl,
                backlog=config.backlog,
                ssl_handshake_timeout=None if config.ssl is None else HANDSHAKE_FOR,
            )
            for listener in sockets or ()
        ]
        self.started = True


@asynccontextmanager
async def serving(
    web: Web,
    listener: socket.socket,
    *,
    tls: tuple[str, str] | None = None,
    connections: Connections | None = None,
) -> AsyncIterator[None]:
    """Serve on a listening socket, until the block is left."""
    if connections is None:
        connections = _as_allowed(web.site)
    web.service.watch_connections(connections.why_full)
    web.site.connections = connections
    async with served(web, listener, connections, tls):
        try:
            yield
        finally:
            web.service.end_listeners()


def _as_allowed(site: Site) -> Connections:
    """Connections within the limits. Behind a proxy all come from one address."""
    most = site.limits.connections
    return Connections(most, most if site.host_policy.behind_proxy else site.limits.connections_per_address)


def while_standing_by(at: Listen, limits: Limits) -> Connections:
    """The same for a hub that stands by: each call that it forwards needs a second connection, to the hub that judges."""
    most = min(limits.connections, (files_max() - FILES_KEPT) // 2)
    return Connections(most, most if at.behind_proxy else limits.connections_per_address)


@asynccontextmanager
async def served(
    app: Any, listener: socket.socket, connections: Connections, tls: tuple[str, str] | None = None
) -> AsyncIterator[None]:
    """Serve any ASGI application with the settings of a hub."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # uvicorn would trust them from any process on this machine; host_policy.py knows when to
        ws="none",
        backlog=BACKLOG,
        timeout_graceful_shutdown=FINISH_FOR,
        ssl_certfile=None if tls is None else tls[0],
        ssl_keyfile=None if tls is None else tls[1],
    )
    connections.most = min(connections.most, files_max() - FILES_KEPT)
    server = _Server(config, connections)
    looking = asyncio.create_task(connections.run(), name="lifesigns connections")
    task = asyncio.create_task(server.serve([listener]), name="lifesigns web")
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 -- uvicorn tells nobody else
            await asyncio.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        connections.cut_stalled()
        await task
        looking.cancel()
        connections.end()


def listen(host: str, port: int) -> socket.socket:
    """Make a listening socket. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Without it, the second piece of a stream waits 40 ms for the reader to confirm the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        _find_the_lost(listener)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _find_the_lost(listener: socket.socket) -> None:
    """Have the kernel end connections whose peer has vanished. Accepted connections inherit it."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENT_FOR),
        ("TCP_KEEPINTVL", ASKED_EVERY),
        ("TCP_KEEPCNT", ASKED_TIMES),
        ("TCP_USER_TIMEOUT", int(UNHEARD_FOR * 1000)),
    ):
        if hasattr(socket, name):  # Each system has some of them.
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def files_max() -> int:
    """The number of files this process may have open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def allow_more_files() -> None:
    """Raise the limit on open files as far as we may: most systems give a process 1,024 and let it have far more."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS refuses what it calls unlimited.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
