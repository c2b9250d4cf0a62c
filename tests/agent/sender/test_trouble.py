"""Trouble: the hub is away, stalls, refuses or talks nonsense. The agent is never slowed, blocked or ended by it."""

import json
import logging
import threading
import time
from contextlib import ExitStack

import pytest

from lifesigns import wire
from lifesigns.agent.sender import shutdown
from lifesigns.agent.sender.session import Alert
from lifesigns.assembly.senders import Sender
from lifesigns.core import signals as s
from lifesigns.core.effects import SendNudge, SendPing
from tests.agent.sender.http_hub import HttpHub, answer
from tests.servers.process import free_port


def test_three_failures_in_a_row_are_told_once_and_so_is_the_end_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    alerts: list[Alert] = []
    port = free_port()
    with Sender(
        "a", f"http://127.0.0.1:{port}", on_alert=alerts.append, retry_after=0.05, interval=0.05
    ) as life:
        life.progress("said while nobody was there")
        _until(lambda: life.stats.consecutive_failures > 6)
        assert [(alert.well, alert.failures) for alert in alerts] == [(False, 3)]
        assert "refused" in alerts[0].error or "Connect" in alerts[0].error
        assert not life.stats.connected
        with HttpHub(port) as hub:
            hub.until(lambda: hub.of(s.ProgressMade))
            _until(lambda: len(alerts) == 2)
            assert alerts[1].well
            assert life.stats.consecutive_failures == 0
            _until(lambda: life.stats.connected)
            hub.until(lambda: len(hub.of(s.AgentRegistered)) == 2)  # a hub that was away is told again
            life.close()
    warnings = [record for record in caplog.records if record.name == "lifesigns.sender"]
    assert len(warnings) == 2


def test_everything_said_while_the_hub_was_away_arrives_in_order() -> None:
    port = free_port()
    with Sender("a", f"http://127.0.0.1:{port}", close_for=10) as life:
        for number in range(500):
            life.progress(str(number))
        _until(lambda: life.stats.consecutive_failures >= 2)
        with HttpHub(port) as hub:
            hub.until(lambda: len(hub.of(s.ProgressMade)) == 500)
            assert [word.note for word in hub.of(s.ProgressMade)] == [str(number) for number in range(500)]
            life.close()


def test_it_is_back_within_five_seconds_of_the_hubs_return() -> None:
    """Also with the default waits, after a long absence."""
    port = free_port()
    with Sender("a", f"http://127.0.0.1:{port}") as life:
        _until(lambda: life.stats.consecutive_failures >= 6, within=20)
        with HttpHub(port) as hub:
            hub.until(lambda: hub.beats, within=5)
            life.close()


@pytest.mark.parametrize(
    "said",
    [
        answer(500, {"title": "oops"}),
        answer(503),
        b"HTTP/1.1 202 X\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{",
        b"HTTP/1.1 202 X\r\nContent-Len",
        b"SSH-2.0-OpenSSH\r\nConnection: close\r\n",
        b"HTTP/1.1 202 X\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 202 X\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 202 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 202 X\r\n" + b"X-Y: z\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 202 " + b"y" * 100_000 + b"\r\n\r\n",
        answer(202, [1, 2, 3]),
        answer(202, {"orders": "many"}),
        b"Connection: close",
        b"\r\n\r\nConnection: close",
    ],
    ids=range(14),
)
def test_a_hub_that_talks_nonsense_is_a_failure_and_it_goes_on_afterwards(hub: HttpHub, said: bytes) -> None:
    hub.misbehave = lambda path, body: said + b"" if "beats" in path else None
    with Sender("a", hub.url, retry_after=0.05, interval=0.1) as life:
        _until(lambda: life.stats.consecutive_failures >= 1)
        hub.misbehave = None
        hub.drop_connections()
        hub.until(lambda: hub.beats)
        _until(lambda: life.stats.connected)


def test_a_hub_that_closes_after_every_answer_is_used_all_the_same(hub: HttpHub) -> None:
    def close(path: str, body: bytes) -> bytes | None:
        if "orders" in path:
            return None
        kind = hub.beats if "beats" in path else hub.words
        hub._take_in(kind, _decode(path, body), [])
        return answer(202, {"accepted": 1, "rejected": []}, head="Connection: close\r\n")

    hub.misbehave = close
    with Sender("a", hub.url, interval=0.05) as life:
        hub.until(lambda: len(hub.beats) >= 10)
        assert life.stats.failed == 0


