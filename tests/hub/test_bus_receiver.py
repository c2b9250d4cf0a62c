"""What comes over the bus is heard; what cannot be read is counted and said now and then; a bus that is away is found."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lifesigns import wire
from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.core.signals import AgentLeft, Beat, CanaryReturned, CheckpointSaved, Signal
from lifesigns.errors import AdapterError
from lifesigns.hub import bus_receiver
from lifesigns.hub.bus_receiver import COMPLAIN_EVERY, BusReceiver
from lifesigns.hub.counters import HubCounters
from lifesigns.hub.http_receiver import NotStored
from lifesigns.hub.shares import Shares
from lifesigns.ports import Hear, Subscription


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.001)


class ShyBus(MemoryBus):
    """Refuses for a while: to be reached, or to be listened to."""

    def __init__(self) -> None:
        super().__init__(f"memory://{uuid.uuid4()}")
        self.refusals: list[AdapterError] = []
        self.deaf: list[str] = []
        """Patterns that are refused, once."""

    async def connect(self) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        await super().connect()

    async def subscribe(self, pattern: str, hear: Hear) -> Subscription:  # type: ignore[override]
        if pattern in self.deaf:
            self.deaf.remove(pattern)
            raise AdapterError("you may not listen")
        return await super().subscribe(pattern, hear)


@dataclass
class Doorstep:
    """A door, and everything that came through it."""

    bus: ShyBus = field(default_factory=ShyBus)
    heard: list[Signal] = field(default_factory=list)
    counters: HubCounters = field(default_factory=HubCounters)
    now: float = 1000.0
    room: bool = True
    gathering: int = 0

    def __post_init__(self) -> None:
        self.shares = Shares(lambda: self.now)
        self.refused: set[str] = set()
        self.door = BusReceiver(self.bus, "us", self, lambda: self.now)

    def put_off(self, source: str, first_part: str = "") -> None:
        self.refused.add(first_part)

    def hear(self, signals: Sequence[Signal], at: float, source: str = "") -> bool:
        assert self.now - 1.0 < at <= self.now, "gathered beats are as old as the round of the loop before"
        self.heard += signals
        return self.room

    def hear_beats(self, beats: Sequence[Beat], raw: bytes, source: str, at: float) -> bool:
        assert [beat.agent_id for beat in wire.decode_beats(raw).accepted] == [
            beat.agent_id for beat in beats
        ]
        return self.hear(beats, at)

    def refusal(self, signal: Signal) -> None:
        """Everything may be said here."""

    def begin_gathering(self) -> None:
        self.gathering += 1

    def end_gathering(self) -> None:
        self.gathering -= 1

    async def say(self, subject: str, payload: object) -> None:
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        await self.bus.publish(subject, raw)


@asynccontextmanager
async def opened(step: Doorstep | None = None) -> AsyncIterator[Doorstep]:
    step = step or Doorstep()
    await asyncio.wait_for(step.door.open(), 10)
    yield step
    await step.door.close()


async def test_beats_and_words_are_heard_singly_and_in_batches() -> None:
    async with opened() as step:
        await step.say("heartbeat.a", {"agent_id": "a"})
        await step.say("heartbeat.relay:1", [{"agent_id": "b"}, {"agent_id": "c"}])
        await step.say("lifesigns.signal.a", {"type": "checkpoint", "agent_id": "a", "checkpoint_id": "cp-1"})
        await until(lambda: len(step.heard) == 4)
        assert [getattr(signal, "agent_id", "") for signal in step.heard] == ["a", "b", "c", "a"]
        assert isinstance(step.heard[-1], CheckpointSaved)
        assert step.door.state == "ok"


async def test_garbage_is_counted_and_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The good ones of a batch count; a peer that sends nonsense stops nobody."""
    caplog.set_level(logging.WARNING, "lifesigns.hub")
    async with opened() as step:
        for payload in (b"", b"garbage", b'{"agent_id": 7}', b"\xff\xfe", b"[{]", b"{" * 1000):
            await step.say("heartbeat.a", payload)
            await step.say("lifesigns.signal.a", payload)
        await step.say("heartbeat.a", [{"agent_id": "a"}, {"agent_id": "no spaces please"}])
        await step.say(f"{bus_receiver.CANARY}.us", b"tweet")
        await until(lambda: step.heard and step.counters.unreadable >= 14)
        assert step.counters.unreadable == 14
        step.now += COMPLAIN_EVERY
        await step.say("heartbeat.a", b"garbage")
        await until(lambda: step.counters.unreadable == 15)
    said = [record for record in caplog.records if getattr(record, "action", "") == "message_unreadable"]
    assert len(said) == 2
    assert "heartbeat.a" in said[0].getMessage()


