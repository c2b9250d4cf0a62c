"""What a Redis server sends is the same however it is cut into pieces, and the same as hiredis reads it. Unwanted messages are left
out, and nothing else, whatever is in them; that is much quicker than to read them."""

from __future__ import annotations

from time import thread_time

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.adapters.bus.redis_parser import Refusal, ReplyParser
from lifesigns.adapters.bus.skipping import SKIPPED_LENGTH_MAX
from tests.contracts.bus.test_nats_parser import MessageFilter

EDGES = (0, 1, 9, 10, 99, 100, SKIPPED_LENGTH_MAX, SKIPPED_LENGTH_MAX + 1, 1000)


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text)


def message(channel: bytes, payload: bytes) -> bytes:
    return b"*4\r\n" + b"".join(map(bulk, (b"pmessage", b"heartbeat.*", channel, payload)))


INNER = message(b"heartbeat.ab", b"forged")
PAYLOADS = (
    st.binary(max_size=40)
    | st.sampled_from([b"\r\n", INNER, b"\r\n" + INNER, b"+PONG\r\n", b"x\r\n" + INNER])
    | st.sampled_from(EDGES).map(bytes)
)
CHANNELS = st.sampled_from(
    [
        b"heartbeat.a",
        b"heartbeat.a.b",
        b"heartbeat.ab",
        b"lifesigns.signal.x",
        b"lifesigns.report.r.1.a.b",
        b"heartbeat.a." + b"l" * 300,
        b"heartbeat.a.b \xff",
        b"heartbeat.ab \xff",
        # Channels that pretend to end, so that the rest of them would be another message.
        b"heartbeat.a\r\n$1\r\nx\r\n" + INNER,
        b"heartbeat.a\r\n$0\r\n\r\n" + INNER[:-2],
    ]
)
PIECES = st.one_of(
    st.builds(message, CHANNELS, PAYLOADS),
    st.builds(message, CHANNELS, PAYLOADS),
    st.builds(lambda text: b"*3\r\n" + bulk(b"message") + bulk(b"heartbeat.p") + bulk(text), PAYLOADS),
    st.sampled_from(
        [
            b":1\r\n",
            b":0\r\n:12\r\n",
            b"+PONG\r\n",
            b"*2\r\n$4\r\npong\r\n$0\r\n\r\n",
            b"*3\r\n$10\r\npsubscribe\r\n$11\r\nheartbeat.*\r\n:1\r\n",
            b"-NOPERM no\r\n",
            b"$-1\r\n",
        ]
    ),
)
CUTS = st.lists(st.integers(1, 60), min_size=1, max_size=10)


def by_hiredis(stream: bytes) -> list[object]:
    """Without numbers, which tell nobody anything."""
    reader = hiredis.Reader()
    reader.feed(stream)
    replies: list[object] = []
    while (reply := reader.gets()) is not False:
        if not isinstance(reply, int):
            replies.append(str(reply) if isinstance(reply, hiredis.ReplyError) else reply)
    return replies


def by_us(stream: bytes, cuts: list[int], unwanted: MessageFilter | None = None) -> list[object]:
    replies: list[object] = []

    def take(glob: bytes, channel: bytes, payload: bytes) -> None:
        if unwanted is None or not unwanted.drops(channel.decode(errors="replace")):
            replies.append([b"pmessage", glob, channel, payload])

    def answer(reply: object) -> None:
        replies.append(str(reply) if isinstance(reply, Refusal) else reply)

    parser, at, n = ReplyParser(take, answer), 0, 0
    while at < len(stream):
        size = cuts[n % len(cuts)]
        parser.feed(stream[at : at + size], unwanted)
        at, n = at + size, n + 1
    return replies


@given(st.lists(PIECES, max_size=20), CUTS)
def test_the_pieces_do_not_matter_and_hiredis_reads_the_same(pieces: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(pieces)
    assert by_us(stream, cuts) == by_hiredis(stream)


@given(st.lists(PIECES, max_size=20), CUTS)
def test_unwanted_messages_are_left_out_and_nothing_else(pieces: list[bytes], cuts: list[int]) -> None:
    stream, unwanted = b"".join(pieces), MessageFilter("a", "x")
    wanted = [
        reply
        for reply in by_hiredis(stream)
        if not (
            isinstance(reply, list)
            and reply[0] == b"pmessage"
            and unwanted.drops(reply[2].decode(errors="replace"))
        )
    ]
    assert by_us(stream, cuts, unwanted) == wanted
    assert by_us(stream, [len(stream) or 1], unwanted) == wanted


def test_to_skip_messages_takes_a_fraction_of_what_reading_them_does() -> None:
    """The hub keeps up with a flood, so that those who are between are heard in time: docs/decisions/0085."""
    flood = b"".join(
        message(b"heartbeat.evil.b-%d" % (n % 10), b'{"agent_id":"evil.b-1"}') for n in range(500)
    )

    def least_seconds(unwanted: MessageFilter | None) -> float:
        took = []
        for _ in range(20):
            parser = ReplyParser(lambda *_: None, lambda _: None)
            began = thread_time()
            parser.feed(flood, unwanted)
            took.append(thread_time() - began)
        return min(took)

    assert least_seconds(MessageFilter("evil")) < 0.6 * least_seconds(None)


@pytest.mark.parametrize(
    "line", [b"nonsense\r\n", b"x" * 70_000, b"*x\r\n", b"*1\r\n" * 9 + b":1\r\n", b"$x\r\n"]
)
def test_what_is_no_resp_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"RESP|no end|invalid literal"):
        by_us(line, [1000])
