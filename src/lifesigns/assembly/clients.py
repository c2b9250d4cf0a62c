"""Clients: the front door's `Client` and `AsyncClient`, which find their hub and token by themselves."""

from __future__ import annotations

import os

from lifesigns import client
from lifesigns.client.blocking import RETRY_FOR, TIMEOUT
from lifesigns.config.hub_locator import find


class Client(client.Client):
    """A hub, and every call of its API. Use it in a `with`, or `close` it; threads may share it.

    Without `hub` it is `LIFESIGNS_HUB`, else the hub of this user on this machine; without `token` it is `LIFESIGNS_TOKEN`,
    else the admin's, if that is the hub it belongs to.

    `timeout` is what one try may take, `retry_for` how long a call that is safe to repeat is tried again while the hub is
    away or busy. Whatever goes wrong is a `HubError`: `.status` and `.detail` say what the hub said, `.transient` whether
    it may pass. What can only be a mistake of the caller is a `UsageError`.
    """

    def __init__(
        self,
        hub: str | None = None,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT,
        retry_for: float = RETRY_FOR,
    ) -> None:
        found = find(os.environ, hub, token)
        super().__init__(found.hub, found.token, timeout=timeout, retry_for=retry_for)


class AsyncClient(client.AsyncClient):
    """As `Client`, but every call is awaited: `await client.agent("coder-7")`, `async for agent in client.agents()`.
    Use it in an `async with`, or `await client.close()`."""

    def __init__(
        self,
        hub: str | None = None,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT,
        retry_for: float = RETRY_FOR,
    ) -> None:
        found = find(os.environ, hub, token)
        super().__init__(found.hub, found.token, timeout=timeout, retry_for=retry_for)
