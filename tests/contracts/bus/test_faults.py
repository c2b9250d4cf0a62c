"""Servers that crash, freeze and come back. The same `Bus` objects go on, and nothing ever hangs."""

import asyncio
import time
from functools import partial

import pytest

from lifesigns.adapters.bus.server_bus import ANSWER_FOR, CHECK_EVERY, ServerBus
from lifesigns.errors import AdapterError
from tests.contracts.bus.ground import Ear, ServerGround, eventually

BACK_WITHIN = 5.0
NOTICED_WITHIN = CHECK_EVERY + ANSWER_FOR + 3.0
"""The promise, and something for a busy machine."""


async def test_after_a_crash_everybody_is_back_and_hears_as_before(server_ground: ServerGround) -> None:
    speaker, hearer, ear = await server_ground.bus(), await server_ground.bus(), Ear()
    await hearer.subscribe("heartbeat.*", ear)
    await hearer.subscribe("lifesigns.order.x", ear)
    for crash in range(3):
        server_ground.server.kill()
        await eventually(lambda: not speaker.connected and not hearer.connected)
        server_ground.server.start()
        await eventually(lambda: speaker.connected and hearer.connected, BACK_WITHIN)
        await speaker.publish("heartbeat.x", b"%d" % crash)
        await speaker.publish("lifesigns.order.x", b"%d" % crash)
        await ear.until(2 * (crash + 1))
    assert ear.payloads == [b"0", b"0", b"1", b"1", b"2", b"2"]
    assert (speaker.losses, hearer.losses) == (3, 3)


async def test_while_the_server_is_away_a_publish_fails_at_once(server_ground: ServerGround) -> None:
    """And is not sent later behind the caller's back."""
    speaker, hearer, ear = await server_ground.bus(), await server_ground.bus(), Ear()
    await hearer.subscribe("a", ear)
    server_ground.server.kill()
    await eventually(lambda: not speaker.connected)
    began = time.monotonic()
    for _ in range(100):
        for attempt in (speaker.publish("a", b"while away"), speaker.flush()):
            with pytest.raises(AdapterError, match="is lost") as caught:
                await attempt
            assert caught.value.transient
    assert time.monotonic() - began < 1.0
    server_ground.server.start()
    await eventually(lambda: speaker.connected and hearer.connected, BACK_WITHIN)
    await speaker.publish("a", b"after")
    await ear.until(1)
    assert ear.payloads == [b"after"]


async def test_what_is_wanted_and_ended_while_the_server_is_away_counts_when_it_is_back(
    server_ground: ServerGround,
) -> None:
    speaker, hearer = await server_ground.bus(), await server_ground.bus()
    ended, kept, new = Ear(), Ear(), Ear()
    ending = await hearer.subscribe("ended.*", ended)
    await hearer.subscribe("kept.*", kept)
    server_ground.server.kill()
    await eventually(lambda: not hearer.connected)
    await ending.end()
    await hearer.subscribe("new.*", new)
    server_ground.server.start()
    await eventually(lambda: speaker.connected and hearer.connected, BACK_WITHIN)
    for subject in ("ended.x", "new.x", "kept.x"):
        await speaker.publish(subject, b"")
    await kept.until(1)
    await new.until(1)
    assert ended.heard == []


async def test_under_load_a_crash_loses_only_its_own_time(server_ground: ServerGround) -> None:
    """Publishers never stop. Each publish returns or raises within the bound, and everything published after the
    last of us is back arrives, in order."""
    hearer, ear = await server_ground.bus(), Ear()
    await hearer.subscribe("heartbeat.*", ear)
    speakers = [await server_ground.bus() for _ in range(5)]
    loads = {name: Load(bus, f"heartbeat.{name}") for name, bus in zip("abcde", speakers, strict=True)}
    working = [asyncio.ensure_future(load.work()) for load in loads.values()]
    await ear.until(500)
    server_ground.server.kill()
    await eventually(lambda: not any(bus.connected for bus in (hearer, *speakers)))
    server_ground.server.start()
    await eventually(lambda: all(bus.connected for bus in (hearer, *speakers)), BACK_WITHIN)
    back_at = {name: load.number for name, load in loads.items()}
    await ear.until(len(ear.heard) + 500)
    for load in loads.values():
        load.stop = True
    await asyncio.gather(*working)
    for name, load in loads.items():
        await eventually(partial(_has, ear, (load.subject, b"%d" % load.sent[-1])))
        heard = [int(payload) for subject, payload in ear.heard if subject == load.subject]
        assert load.failed, "the server was away"
        assert heard == sorted(heard)
        assert set(heard).isdisjoint(load.failed), "what failed was not sent"
        after = [number for number in load.sent if number > back_at[name]]
        assert after == [number for number in heard if number > back_at[name]], "after its return all arrives"
        assert load.longest < ANSWER_FOR


def _has(ear: Ear, message: tuple[str, bytes]) -> bool:
    return message in ear.heard[-5000:]


