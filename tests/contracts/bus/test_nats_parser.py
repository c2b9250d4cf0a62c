"""What a NATS server sends is the same however it is cut into pieces, and the same as nats-py reads it. Unwanted messages are left
out, and nothing else, whatever is in them; that is much quicker than to read them."""

from __future__ import annotations

import asyncio
import re
import socket
from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from lifesigns.adapters.bus.nats import NatsBus
from lifesigns.adapters.bus.nats_connection import _Client
from lifesigns.adapters.bus.nats_parser import TurnParser
from lifesigns.adapters.bus.skipping import SKIPPED_LENGTH_MAX
from lifesigns.wire.subjects import of_senders, sender
from tests.contracts.bus.ground import Ear, eventually
from tests.servers.nats import NatsServer


class MessageFilter:
    """What these senders say."""

    def __init__(self, *names: str) -> None:
        self.names, self.subjects, self.dropped = names, of_senders(names), 0

    def drops(self, subject: str, count: int = 1) -> bool:
        if found := sender(subject) in self.names:
            self.dropped += count
        return found


class Client:
    """Writes down what it is given, but for what is unwanted."""

    def __init__(self, unwanted: MessageFilter | None = None) -> None:
        self.got: list[tuple[Any, ...]] = []
        self._unwanted = unwanted or MessageFilter()

    def take(self, number: int, subject: bytes, payload: bytes) -> None:
        if not self._unwanted.drops(subject.decode()):
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


EDGES = (0, 1, 9, 10, 99, 100, SKIPPED_LENGTH_MAX, SKIPPED_LENGTH_MAX + 1, 1000)
PAYLOADS = (
    st.binary(max_size=40)
    | st.sampled_from([b"\r\n", b"MSG a 1 0\r\n\r\n", b"PING\r\n", b"\r\nMSG heartbeat.a 1 2\r\nxx\r\n"])
    | st.sampled_from(EDGES).map(bytes)
)
SUBJECTS = st.sampled_from(
    [b"heartbeat.a", b"heartbeat.a.b", b"heartbeat.ab", b"lifesigns.signal.x", b"lifesigns.report.r.1.a.b"]
)


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
        parser, at, n = TurnParser(ours, ours.take, lambda: None), 0, 0
        while at < len(stream):
            size = cuts[n % len(cuts)]
            await parser.parse(stream[at : at + size])
            at, n = at + size, n + 1

    asyncio.run(read())
    assert ours.got == theirs.got


@given(st.lists(PIECES, max_size=20), st.lists(st.integers(1, 60), min_size=1, max_size=10))
def test_unwanted_messages_are_left_out_and_nothing_else(pieces: list[bytes], cuts: list[int]) -> None:
    stream, theirs, unwanted = b"".join(pieces), Client(), MessageFilter("a", "x")
    ours = Client(unwanted)

    async def read() -> None:
        await Parser(theirs).parse(stream)
        parser, at, n = TurnParser(ours, ours.take, lambda: unwanted), 0, 0
        while at < len(stream):
            size = cuts[n % len(cuts)]
            await parser.parse(stream[at : at + size])
            at, n = at + size, n + 1

    asyncio.run(read())
    assert ours.got == [one for one in theirs.got if len(one) < 3 or one[1] == b"heartbeat.ab"]


@given(
    st.lists(st.sampled_from(["a", "b-1", "relay:h", "a+", ""]), min_size=1),
    st.lists(
        st.sampled_from(["heartbeat", "lifesigns", "signal", "report", "a", "b-1", "relay:h", "%2E", ""])
    ),
)
def test_a_subject_that_may_be_skipped_is_one_of_an_unwanted_sender(
    names: list[str], parts: list[str]
) -> None:
    subject = ".".join(parts)
    if re.fullmatch(of_senders(names), subject):
        assert sender(subject) in names


async def test_to_skip_messages_takes_a_fraction_of_what_reading_them_does() -> None:
    """The hub keeps up with a flood, so that those who are between are heard in time: docs/decisions/0085."""
    beat = b'{"agent_id":"evil.b-1"}'
    flood = b"".join(message(b"heartbeat.evil.b-%d" % (n % 10), beat, b"") for n in range(500))

    async def least_seconds(unwanted: MessageFilter | None) -> float:
        took = []
        for _ in range(20):
            parser = TurnParser(Client(), lambda *_: None, lambda: unwanted)
            began = thread_time()
            await parser.parse(flood)
            took.append(thread_time() - began)
        return min(took)

    assert await least_seconds(MessageFilter("evil")) < 0.6 * await least_seconds(None)


@pytest.mark.parametrize("line", [b"MSG\r\n", b"MSG a b c\r\n", b"x" * 5000, b"nonsense\r\n"])
async def test_what_is_no_nats_ends_the_line(line: bytes) -> None:
    client = Client()
    with pytest.raises(ProtocolError):
        await TurnParser(client, client.take, lambda: None).parse(line)


async def test_a_server_leaves_out_headers_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """nats-py reads messages with headers, one after the other: nobody shall be able to slow us down by them."""
    slow: list[bytes] = []

    async def read_slowly(_self: object, _sid: int, subject: bytes, *_: bytes) -> None:
        slow.append(subject)

    monkeypatch.setattr(_Client, "_process_msg", read_slowly)
    with NatsServer() as server:
        bus, ear = NatsBus(server.url), Ear()
        await bus.connect()
        try:
            await bus.subscribe("heartbeat.>", ear)
            with socket.create_connection(("127.0.0.1", server.port)) as peer:
                peer.sendall(b'CONNECT {"verbose":false,"headers":true}\r\n')
                peer.sendall(b"HPUB heartbeat.a 21 23\r\nNATS/1.0\r\nkey: ab\r\n\r\nhi\r\n")
                await eventually(lambda: bool(ear.payloads or slow))
        finally:
            await bus.close()
    assert (ear.payloads, slow) == ([b"hi"], [])
