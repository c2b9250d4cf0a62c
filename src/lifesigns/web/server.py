"""The server: listens, and ends cleanly.

uvicorn's protocol on uvloop where it is available. It starts after the hub, and ends before it: what it accepted is stored.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from lifesigns.config.values import Limits, Listen
from lifesigns.web.app import Site, Web
from lifesigns.web.connection import Connection
from lifesigns.web.connections import Connections

BACKLOG: Final = 2048
FINISH_FOR: Final = 5.0
"""Seconds for requests in progress when the hub stops; the feed ends streams."""
FINISHED_AFTER: Final = 0.005
"""Seconds between two looks at them."""
ACCEPTED_AFTER: Final = 2
"""Turns of the loop until the last connection that was accepted is one of ours. asyncio's server, closed before that,
drops it and leaves its socket open."""
HANDSHAKE_FOR: Final = 10.0

FILES_KEPT: Final = 64
"""Files reserved for the database, logs, the bus, and some to spare."""

SILENT_FOR: Final = 60
ASKED_EVERY: Final = 15
ASKED_TIMES: Final = 4
UNHEARD_FOR: Final = 30.0
"""After a minute of silence the kernel probes a peer; and a peer must confirm what we sent within half a minute. A
machine that lost its power says no goodbye."""

log: Final = logging.getLogger("lifesigns.web")


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
    config = Config(
        app,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # uvicorn would trust them from any process on this machine; host_policy.py knows when to
        ws="none",
        backlog=BACKLOG,
        ssl_certfile=None if tls is None else tls[0],
        ssl_keyfile=None if tls is None else tls[1],
    )
    config.load()
    connections.most = min(connections.most, files_max() - FILES_KEPT)
    loop, state = asyncio.get_running_loop(), ServerState()
    server = await loop.create_server(
        partial(Connection, connections, config, state, {}, loop),
        sock=listener,
        ssl=config.ssl,
        backlog=config.backlog,
        ssl_handshake_timeout=None if config.ssl is None else HANDSHAKE_FOR,
    )
    looking = asyncio.create_task(connections.run(), name="lifesigns connections")
    try:
        yield
    finally:
        connections.cut_stalled()
        await _finish(server, listener, state)
        looking.cancel()
        connections.end()


async def _finish(server: asyncio.Server, listener: socket.socket, state: ServerState) -> None:
    """Accept nothing more, and answer the requests in progress. uvicorn's own server looks ten times a second whether it
    shall end, and then takes a tenth of a second or two, however little there is to do."""
    with suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().remove_reader(listener)
    for _ in range(ACCEPTED_AFTER):
        await asyncio.sleep(0)
    server.close()
    listener.close()
    try:
        async with asyncio.timeout(FINISH_FOR):
            while state.connections or state.tasks:
                for connection in tuple(state.connections):
                    connection.shutdown()
                await asyncio.sleep(FINISHED_AFTER)
            await server.wait_closed()
    except TimeoutError:
        log.warning(
            "requests that did not end within %g s are cut off: %d",
            FINISH_FOR,
            len(state.tasks),
            extra={"action": "requests_cut_off"},
        )
        for task in tuple(state.tasks):
            task.cancel()


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
