"""Which failures are tried again, which never, and for how long."""

from __future__ import annotations

import socket
import time

import pytest

from lifesigns.client import AsyncClient, Client
from lifesigns.client.event_stream import EventStream
from lifesigns.client.request import Reply, Request, nothing
from lifesigns.client.tries import WAIT_MAX, Tries, backoff
from lifesigns.errors import HubError, UsageError
from tests.client.scripted import Answer, scripted

ALIVE: Answer = (200, {}, b'{"status":"ok"}')
BUSY: Answer = (
    503,
    {"retry-after": "0"},
    b'{"type":"about:blank","title":"no","status":503,"detail":"no room"}',
)
RECEIPT: Answer = (202, {}, b'{"accepted":1,"rejected":[],"orders":{}}')

READ = Request("GET", "/x", nothing, repeatable=True)
ACT = Request("POST", "/x", nothing, body=b"{}")


def reply(status: int, **headers: str) -> Reply:
    return Reply(status, headers, b"")


def tries(request: Request[None], retry_for: float = 10.0) -> Tries:
    return Tries(request, "http://hub", retry_for, now=100.0)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_hub_is_asked_again_if_that_is_safe(status: int) -> None:
    """An act may have been heard, unless the hub refused to hear it (429)."""
    assert tries(READ).after_reply(reply(status), 100.0) is not None
    assert (tries(ACT).after_reply(reply(status), 100.0) is not None) == (status == 429)


@pytest.mark.parametrize("status", [200, 204, 400, 401, 403, 404, 409, 413, 500])
def test_an_answer_is_an_answer(status: int) -> None:
    assert tries(READ).after_reply(reply(status), 100.0) is None


