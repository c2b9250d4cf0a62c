"""What a NATS server sends is the same however it is cut into pieces, and the same as nats-py reads it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from lifesigns.adapters.bus.nats_parser import TurnParser


class Client:
    """Writes down what it is given."""

    def __init__(self) -> None:
        self.got: list[tuple[Any, ...]] = []

    def take(self, number: int, subject: bytes, payload: bytes) -> None:
        self.got.append((number, subject, payload))

    async def _process_msg(
        self, number: int, subject: bytes, _reply: bytes, payload: bytes, _head: bytes
    ) -> None:
        self.take(number, bytes(subject), payload)

    async def _process_ping(self) -> None:
        self.got.append(("ping",))

    async def _process_pong(self) -> None:
        self.got.append(("pong",))

    async def _process_err(self, text: str) -> None:
        self.got.append(("error", text))


PAYLOADS = st.binary(max_size=40) | st.sampled_from(
    [b"\r\n", b"MSG a 1 0\r\n\r\n", b"PING\r\n", b"\r\nMSG x 1 2\r\n"]
)
SUBJECTS = st.sampled_from([b"heartbeat.a", b"heartbeat.a.b", b"lifesigns.signal.x"])


def message(subject: bytes, payload: bytes, reply: bytes) -> bytes:
    return b"MSG %s 7 %s%d\r\n%s\r\n" % (subject, reply, len(payload), payload)


def with_headers(subject: bytes, payload: bytes) -> bytes:
    head = b"NATS/1.0\r\nk: v\r\n\r\n"
    return b"HMSG %s 7 %d %d\r\n%s%s\r\n" % (subject, len(head), len(head) + len(payload), head, payload)


PIECES = st.one_of(
    st.builds(message, SUBJECTS, PAYLOADS, st.sampled_from([b"", b"_INBOX.1 "])),
    st.builds(message, SUBJECTS, PAYLOADS, st.just(b"")),
    st.builds(with_headers, SUBJECTS, PAYLOADS),
    st.sampled_from([b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"-ERR 'permissions violation'\r\n"]),
)


@given(st.lists(PIECES, max_size=20), st.lists(st.integers(1, 60), min_size=1, max_size=10))
def test_the_pieces_do_not_matter_and_nats_py_reads_the_same(pieces: list[bytes], cuts: list[int]) -> None:
    stream, theirs, ours = b"".join(pieces), Client(), Client()

    async def read() -> None:
        await Parser(theirs).parse(stream)
        parser, at, n = TurnParser(ours, ours.take, lambda: False), 0, 0
        while at < len(stream):
            size = cuts[n % len(cuts)]
            await parser.parse(stream[at : at + size])
            at, n = at + size, n + 1

    asyncio.run(read())
    assert ours.got == theirs.got


@pytest.mark.parametrize("line", [b"MSG\r\n", b"MSG a b c\r\n", b"x" * 5000, b"nonsense\r\n"])
async def test_what_is_no_nats_ends_the_line(line: bytes) -> None:
    client = Client()
    with pytest.raises(ProtocolError):
        await TurnParser(client, client.take, lambda: False).parse(line)
