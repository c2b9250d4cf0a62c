"""A line that takes its time: a TCP proxy that hands every piece on after `delay` seconds, in order, both ways."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any, Self

from tests.journeys.outside import BOUND


class SlowLine:
    """Listens on a port of its own and leads to another on this machine."""

    def __init__(self, port: int, delay: float) -> None:
        self._leads_to = port
        self._delay = delay
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(BOUND)
        self._loop.close()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(BOUND)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError, asyncio.CancelledError):
                answers, there = await asyncio.open_connection("127.0.0.1", self._leads_to)
                await self._join(reader, writer, answers, there)
        finally:
            self._tasks.discard(task)
            for end in (writer, there):
                if end is not None:
                    end.transport.abort()

    async def _join(
        self,
        requests: asyncio.StreamReader,
        answers_to: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        requests_to: asyncio.StreamWriter,
    ) -> None:
        """Until one side hangs up."""
        await asyncio.gather(self._hand_on(requests, requests_to), self._hand_on(answers, answers_to))

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Each piece is written `delay` after it came; those behind it do not wait for it to arrive."""
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            while True:
                piece = await reader.read(65536)
                on_the_way.put_nowait((self._loop.time() + self._delay, piece))
                if not piece:
                    return

        reading = asyncio.create_task(read())
        try:
            while True:
                at, piece = await on_the_way.get()
                await asyncio.sleep(at - self._loop.time())
                if not piece:
                    raise ConnectionResetError  # Ends the other direction, too.
                writer.write(piece)
                await writer.drain()
        finally:
            reading.cancel()