def test_a_chunked_answer_is_read(hub: HttpHub) -> None:
    said = b'HTTP/1.1 202 X\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n{"rej\r\nb\r\nected": []}\r\n0\r\nX: y\r\n\r\n'
    hub.misbehave = lambda path, body: said if "beats" in path else None
    with Sender("a", hub.url, interval=0.05) as life:
        _until(lambda: life.stats.sent > 5)
        assert life.stats.failed == 0


def test_connections_dropped_while_idle_cost_no_failure(hub: HttpHub) -> None:
    """Servers close kept connections; that is no trouble worth a word."""
    with Sender("a", hub.url, interval=0.1) as life:
        for _ in range(5):
            _hear_more(hub)
            hub.drop_connections()
        _hear_more(hub)
        assert life.stats.failed <= 2  # one may be hit in the middle


def test_a_wrong_token_is_said_once_and_tried_slowly(hub: HttpHub, caplog: pytest.LogCaptureFixture) -> None:
    hub.misbehave = lambda path, body: answer(401, {"title": "Unauthorized", "detail": "unknown token"})
    with Sender("a", hub.url, token="wrong", retry_after=0.1, interval=0.05, close_for=0.1) as life:
        _until(lambda: life.stats.failed >= 3)
        asked = [headers for path, headers in hub.requests if "beats" in path]
        assert asked[0]["authorization"] == "Bearer wrong"
        assert life.stats.failed <= 6
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(said) == 1
    assert "unknown token" in said[0]
    assert "its token" in said[0]


