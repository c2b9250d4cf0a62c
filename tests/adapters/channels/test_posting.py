"""What every channel over HTTP does with a server that takes, refuses, hangs or is not there. No secret ever shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from time import time

import pytest

from lifesigns.adapters.channels.pagerduty import PagerDutyChannel
from lifesigns.adapters.channels.slack import SlackBot, SlackWebhook
from lifesigns.adapters.channels.webhook import WebhookChannel
from lifesigns.adapters.posting import Poster
from lifesigns.errors import UsageError
from lifesigns.ports import Channel, NotDelivered
from tests.adapters.channels.peers import Peer, Reply, notice

SECRET = "T0P-53CR37-part"

CHANNELS: dict[str, Callable[[str], Channel]] = {
    "webhook": lambda url: WebhookChannel(f"{url}/{SECRET}", secret=SECRET, headers={"X-Key": SECRET}),
    "slack webhook": lambda url: SlackWebhook(f"{url}/services/{SECRET}"),
    "slack bot": lambda url: SlackBot(SECRET, "#ops", api=f"{url}/api"),
    "pagerduty": lambda url: PagerDutyChannel(SECRET, api=url),
}
each_channel = pytest.mark.parametrize("make", CHANNELS.values(), ids=CHANNELS)


async def refused(channel: Channel) -> NotDelivered:
    with pytest.raises(NotDelivered) as caught:
        await channel.tell(notice())
    await channel.close()
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None, "a cause may know the address"
    assert len(str(caught.value)) <= 200
    return caught.value


@each_channel
@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 429])
async def test_what_may_pass_is_worth_another_try(make: Callable[[str], Channel], status: int) -> None:
    async with Peer(lambda _: Reply(status, b"busy")) as peer:
        error = await refused(make(peer.url))
    assert error.transient
    assert not error.uncertain
    assert str(status) in str(error)
    assert "busy" in str(error)


@each_channel
@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 301, 307])
async def test_what_was_refused_for_good_is_said_to_be(make: Callable[[str], Channel], status: int) -> None:
    async with Peer(lambda _: Reply(status, b"no", {"Location": "http://127.0.0.1:1/"})) as peer:
        error = await refused(make(peer.url))
        assert len(peer.requests) == 1, "nobody is followed elsewhere with a secret in hand"
    assert not error.transient


@each_channel
async def test_a_server_says_when_to_come_again(make: Callable[[str], Channel]) -> None:
    async with Peer(lambda _: Reply(429, headers={"Retry-After": "42"})) as peer:
        assert (await refused(make(peer.url))).retry_after == 42
    async with Peer(
        lambda _: Reply(503, headers={"Retry-After": formatdate(time() + 60, usegmt=True)})
    ) as peer:
        said = (await refused(make(peer.url))).retry_after
        assert said is not None
        assert 30 <= said <= 61
    for nonsense in ("soon", "-5", "9" * 40, "Fri, 99 Feb 2026"):
        answer = Reply(429, headers={"Retry-After": nonsense})
        async with Peer(lambda _, answer=answer: answer) as peer:  # type: ignore[misc]
            assert (await refused(make(peer.url))).retry_after is None


@each_channel
async def test_a_server_that_is_down_and_back_is_told_then(make: Callable[[str], Channel]) -> None:
    peer = Peer(lambda _: Reply(200, b'{"ok": true}'))
    await peer.start()
    channel = make(peer.url)
    await channel.tell(notice())
    await peer.stop()
    with pytest.raises(NotDelivered) as caught:
        await channel.tell(notice())
    assert caught.value.transient
    await peer.start(peer.port)
    await channel.tell(notice())
    assert len(peer.requests) == 2
    await channel.close()
    await peer.stop()


async def test_a_server_that_is_not_there_has_heard_nothing() -> None:
    async with Peer() as peer:
        url = peer.url
    error = await refused(SlackWebhook(f"{url}/{SECRET}"))
    assert error.transient
    assert not error.uncertain


@pytest.mark.parametrize("reply", [Reply(hangs=True), Reply(hangs_up=True)], ids=["hangs", "hangs up"])
async def test_a_server_that_gives_no_answer_may_have_taken_it(reply: Reply) -> None:
    async with Peer(lambda _: reply) as peer:
        poster = Poster(f"{peer.url}/{SECRET}", NotDelivered, timeout=0.3)
        with pytest.raises(NotDelivered) as caught:
            await poster.post("", b"{}", {})
        await poster.close()
    assert caught.value.transient
    assert caught.value.uncertain
    assert SECRET not in str(caught.value)


async def test_an_endless_answer_is_not_read_to_its_end() -> None:
    sent, hung_up = 0, asyncio.Event()

    async def answer_for_ever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 1000000000000\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
                sent += 65_536
        hung_up.set()
        writer.close()

    server = await asyncio.start_server(answer_for_ever, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await refused(SlackWebhook(f"http://127.0.0.1:{port}/{SECRET}"))
        await asyncio.wait_for(hung_up.wait(), 5)
    assert sent < 50_000_000  # what we read, and the buffers of the two sockets


@each_channel
async def test_a_server_that_repeats_our_secret_does_not_make_us_say_it(
    make: Callable[[str], Channel],
) -> None:
    async with Peer(lambda r: Reply(401, f"no: {r.path} {r.headers} {SECRET}".encode())) as peer:
        await refused(make(peer.url))


@each_channel
async def test_no_log_line_holds_a_secret(
    make: Callable[[str], Channel], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with Peer(lambda _: Reply(200, b'{"ok": true}')) as peer:
        channel = make(peer.url)
        await channel.tell(notice())
        assert SECRET not in repr(channel)
        await channel.close()
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "url", ["{}", "hooks.slack.com/{}", "ftp://host/{}", "https:///{}", "http://[::1/{}", "file:///{}"]
)
def test_an_address_that_is_none_is_said_to_be_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError, match="https://host/path") as caught:
        SlackWebhook(url.format(SECRET))
    assert SECRET not in str(caught.value)
