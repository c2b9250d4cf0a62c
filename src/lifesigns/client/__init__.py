"""The client: every call of the hub's API, typed, blocking or not.

request.py     a call as a value, and what its answer means
tries.py       whether and when a call is asked again
call.py        what a call is to both clients
calls.py, acts.py, parameters.py    every call, described once
event_stream.py    Server-Sent Events, read piece by piece
connection.py  where the hub is, and how httpx2 is set up for it
blocking.py    `Client`
awaiting.py    `AsyncClient`
"""

from lifesigns.client.awaiting import AsyncClient
from lifesigns.client.blocking import Client

__all__ = ["AsyncClient", "Client"]