def test_a_token_comes_from_the_environment(hub: HttpHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIFESIGNS_TOKEN", "from-there")
    monkeypatch.setenv("LIFESIGNS_HUB", hub.url)
    monkeypatch.setenv("LIFESIGNS_AGENT_ID", "by-name")
    with Sender():
        hub.until(lambda: hub.beats)
    assert hub.beats[0].agent_id == "by-name"
    assert hub.requests[0][1]["authorization"] == "Bearer from-there"


def test_what_the_hub_rejects_is_logged_with_field_and_reason(
    hub: HttpHub, caplog: pytest.LogCaptureFixture
) -> None:
    rejected = {
        "accepted": 0,
        "rejected": [{"index": 0, "field": "load", "detail": "is too much"}],
        "orders": {},
    }
    hub.misbehave = lambda path, body: answer(202, rejected) if "beats" in path else None
    with Sender("a", hub.url):
        _until(lambda: "load: is too much" in caplog.text)


def test_a_message_that_is_refused_for_good_does_not_block_what_follows(
    hub: HttpHub, caplog: pytest.LogCaptureFixture
) -> None:
    hub.misbehave = lambda path, body: (
        answer(422, {"detail": "type: unknown"}) if b"poison" in body and "signals" in path else None
    )
    with Sender("a", hub.url) as life:
        hub.until(lambda: hub.beats)
        life.progress("poison")
        _until(lambda: "type: unknown" in caplog.text)
        life.progress("after it")
        hub.until(lambda: [word for word in hub.of(s.ProgressMade) if word.note == "after it"])


def test_a_stalled_hub_blocks_nobody_and_pings_still_come_through(hub: HttpHub) -> None:
    hub.stall = True
    started = time.monotonic()
    life = Sender("a", hub.url, close_for=0.2).start()
    for number in range(1000):
        life.progress(str(number))
    assert time.monotonic() - started < 1
    closing = time.monotonic()
    life.close()
    assert time.monotonic() - closing < 1


def test_close_is_bounded_when_nobody_is_there() -> None:
    life = Sender("a", f"nats://127.0.0.1:{free_port()}", close_for=0.3).start()
    life.progress("x")
    closing = time.monotonic()
    life.close()
    assert time.monotonic() - closing < 1.5


def test_many_senders_that_start_while_nobody_is_there_are_one_try_and_end_together(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither do they knock once each, nor does the log tell of each, nor do their good-byes wait one after the other."""
    alerts: list[Alert] = []
    hub = f"http://127.0.0.1:{free_port()}"
    lives = [Sender(f"a-{n}", hub, on_alert=alerts.append, close_for=0.3).start() for n in range(50)]
    _until(lambda: len(alerts) == 50)
    assert lives[0].stats.failed <= 6
    assert len([record for record in caplog.records if record.name == "lifesigns.sender"]) == 1
    began = time.monotonic()
    shutdown.leave_all("exit")
    assert time.monotonic() - began < 2


def test_an_alert_callback_that_hangs_or_raises_stops_no_beat(
    hub: HttpHub, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()

    def on_alert(alert: Alert) -> None:
        release.wait(20)
        raise RuntimeError("mine")

    hub.misbehave = lambda path, body: answer(500) if "beats" in path else None
    try:
        with Sender("a", hub.url, on_alert=on_alert, retry_after=0.02, interval=0.05) as life:
            _until(lambda: life.stats.failed >= 5)
            hub.misbehave = None
            hub.until(lambda: len(hub.beats) >= 3)
    finally:
        release.set()


def test_an_order_rides_back_with_a_beat_and_is_acknowledged(hub: HttpHub) -> None:
    with Sender("org/a", hub.url, interval=0.1):
        hub.until(lambda: hub.beats)
        for _ in range(3):
            hub.offer(SendNudge(time.time(), "1/1", 1, "org/a", None, 1, "well?"), ride=True)
            seen = len(hub.beats)
            hub.until(lambda seen=seen: len(hub.beats) > seen + 1)  # type: ignore[misc]
        hub.until(lambda: hub.of(s.NudgeDelivered) and hub.acks)
    assert hub.acks == ["1/1"]


def test_a_ping_is_answered_and_not_acknowledged(hub: HttpHub) -> None:
    with Sender("a", hub.url, interval=0.1):
        hub.until(lambda: hub.beats)
        hub.offer(SendPing(time.time(), "1-1", 1, "a", None, 4, "silence"), ride=True)
        hub.until(lambda: hub.of(s.PongReceived))
        hub.offer(SendNudge(time.time(), "1-2", 1, "a", None, 1, "well?"), ride=True)
        hub.until(lambda: hub.acks)
    assert hub.acks == ["1-2"]
    assert len(hub.of(s.PongReceived)) == 1


def test_a_hub_that_offers_the_same_orders_for_ever_is_asked_less_and_less(hub: HttpHub) -> None:
    """However many they are: they are obeyed and acknowledged once, and nothing grows, spins, or stands before the beats."""
    orders = [SendNudge(time.time(), f"1-{n}", 1, f"a-{n % 5}", None, 1, "well?") for n in range(60)]
    shown = [json.loads(wire.encode_order(order)) for order in orders]
    polls: list[float] = []

    def offer_all(path: str, body: bytes) -> bytes | None:
        if "/orders?" not in path:
            return None
        polls.append(time.monotonic())
        return answer(200, {"orders": {"a": shown}})

    hub.misbehave = offer_all
    with ExitStack() as stack:
        for n in range(5):
            stack.enter_context(Sender(f"a-{n}", hub.url, interval=0.2))
        hub.until(lambda: len(hub.acks) == 60)
        beats, asked = len(hub.beats), len(polls)
        hub.until(lambda: len(hub.beats) > beats + 50)
        assert len(polls) - asked < 10
    assert sorted(hub.acks) == sorted(order.order_id for order in orders)
    assert len(hub.of(s.NudgeDelivered)) == 60


def test_one_poll_asks_for_all_agents_of_a_process(hub: HttpHub) -> None:
    with Sender("a", hub.url), Sender("b", hub.url), Sender("c", hub.url):
        hub.until(lambda: any(set(polled) == {"a", "b", "c"} for polled in hub.polled))
        hub.offer(SendPing(time.time(), "1-1", 1, "b", None, 4, "silence"))
        hub.until(lambda: hub.of(s.PongReceived))
    assert hub.of(s.PongReceived)[0].agent_id == "b"
    assert hub.connections <= 2 + len(hub.polled)


def _hear_more(hub: HttpHub) -> None:
    heard = len(hub.beats)
    hub.until(lambda: len(hub.beats) > heard + 1)


def _decode(path: str, body: bytes) -> object:
    from lifesigns import wire

    return wire.decode_beats(body) if "beats" in path else wire.decode_signals(body, now=time.time())


def _until(holds: object, within: float = 10.0) -> None:
    until = time.monotonic() + within
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < until, f"not within {within} s"
        time.sleep(0.005)