async def test_words_come_after_the_beats_that_came_before_them() -> None:
    """Beats are gathered, words are not: who beats and then leaves has left."""
    async with opened() as step:
        await step.say("heartbeat.a", {"agent_id": "a"})
        await step.say("lifesigns.signal.a", {"type": "left", "agent_id": "a"})
        await until(lambda: len(step.heard) == 2)
        assert [isinstance(signal, AgentLeft) for signal in step.heard] == [False, True]


HONEST = st.integers(0, 99).map(lambda n: b'{"agent_id":"honest-%d"}' % n)
HOSTILE = st.sampled_from(
    [
        b'{"agent_id":"evil","foo":[1',
        b'{"agent_id":"evil","foo":[1,',
        b'{"agent_id":"evil","foo":[{}',
        b'{"agent_id":"evil","foo":{"x":{}',
        b"{}}",
        b'{"agent_id":"evil","foo":',
        b'{"agent_id":"evil","role":"',
        b'{"agent_id":"evil","role":"\\',
        b"{}]}",
        b'{}]},{"agent_id":"evil"}',
        b'{"agent_id":"evil"}{"agent_id":"evil"}',
        b'{"agent_id":"evil"}\n{"agent_id":"evil"}',
        b'{\n"agent_id":"evil"\n}',
        b"{" + b'"x":{' * 300,
        b"{}" * 1000,
        b'{"agent_id":"evil","role":"\xff"}',
        '{"agent_id":"evil","progress":"Grüße"}'.encode(),
    ]
)


@example([b'{"agent_id":"evil","foo":[1,', b"{}]}", b'{"agent_id":"evil"}{"agent_id":"evil"}'])
@given(st.lists(st.one_of(HONEST, HOSTILE), max_size=100))
def test_nobody_on_the_bus_can_hide_anothers_beat(messages: list[bytes]) -> None:
    """Gathered and read together, or one by one: the same is heard, in the same order, and as much is refused."""

    async def brought() -> Doorstep:
        step = Doorstep()
        step.shares.share = 1e6  # Its time is of no interest here, only its order.
        for message in messages:
            step.door.hear_beats("heartbeat.relay:a", message)
        await asyncio.sleep(0)
        await until(lambda: not step.door._turns.waiting)
        return step

    step = asyncio.run(brought())
    assert step.gathering == 0
    alone = [wire.decode_beats(message) for message in messages]
    assert [beat.agent_id for beat in step.heard if isinstance(beat, wire.WireBeat)] == [
        beat.agent_id for batch in alone for beat in batch.accepted
    ]
    assert step.counters.unreadable == sum(len(batch.rejected) for batch in alone)


async def test_our_canary_comes_back_and_nobody_elses() -> None:
    async with opened() as step:
        await step.say(f"{bus_receiver.CANARY}.another-hub", b"7")
        step.door.send_canary(3)
        await until(lambda: step.heard)
        assert step.heard == [CanaryReturned(seq=3)]


