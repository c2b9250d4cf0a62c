"""The bus over a Redis or Valkey server: its publish and subscribe. Needs the extra `redis`."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from lifesigns.adapters.bus.delivery import WAITING_MAX
from lifesigns.adapters.bus.server_bus import Receive, ServerBus, ServerConnection
from lifesigns.errors import AdapterError, UsageError

_PAYLOAD_MAX: Final = 8 * 1024 * 1024
"""The server takes 512 MiB, but disconnects a subscriber with 32 MiB pending."""
_SCHEMES: Final = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}


class RedisBus(ServerBus):
    """`redis://user:password@host:6379`, `rediss://` with TLS; `valkey://` and `valkeys://` mean the same.

    Messages are independent of the server's databases: a number in the address changes nothing. Certificates are
    checked against the system's authorities, those of `SSL_CERT_FILE`, or of `?ssl_ca_certs=FILE`.
    """

    def __init__(self, url: str, *, waiting_max: int = WAITING_MAX) -> None:
        scheme, _, rest = url.partition("://")
        server = urlsplit(url)
        place = server.netloc.rpartition("@")[2]
        try:
            fits = scheme in _SCHEMES and bool(server.hostname) and server.port != 0
        except ValueError:  # The port is not a number.
            fits = False
        if not fits:
            shown = f"{scheme}://{place}" if rest else url
            raise UsageError(f"{shown!r} is no address of a Redis server; it would be redis://host:6379")
        self._url = f"{_SCHEMES[scheme]}://{rest}"
        name = f"{scheme}://{place}"
        super().__init__(name, self._open, payload_max=_PAYLOAD_MAX, waiting_max=waiting_max)

    async def _open(self, receive: Receive) -> ServerConnection:
        try:
            from lifesigns.adapters.bus.redis_connection import open_connection
        except ModuleNotFoundError as error:
            raise AdapterError(
                "a Redis bus needs the package redis: pip install 'lifesigns[redis]'", transient=False
            ) from error
        return await open_connection(self._url, self._name, self._payload_max, receive, self.unwanted)
