"""HttpWitness: a server that is sent every checkpoint, by POST (a webhook) or by PUT (a bucket with an address for it)."""

from __future__ import annotations

from typing import Literal

from lifesigns.adapters.posting import Poster
from lifesigns.ports import NotTaken

SIZE: Literal["{size}"] = "{size}"
"""In the address of a PUT: the number of entries, so that none replaces another."""


class HttpWitness:
    """Sends checkpoints to an address. Implements `lifesigns.ports.Witness`."""

    def __init__(self, method: Literal["POST", "PUT"], url: str) -> None:
        self._method: Literal["POST", "PUT"] = method
        self._url = url
        self._poster = Poster(url.replace(SIZE, "0"), NotTaken)
        self.name = self._poster.host

    async def keep(self, note: str) -> None:
        size = note.split("\n")[1]
        poster = self._poster if SIZE not in self._url else Poster(self._url.replace(SIZE, size), NotTaken)
        try:
            await poster.post(
                "", note.encode(), {"Content-Type": "text/plain; charset=utf-8"}, method=self._method
            )
        finally:
            if poster is not self._poster:
                await poster.close()

    async def close(self) -> None:
        """Let go of the connection."""
        await self._poster.close()
