"""A small HTTP server that plays the hub, well or badly, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from lifesigns import wire
from lifesigns.core.effects import Order
from lifesigns.core.signals import Signal
from lifesigns.wire import WireBeat
from tests.agent.sender.ear import WITHIN, W

Respond = Callable[[str, bytes], bytes | None]
"""Given a path and a body, the raw bytes to answer with; None to answer as a hub does."""


def answer(status: int, body: object = None, *, head: str = "") -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n{head}\r\n".encode() + content


class HttpHub:
    """Takes beats and words in, hands orders out. `misbehave` is asked before every answer."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.beats: list[WireBeat] = []
        self.words: list[Signal] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.acks: list[str] = []
        self.polled: list[list[str]] = []
        self.connections = 0
        self.misbehave: Respond | None = None
        self.stall = False
        self.told = threading.Condition()
        self._waiting: dict[str, deque[Order]] = {}
        self._offered: asyncio.Condition | None = None
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WITHIN)
        self._loop.close()

    def offer(self, order: Order, *, ride: bool = False) -> None:
        """Hand this out with the next poll, or only with an answer to a beat."""
        self._do(self._offer(f"ride {order.agent_id}" if ride else order.agent_id, order))

    def drop_connections(self) -> None:
        self._do(self._drop())

    def until(self, holds: Callable[[], Any], within: float = WITHIN) -> None:
        with self.told:
            assert self.told.wait_for(holds, within), (
                f"not within {within} s: {self.requests[-5:]}, {self.words}"
            )

    def of(self, kind: type[W]) -> list[W]:
        return [word for word in list(self.words) if isinstance(word, kind)]

    # --- its loop -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _do(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(WITHIN)

    async def _open(self) -> None:
        self._offered = asyncio.Condition()
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=2**20, ssl=self._tls)

    async def _shut(self) -> None:
        assert self._server is not None
        await asyncio.sleep(
            0.02
        )  # asyncio leaks a connection that it is just accepting when its server closes
        self._server.close()
        for _ in range(5):  # Whoever was just accepted is known only after a turn or two of the loop.
            await self._drop()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0.005)

    async def _drop(self) -> None:
        for writer in list(self._writers):
            with suppress(
                AttributeError
            ):  # Before Python 3.11.4 a TLS connection that has just ended has nothing to abort.
                writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()

    async def _offer(self, key: str, order: Order) -> None:
        assert self._offered is not None
        async with self._offered:
            self._waiting.setdefault(key, deque()).append(order)
            self._offered.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            writer.close()
            with suppress(OSError, TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(writer.wait_closed(), 1)
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line = await reader.readline()
        if not line:
            return False
        method, target, _ = line.decode().split()
        headers: dict[str, str] = {}
        while (raw := await reader.readline()).strip():
            name, _, value = raw.decode().partition(":")
            headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if self.stall:
            await asyncio.sleep(3600)
        with self.told:
            self.requests.append((f"{method} {target}", headers))
            self.told.notify_all()
        said = self.misbehave(target, body) if self.misbehave else None
        writer.write(await self._respond(target, body) if said is None else said)
        await writer.drain()
        return said is None or b"Connection: close" not in said

    async def _respond(self, target: str, body: bytes) -> bytes:
        parts = urlsplit(target)
        path = [unquote(part) for part in parts.path.strip("/").split("/")]
        match path:
            case ["api", "v1", "beats"]:
                beats = wire.decode_beats(body)
                return self._take_in(self.beats, beats, [beat.agent_id for beat in beats.accepted])
            case ["api", "v1", "signals"]:
                return self._take_in(self.words, wire.decode_signals(body, now=time.time()), [])
            case ["api", "v1", "agents", agent, "orders"]:
                orders = await self._poll([agent], parts.query)
                return answer(200, {"orders": orders.get(agent, [])})
            case ["api", "v1", "orders"]:
                agents = parse_qs(parts.query)["agent"]
                return answer(200, {"orders": await self._poll(agents, parts.query)})
            case ["api", "v1", "agents", _, "orders", order_id, "ack"]:
                with self.told:
                    self.acks.append(order_id)
                    self.told.notify_all()
                return answer(204)
            case _:
                return answer(404, {"title": "not found"})

    def _take_in(self, into: list[Any], batch: Any, agents: list[str]) -> bytes:
        with self.told:
            into += batch.accepted
            self.told.notify_all()
        orders = {agent: taken for agent in agents if (taken := self._taken(f"ride {agent}"))}
        rejected = [{"index": r.index, "field": r.field, "detail": r.detail} for r in batch.rejected]
        return answer(202, {"accepted": len(batch.accepted), "rejected": rejected, "orders": orders})

    async def _poll(self, agents: list[str], query: str) -> dict[str, list[Any]]:
        assert self._offered is not None
        wait_for = float(parse_qs(query)["wait"][0])
        with self.told:
            self.polled.append(agents)
            self.told.notify_all()

        def any_waits() -> bool:
            return any(self._waiting.get(agent) for agent in agents)

        with suppress(TimeoutError):
            async with asyncio.timeout(wait_for), self._offered:
                await self._offered.wait_for(any_waits)
        return {agent: taken for agent in agents if (taken := self._taken(agent))}

    def _taken(self, key: str) -> list[Any]:
        waiting = self._waiting.pop(key, deque())
        return [json.loads(wire.encode_order(order)) for order in waiting]
