"""HttpDeadManSwitch: an address that wants to be asked for now and then, as healthchecks and cron monitors offer it."""

from __future__ import annotations

from typing import Final

from lifesigns.adapters.posting import Poster
from lifesigns.ports import NotTaken

TIMEOUT: Final = 5.0


class HttpDeadManSwitch:
    """Pings an address with GET, which all such services take. Implements `lifesigns.ports.DeadManSwitch`."""

    def __init__(self, url: str) -> None:
        self._poster = Poster(url, NotTaken, timeout=TIMEOUT)
        self.name = self._poster.host

    async def ping(self) -> None:
        """It is taken when this returns: the server answered 2xx."""
        await self._poster.post("", b"", {}, method="GET")

    async def close(self) -> None:
        await self._poster.close()