def test_the_hub_says_how_long_to_wait() -> None:
    assert tries(READ).after_reply(reply(503, **{"retry-after": "7"}), 100.0) == 7.0
    assert tries(READ).after_reply(reply(503, **{"retry-after": "11"}), 100.0) is None
    waits = tries(READ).after_reply(reply(503, **{"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}), 100.0)
    assert waits is not None
    assert waits < 1.0


def test_it_ends_after_retry_for() -> None:
    some = tries(READ, retry_for=10.0)
    assert some.after_reply(reply(503), 109.0) is not None
    assert some.after_reply(reply(503), 110.0) is None
    assert tries(READ, retry_for=0.0).after_reply(reply(503), 100.0) is None


def test_what_cannot_have_been_heard_is_always_asked_again() -> None:
    refused = ConnectionRefusedError("refused")
    assert tries(ACT).after_failure(refused, 100.0, heard=False) > 0
    assert tries(READ).after_failure(refused, 100.0, heard=True) > 0
    with pytest.raises(HubError, match="refused") as error:
        tries(ACT).after_failure(refused, 100.0, heard=True)
    assert (error.value.status, error.value.transient, error.value.__cause__) == (None, True, refused)


def test_waits_grow_and_are_bounded() -> None:
    assert all(0 < backoff(n) <= WAIT_MAX for n in range(1, 2000, 7))
    assert backoff(10) > backoff(1)


# --- over a wire --------------------------------------------------------------------------------------


def test_a_busy_hub_gets_another_chance() -> None:
    with scripted(BUSY, BUSY, None, ALIVE) as hub, Client(hub.url) as client:
        assert client.health().status == "ok"
        assert len(hub.asked) == 4


async def test_a_busy_hub_gets_another_chance_from_asyncio_too() -> None:
    with scripted(BUSY, None, ALIVE) as hub:
        async with AsyncClient(hub.url) as client:
            assert (await client.health()).status == "ok"


def test_beats_and_messages_are_repeated_and_other_acts_are_not() -> None:
    message = (
        b'{"message_id":"m","agent_id":"a","to":"b","priority":"high","sent_at":"2026-11-15T18:00:00.000Z",'
        b'"reminded_at":null,"overdue_at":null,"due_at":null}'
    )
    with scripted(None, RECEIPT) as hub, Client(hub.url) as client:
        assert client.beat("a").accepted == 1
    with scripted(None, (202, {}, message)) as hub, Client(hub.url) as client:
        assert client.send_message("a", "b").message_id == "m"
        assert len(hub.asked) == 2
    with scripted(None, RECEIPT) as hub, Client(hub.url) as client:
        with pytest.raises(HubError):
            client.signal("model_finished", "a", tokens_in=5)
        with pytest.raises(HubError):
            client.claim("t", "a")
        assert len(hub.asked) == 2


def test_patience_has_an_end_and_the_last_words_are_kept() -> None:
    began = time.monotonic()
    with scripted(BUSY) as hub, Client(hub.url, retry_for=0.4) as client:
        with pytest.raises(HubError) as error:
            client.fleet()
        assert len(hub.asked) >= 2
    assert (error.value.status, error.value.detail, error.value.transient) == (503, "no room", True)
    assert time.monotonic() - began < 10


def test_nobody_there_says_where_it_looked() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets it, nobody answers
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Client(url, retry_for=0.2) as client, pytest.raises(HubError, match=url) as error:
            client.signal("progress", "a")
        assert error.value.status is None


def test_a_redirect_is_not_followed_and_the_token_stays_here() -> None:
    with scripted((200, {}, b"{}")) as thief, scripted((302, {"location": thief.url}, b"")) as hub:
        with Client(hub.url, "ls_secret") as client, pytest.raises(HubError, match="is this a lifesigns hub"):
            client.fleet()
        assert hub.asked[0][2]["authorization"] == "Bearer ls_secret"
        assert thief.asked == []


def test_a_proxy_of_the_environment_is_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(ALIVE) as hub, scripted(ALIVE) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with Client(hub.url, "t") as client:
            client.health()
        assert (len(hub.asked), len(proxy.asked)) == (1, 0)
        with Client("http://hub.example:8710") as client:
            client.health()
        assert len(proxy.asked) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"agents":"x"}', b"\xff", b""])
def test_what_is_no_hub_is_said_to_be_none(body: bytes) -> None:
    with scripted((200, {}, body)) as other, Client(other.url) as client:
        with pytest.raises(HubError, match="its answer is not what a lifesigns hub") as error:
            client.fleet()
        assert not error.value.transient


@pytest.mark.parametrize(
    "hub",
    [
        "127.0.0.1:8710",
        "nats://x",
        "http://",
        "http://u:p@h",
        "http://h/?a=b",
        "http://h:x",
        "http://a b",
    ],
)
def test_an_address_that_cannot_work_is_a_mistake_of_the_caller(hub: str) -> None:
    with pytest.raises(UsageError, match="hub is"):
        Client(hub)


@pytest.mark.parametrize("token", ["with\nbreak", "ümlaut"])
def test_a_token_that_no_header_can_carry_is_one_too(token: str) -> None:
    with pytest.raises(UsageError, match="token"):
        Client("http://h", token)


# --- streams ------------------------------------------------------------------------------------------

EVENT = b'{"id":7,"type":"X","at":"2026-11-15T18:00:00.000Z","agent_id":"a","data":{}}'


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_events_are_read_whatever_the_pieces(end: bytes, size: int) -> None:
    lines = [
        b"retry: 250",
        b"",
        b":",
        b"id: 7",
        b"event: X",
        b"data: " + EVENT,
        b"",
        b"id:8",
        b"data:" + EVENT,
        b"",
        b"",
    ]
    raw = end.join(lines) + b": tail"
    stream = EventStream()
    events = [event for n in range(0, len(raw), size) for event in stream.feed(raw[n : n + size])]
    assert [(event.id, event.type, event.agent_id) for event in events] == [(7, "X", "a")] * 2
    assert stream.last_id == "8"


def test_half_an_event_counts_for_nothing() -> None:
    """Its id is not remembered either, so it is told again."""
    stream = EventStream()
    stream.feed(b"id: 1\ndata: " + EVENT + b"\n\nid: 2\ndata: " + EVENT + b"\n")
    assert stream.last_id == "1"
    stream.begin()
    assert stream.feed(b"\n") == []
    assert stream.last_id == "1"


def test_a_stream_that_is_none_is_said_to_be_none() -> None:
    with pytest.raises(HubError, match="cannot be read"):
        EventStream().feed(b"data: <html>\n\n")


def test_a_lost_stream_waits_longer_each_time_and_not_at_all_if_it_never_was() -> None:
    stream = EventStream()
    with pytest.raises(HubError):
        stream.lost(OSError("gone"), "http://hub", reconnect=True)
    told: list[str | None] = []
    stream = EventStream(told.append)
    stream.feed(b"retry: 20\n\n")
    waits = [stream.lost(OSError("gone"), "http://hub", reconnect=True) for _ in range(8)]
    assert waits[0] == 0.02
    assert waits[-1] is not None
    assert waits[-1] > 1
    assert told[:2] == [None, "http://hub: gone"]
    with pytest.raises(HubError):
        stream.lost(HubError("no", status=401, transient=False), "http://hub", reconnect=True)
