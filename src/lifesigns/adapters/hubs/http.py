"""HttpHubCaller: posts to other hubs over HTTP. It follows no redirect and believes no proxy: hubs reach each other directly."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import httpx2

from lifesigns.adapters.posting import trust
from lifesigns.errors import AdapterError
from lifesigns.ports import HubAnswer

ANSWER_MAX: Final = 256 * 1024


class HttpHubCaller:
    """Implements `lifesigns.ports.HubCaller`."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None
        self._turn = asyncio.Lock()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], within: float) -> HubAnswer:
        """The answer, whatever its status."""
        try:
            async with asyncio.timeout(within):
                client = await self._connected(url)
                async with client.stream("POST", url, content=body, headers=dict(headers)) as response:
                    received = bytearray()
                    async for piece in response.aiter_bytes():
                        received += piece
                        if len(received) > ANSWER_MAX:
                            raise AdapterError(f"{url} answers more than {ANSWER_MAX} bytes", transient=False)
                    return HubAnswer(response.status_code, dict(response.headers), bytes(received))
        except TimeoutError:
            raise AdapterError(f"{url} did not answer within {within:.1f} s", transient=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise AdapterError(f"{url}: {error}", transient=True) from error

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _connected(self, url: str) -> httpx2.AsyncClient:
        async with self._turn:
            if self._client is None:
                # Reads the authorities from disk: not on the hub's loop, and only for TLS.
                verify = await asyncio.to_thread(trust) if url.startswith("https:") else False
                self._client = httpx2.AsyncClient(
                    timeout=None, trust_env=False, headers={"User-Agent": "lifesigns"}, verify=verify
                )
            return self._client