async def test_a_bus_that_is_away_is_looked_for_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lifesigns.hub")
    monkeypatch.setattr(bus_receiver, "RETRY_AFTER", 0.01)
    step = Doorstep()
    assert step.door.state == "not reached yet"
    step.bus.refusals = [AdapterError("nobody answers")] * 3
    async with opened(step):
        assert step.door.state == "ok"
    assert [getattr(record, "action", "") for record in caplog.records] == ["bus_unreachable", "bus_reached"]


async def test_a_bus_that_refuses_for_good_is_said_and_tried_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody may mend the password on its side."""
    monkeypatch.setattr(bus_receiver, "SLOW_RETRY_AFTER", 0.05)
    step = Doorstep()
    step.bus.refusals = [AdapterError("wrong password", transient=False)]
    opening = asyncio.create_task(step.door.open())
    await until(lambda: step.door.state == "wrong password")
    await asyncio.wait_for(opening, 10)
    assert step.door.state == "ok"
    await step.door.close()


async def test_a_bus_that_does_not_let_us_listen_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A door that is half open is none; and nothing is heard twice in the end."""
    monkeypatch.setattr(bus_receiver, "RETRY_AFTER", 0.01)
    step = Doorstep()
    step.bus.deaf = [bus_receiver.SIGNALS]
    async with opened(step):
        await step.say("heartbeat.a", {"agent_id": "a"})
        step.door.send_canary(1)
        await until(lambda: len(step.heard) >= 2)
        assert len(step.heard) == 2


async def test_a_canary_that_cannot_leave_is_a_canary_that_does_not_return() -> None:
    step = Doorstep()
    step.door.send_canary(1)
    assert step.heard == []


class Keeper:
    """A store that keeps, or does not."""

    def __init__(self) -> None:
        self.can_store = True
        self.asked = 0

    async def store_reports(self, words: Sequence[Signal]) -> None:
        self.asked += 1
        if not self.can_store:
            raise NotStored


async def test_reports_are_answered_when_they_are_kept_and_heard_once() -> None:
    """While nothing is kept nothing is heard; what is said again by the same number is answered and not heard again."""
    step = Doorstep()
    keeper = Keeper()
    step.door = BusReceiver(step.bus, "us", step, lambda: step.now, keeper)
    async with opened(step):
        told: list[bytes] = []
        await step.bus.subscribe("lifesigns.kept.relay:h:1:ab", lambda _, payload: told.append(payload))
        report = {"type": "checkpoint", "agent_id": "a", "checkpoint_id": "cp-1"}
        keeper.can_store = False
        await step.say("lifesigns.signal.relay:h:1:ab.7", report)
        await step.say("lifesigns.signal.a", {**report, "checkpoint_id": "cp-2"})
        await until(lambda: step.heard)
        assert [one.checkpoint_id for one in step.heard if isinstance(one, CheckpointSaved)] == ["cp-2"]
        assert not told
        keeper.can_store = True
        for times in (1, 2):
            await step.say("lifesigns.signal.relay:h:1:ab.7", report)
            await until(lambda: len(told) == times)  # noqa: B023 -- it is called here
        assert told == [b"7", b"7"]
        assert len(step.heard) == 2


async def test_what_comes_at_once_is_acknowledged_together_each_message_once() -> None:
    """A flood of reports, the same one again and again, took more time to acknowledge than to read."""
    step, keeper = Doorstep(), Keeper()
    step.door = BusReceiver(step.bus, "us", step, lambda: step.now, keeper)
    async with opened(step):
        told: list[bytes] = []
        await step.bus.subscribe("lifesigns.kept.relay:h:1:ab", lambda _, payload: told.append(payload))
        report = json.dumps({"type": "checkpoint", "agent_id": "a", "checkpoint_id": "cp-1"}).encode()
        before = keeper.asked
        for number in [7] * 50 + [8] * 50:
            step.door._reports(f"lifesigns.signal.relay:h:1:ab.{number}", report)
        await until(lambda: len(told) == 2)
        assert told == [b"7", b"8"]
        assert keeper.asked == before + 1
