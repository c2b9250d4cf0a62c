"""A line that cuts answers: a TCP proxy that loses what the hub answers to some requests, which the hub has heard."""

from __future__ import annotations

import asyncio

from tests.journeys.slow_line import SlowLine


class CutLine(SlowLine):
    """Of the answers to `request` (how its first line begins) it lets one in `one_in` through; where it does not, the
    connection ends instead."""

    def __init__(self, port: int, request: bytes, one_in: int) -> None:
        super().__init__(port, delay=0.0)
        self._request = request
        self._one_in = one_in
        self.asked = 0
        self.cut = 0

    async def _join(
        self,
        requests: asyncio.StreamReader,
        answers_to: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        requests_to: asyncio.StreamWriter,
    ) -> None:
        cuts = False

        async def ask() -> None:
            nonlocal cuts
            while piece := await requests.read(65536):
                if piece.startswith(self._request):
                    self.asked += 1
                    cuts = self.asked % self._one_in != 0
                requests_to.write(piece)
                await requests_to.drain()
            raise ConnectionResetError

        async def answer() -> None:
            while piece := await answers.read(65536):
                if cuts:
                    self.cut += 1
                    break
                answers_to.write(piece)
                await answers_to.drain()
            raise ConnectionResetError

        await asyncio.gather(ask(), answer())
