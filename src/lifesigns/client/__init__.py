"""The client: every call of the hub's API, typed, blocking or not.

request.py     a call as a value, and the meaning of its answer
tries.py       whether and when to retry a call
call.py        a call as a method of both clients
calls.py, acts.py, alerts.py, parameters.py    every call, described once
event_stream.py    reads Server-Sent Events piece by piece
connection.py  the hub's address, and the setup of httpx2
blocking.py    `Client`
awaiting.py    `AsyncClient`
"""

from typing import TYPE_CHECKING

from lifesigns.client.blocking import Client

if TYPE_CHECKING:
    from lifesigns.client.awaiting import AsyncClient

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> object:
    """`AsyncClient`, when it is first used: it brings asyncio, which no command that asks a hub once needs."""
    if name != "AsyncClient":
        raise AttributeError(f"module 'lifesigns.client' has no attribute {name!r}")
    from lifesigns.client.awaiting import AsyncClient

    return AsyncClient