class Load:
    """Publishes numbers all the time, whatever happens."""

    def __init__(self, bus: ServerBus, subject: str) -> None:
        self.bus = bus
        self.subject = subject
        self.stop = False
        self.number = 0
        self.sent: list[int] = []
        self.failed: list[int] = []
        self.longest = 0.0

    async def work(self) -> None:
        while not self.stop:
            began = time.monotonic()
            try:
                await self.bus.publish(self.subject, b"%d" % self.number)
                self.sent.append(self.number)
            except AdapterError:
                self.failed.append(self.number)
            self.longest = max(self.longest, time.monotonic() - began)
            self.number += 1
            await asyncio.sleep(0.001)
        await self.bus.flush()


async def test_a_pause_of_our_own_is_not_taken_for_the_servers(server_ground: ServerGround) -> None:
    """Our loop stands still for longer than half of the bound: the answer is there, only nobody has read it yet."""
    bus = await server_ground.bus()
    flush = asyncio.ensure_future(bus.flush())
    await asyncio.sleep(0)
    time.sleep(ANSWER_FOR / 2 + 0.2)  # noqa: ASYNC251 -- this is the point
    await flush
    assert bus.losses == 0


async def test_a_quiet_bus_notices_a_frozen_server_by_itself(server_ground: ServerGround) -> None:
    """Although it had an answer a moment ago, and says nothing itself."""
    hearer = await server_ground.bus()
    await hearer.subscribe("a", Ear())
    server_ground.server.freeze()
    await eventually(lambda: not hearer.connected, NOTICED_WITHIN)


async def test_a_frozen_server_is_noticed_and_found_again_when_it_thaws(server_ground: ServerGround) -> None:
    """A connection that stands but says nothing is as good as lost. Nobody waits for it longer than the bound."""
    speaker, ear = await server_ground.bus(), Ear()
    await speaker.subscribe("a", ear)
    server_ground.server.freeze()
    began = time.monotonic()
    with pytest.raises(AdapterError) as caught:
        await speaker.flush()
    assert caught.value.transient
    assert time.monotonic() - began < ANSWER_FOR + 3.0
    assert not speaker.connected
    server_ground.server.thaw()
    await eventually(lambda: speaker.connected, BACK_WITHIN)
    await speaker.publish("a", b"after")
    await ear.until_last(b"after")


async def test_a_publisher_to_a_frozen_server_is_bounded_in_time_and_memory(
    server_ground: ServerGround,
) -> None:
    speaker = await server_ground.bus()
    server_ground.server.freeze()
    taken, longest, told = 0, 0.0, None
    while told is None and taken < 1_000:
        start = time.monotonic()
        try:
            await speaker.publish("a", bytes(100_000))
            taken += 1
        except AdapterError as error:
            told = error
        longest = max(longest, time.monotonic() - start)
    assert told is not None
    assert told.transient
    assert longest < ANSWER_FOR + 3.0
    assert taken * 100_000 < 32 * 1024 * 1024, "what the kernel takes for both sides, and our small backlog"


async def test_to_close_is_quick_whatever_the_server_does(server_ground: ServerGround) -> None:
    away, frozen = await server_ground.bus(), await server_ground.bus()
    await frozen.subscribe("a", Ear())
    server_ground.server.freeze()
    for _ in range(50):
        await frozen.publish("a", bytes(10_000))
    began = time.monotonic()
    await frozen.close()
    assert time.monotonic() - began < ANSWER_FOR + 3.0
    server_ground.server.kill()
    await eventually(lambda: not away.connected)
    began = time.monotonic()
    await away.close()
    assert time.monotonic() - began < 2.0


async def test_to_connect_to_nobody_fails_quickly_and_says_where(server_ground: ServerGround) -> None:
    server_ground.server.kill()
    bus = server_ground.kind(server_ground.server.url)
    began = time.monotonic()
    with pytest.raises(AdapterError, match=rf"cannot connect to {server_ground.server.url}.*111") as caught:
        await bus.connect()
    assert time.monotonic() - began < 2.0
    assert caught.value.transient
    server_ground.server.start()
    await bus.connect()
    assert bus.connected
    await bus.close()


async def test_to_connect_to_a_frozen_server_fails_within_the_bound(server_ground: ServerGround) -> None:
    server_ground.server.freeze()
    bus = server_ground.kind(server_ground.server.url)
    began = time.monotonic()
    with pytest.raises(AdapterError) as caught:
        await bus.connect()
    assert time.monotonic() - began < 8.0
    assert caught.value.transient
    await bus.close()


async def test_an_attempt_to_connect_may_be_cancelled(server_ground: ServerGround) -> None:
    """Nothing is left open: an unclosed socket would fail this test as a warning."""
    server_ground.server.freeze()
    bus = server_ground.kind(server_ground.server.url)
    attempt = asyncio.ensure_future(bus.connect())
    with pytest.raises(TimeoutError):  # Until it waits for a greeting that does not come.
        await asyncio.wait_for(asyncio.shield(attempt), 0.3)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    await bus.close()
