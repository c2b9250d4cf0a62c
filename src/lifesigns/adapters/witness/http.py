"""HttpWitness: a server that is sent every checkpoint, by POST (a webhook) or by PUT (a bucket with an address for it)."""

from __future__ import annotations

from typing import Final, Literal

from lifesigns.adapters.posting import Poster
from lifesigns.ports import NotTaken

SIZE: Final = "{size}"
"""In the address of a PUT: the number of entries, so that none replaces another."""


class HttpWitness:
    """Sends checkpoints to an address. Implements `lifesigns.ports.Witness`."""

    def __init__(self, method: Literal["POST", "PUT"], url: str) -> None:
        self._method = method
        self._url = url
        self.name = self._poster("0").host

    async def keep(self, note: str) -> None:
        """It is taken when this returns: the server answered 2xx."""
        poster = self._poster(note.split("\n")[1])
        try:
            headers = {"Content-Type": "text/plain; charset=utf-8"}
            await poster.post("", note.encode(), headers, method=self._method)
        finally:
            await poster.close()

    async def close(self) -> None:
        """A connection lasts for one checkpoint: the next comes in a minute."""

    def _poster(self, size: str) -> Poster:
        return Poster(self._url.replace(SIZE, size), NotTaken)
