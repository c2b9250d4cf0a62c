"""The bus over a NATS server or cluster. Needs the extra `nats`."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from lifesigns.adapters.bus.delivery import WAITING_MAX
from lifesigns.adapters.bus.server_bus import Receive, ServerBus, ServerConnection
from lifesigns.errors import AdapterError, UsageError

_PAYLOAD_MAX: Final = 1024 * 1024
_PORT: Final = 4222


class NatsBus(ServerBus):
    """`nats://user:password@host:4222`, `nats://token@host`, `tls://host`; commas join several servers.

    A user or token counts for all servers. `tls://` refuses a server without TLS; certificates are checked against the
    system's authorities, or those of `SSL_CERT_FILE`.
    """

    def __init__(self, url: str, *, waiting_max: int = WAITING_MAX) -> None:
        servers = [_parse(part) for part in url.split(",")]
        self._servers = [f"{server.scheme}://{_host(server)}" for server in servers]
        self._user, self._password = _credentials(servers)
        name = ",".join(self._servers)
        super().__init__(name, self._open, payload_max=_PAYLOAD_MAX, waiting_max=waiting_max)

    async def _open(self, receive: Receive) -> ServerConnection:
        try:
            from lifesigns.adapters.bus.nats_connection import open_connection
        except ModuleNotFoundError as error:
            raise AdapterError(
                "a NATS bus needs the package nats-py: pip install 'lifesigns[nats]'", transient=False
            ) from error
        return await open_connection(self._servers, self._user, self._password, receive, self.unwanted)


def _parse(text: str) -> SplitResult:
    text = text.strip()
    server = urlsplit(text if "://" in text else f"nats://{text}")
    try:
        fits = server.scheme in ("nats", "tls") and bool(server.hostname) and server.port != 0
    except ValueError:  # The port is not a number.
        fits = False
    if not fits:
        shown = text.rpartition("@")[2] if "@" in text else text
        raise UsageError(
            f"{shown!r} is no address of a NATS server; it would be nats://host:4222 or tls://host:4222"
        )
    return server


def _host(server: SplitResult) -> str:
    host = server.hostname or ""
    return f"[{host}]:{server.port or _PORT}" if ":" in host else f"{host}:{server.port or _PORT}"


def _credentials(servers: list[SplitResult]) -> tuple[str | None, str | None]:
    """User and password, or a token and None, of the first address that has some."""
    for server in servers:
        if server.username:
            return unquote(server.username), None if server.password is None else unquote(server.password)
    return None, None
