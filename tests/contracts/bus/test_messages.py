"""The port's promises while all is well, over every bus."""

import asyncio
import logging

import pytest

from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import Bus, Subscription
from lifesigns.wire.subjects import of_senders, sender
from tests.contracts.bus.ground import Ear, Ground, eventually


async def test_a_bus_is_what_the_port_asks_for(ground: Ground) -> None:
    """For mypy, too: the assignments are the assertion."""
    bus: Bus = await ground.bus()
    subscription: Subscription = await bus.subscribe("heartbeat.*", Ear())
    assert subscription.dropped == 0


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("heartbeat.*", ["heartbeat.coder-7", "heartbeat.a:b@c/d-e_f"]),
        (
            "heartbeat.>",
            ["heartbeat.coder-7", "heartbeat.a:b@c/d-e_f", "heartbeat.team.coder-7", "heartbeat.a.b.c"],
        ),
        ("heartbeat.*.coder-7", ["heartbeat.team.coder-7"]),
        ("lifesigns.order.x", ["lifesigns.order.x"]),
        ("lifesigns.order.x.y", ["lifesigns.order.x.y"]),
        ("*.coder-7", ["heartbeat.coder-7"]),
    ],
)
async def test_a_pattern_hears_what_it_means_and_nothing_else(
    ground: Ground, pattern: str, meant: list[str]
) -> None:
    """`*` is one word, a final `>` one or more; an id with dots is several words."""
    speaker, hearer = await ground.bus(), await ground.bus()
    ear = Ear()
    await hearer.subscribe(pattern, ear)
    await hearer.subscribe("end", ear)
    for subject in (
        *(
            "heartbeat",
            "heartbeat.coder-7",
            "heartbeat.a:b@c/d-e_f",
            "heartbeat.team.coder-7",
            "heartbeat.a.b.c",
        ),
        *("heartbeats.coder-8", "lifesigns.order.x", "lifesigns.order.x.y", "lifesigns.order.xy"),
    ):
        await speaker.publish(subject, subject.encode())
    await speaker.publish("end", b"end")
    await ear.until_last(b"end")
    assert ear.subjects == [*meant, "end"]
    assert ear.payloads == [subject.encode() for subject in ear.subjects]


@pytest.mark.parametrize("word", ["a[bc]", "a?c", "a\\c", "a^c", "ä-ö", "{x}"])
async def test_a_character_that_is_special_elsewhere_stands_for_itself(ground: Ground, word: str) -> None:
    speaker, hearer = await ground.bus(), await ground.bus()
    ear = Ear()
    await hearer.subscribe(f"{word}.*", ear)
    await hearer.subscribe(f"plain.{word}", ear)
    for subject in ("abc.1", "ab.1", "ac.1", f"{word}.1", f"plain.{word}"):
        await speaker.publish(subject, b"")
    await ear.until(2)
    assert ear.subjects == [f"{word}.1", f"plain.{word}"]


async def test_everybody_who_wants_to_hear_it_hears_it(ground: Ground) -> None:
    """Several monitors on several connections, several subscriptions on one, and the publisher itself."""
    speaker = await ground.bus()
    hearers = [await ground.bus() for _ in range(3)]
    ears = [Ear() for _ in range(8)]
    for number, bus in enumerate((speaker, *hearers)):
        await bus.subscribe("heartbeat.*", ears[2 * number])
        await bus.subscribe("heartbeat.*", ears[2 * number + 1])
    for number in range(10):
        await speaker.publish("heartbeat.x", b"%d" % number)
    for ear in ears:
        await ear.until(10)
        assert ear.payloads == [b"%d" % number for number in range(10)]


async def test_overlapping_patterns_are_heard_each_for_itself(ground: Ground) -> None:
    speaker, hearer = await ground.bus(), await ground.bus()
    one, many, exact = Ear(), Ear(), Ear()
    await hearer.subscribe("heartbeat.*", one)
    await hearer.subscribe("heartbeat.>", many)
    await hearer.subscribe("heartbeat.x", exact)
    await speaker.publish("heartbeat.x.y", b"1")
    await speaker.publish("heartbeat.x", b"2")
    for ear, heard in ((one, [b"2"]), (many, [b"1", b"2"]), (exact, [b"2"])):
        await ear.until(len(heard))
        assert ear.payloads == heard


async def test_each_publishers_messages_come_in_its_order(ground: Ground) -> None:
    hearer, ear = await ground.bus(), Ear()
    await hearer.subscribe("heartbeat.*", ear)
    count = 2_000

    async def speak(name: str) -> None:
        bus = await ground.bus()
        for number in range(count):
            await bus.publish(f"heartbeat.{name}", b"%d" % number)

    await asyncio.gather(*(speak(name) for name in "abc"))
    await ear.until(3 * count)
    for name in "abc":
        assert [int(payload) for subject, payload in ear.heard if subject == f"heartbeat.{name}"] == [
            *range(count)
        ]


async def test_who_ended_hears_nothing_more_and_others_on_the_same_pattern_go_on(ground: Ground) -> None:
    speaker, hearer = await ground.bus(), await ground.bus()
    leaving, staying = Ear(), Ear()
    subscription = await hearer.subscribe("heartbeat.*", leaving)
    await hearer.subscribe("heartbeat.*", staying)
    await speaker.publish("heartbeat.x", b"1")
    await leaving.until(1)
    await subscription.end()
    await subscription.end()
    await speaker.publish("heartbeat.x", b"2")
    await staying.until(2)
    assert leaving.payloads == [b"1"]


async def test_a_pattern_may_be_left_and_taken_up_again(ground: Ground) -> None:
    speaker, hearer, ear = await ground.bus(), await ground.bus(), Ear()
    for _ in range(3):
        subscription = await hearer.subscribe("heartbeat.*", ear)
        overlapping = await hearer.subscribe("heartbeat.>", ear)
        await speaker.publish("heartbeat.x", b"heard")
        await ear.until(2)
        await subscription.end()
        await speaker.publish("heartbeat.x", b"half heard")
        await ear.until(3)
        await overlapping.end()
        await speaker.publish("heartbeat.x", b"not heard")
        await speaker.flush()
        assert ear.payloads == [b"heard", b"heard", b"half heard"]
        ear.heard.clear()


async def test_an_end_from_within_hearing_ends_at_once(ground: Ground) -> None:
    bus = await ground.bus()
    heard: list[bytes] = []
    ends: list[asyncio.Task[None]] = []

    def once(_: str, payload: bytes) -> None:
        heard.append(payload)
        ends.append(asyncio.ensure_future(subscription.end()))

    subscription = await bus.subscribe("a", once)
    await bus.publish("a", b"1")
    await eventually(lambda: bool(ends))
    await asyncio.gather(*ends)
    await bus.publish("a", b"2")
    await bus.flush()
    ear = Ear()
    await bus.subscribe("b", ear)
    await bus.publish("b", b"")
    await ear.until(1)
    assert heard == [b"1"]


async def test_a_subscriber_that_raises_disturbs_nobody_and_is_logged_without_flooding(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    bus, ear = await ground.bus(), Ear()
    heard: list[bytes] = []

    def fail(_: str, payload: bytes) -> None:
        heard.append(payload)
        raise RuntimeError("a subscriber's own fault")

    await bus.subscribe("heartbeat.*", fail)
    await bus.subscribe("heartbeat.*", ear)
    with caplog.at_level(logging.ERROR, "lifesigns.bus"):
        for number in range(100):
            await bus.publish("heartbeat.x", b"%d" % number)
        await ear.until(100)
        await eventually(lambda: len(heard) == 100)
    assert "a subscriber's own fault" in caplog.text
    assert len(caplog.records) == 7, "the 1st, 2nd, 4th ... 64th"


@pytest.mark.parametrize("payload", [b"", b"\x00\r\n\xff\n", bytes(range(256)) * 1000])
async def test_a_payload_is_any_bytes(ground: Ground, payload: bytes) -> None:
    bus, ear = await ground.bus(), Ear()
    await bus.subscribe("heartbeat.*", ear)
    await bus.publish("heartbeat.x", payload)
    await ear.until(1)
    assert ear.heard == [("heartbeat.x", payload)]


async def test_a_message_at_the_limit_is_carried_and_one_byte_more_refused(ground: Ground) -> None:
    """Refused for good, with size and limit, and the bus goes on as if nothing had been."""
    speaker, hearer = await ground.bus(), await ground.bus()
    ear, limit = Ear(), speaker.payload_max
    assert limit >= 1024 * 1024
    await hearer.subscribe("heartbeat.*", ear)
    with pytest.raises(
        AdapterError, match=rf"{limit + 1} bytes to 'heartbeat\.x'.*limit is {limit}"
    ) as caught:
        await speaker.publish("heartbeat.x", bytes(limit + 1))
    assert not caught.value.transient
    await speaker.publish("heartbeat.x", bytes(limit))
    await speaker.publish("heartbeat.x", b"after")
    await speaker.flush()
    await ear.until(2)
    assert [len(payload) for payload in ear.payloads] == [limit, 5]


@pytest.mark.parametrize(
    "subject",
    ["", " ", "heartbeat.a b", "heartbeat.*", "heartbeat.>", "a\r\nPUB b 0", "a..b", ".a", "a.", "a\x00b"],
)
async def test_what_is_no_subject_is_refused(ground: Ground, subject: str) -> None:
    bus = await ground.bus()
    with pytest.raises(UsageError):
        await bus.publish(subject, b"")
    await bus.publish("heartbeat.x", b"")
    await bus.flush()


@pytest.mark.parametrize(
    "pattern",
    ["", "heartbeat. *", "heart*.x", "heartbeat.>.x", ">>", "a>", "a..b", "a.", "x" * 1025, "\ud800"],
)
async def test_what_is_no_pattern_is_refused(ground: Ground, pattern: str) -> None:
    bus = await ground.bus()
    with pytest.raises(UsageError):
        await bus.subscribe(pattern, Ear())


async def test_the_longest_subject_is_carried(ground: Ground) -> None:
    bus, ear = await ground.bus(), Ear()
    subject = "x" * 1024
    await bus.subscribe(subject, ear)
    await bus.publish(subject, b"")
    await ear.until(1)
    assert ear.subjects == [subject]


async def test_before_it_is_connected_a_bus_says_so(ground: Ground) -> None:
    bus = ground.make()
    assert not bus.connected
    for attempt in (bus.publish("a", b""), bus.flush(), bus.subscribe("a", Ear())):
        with pytest.raises(AdapterError, match=r"connect\(\) first") as caught:
            await attempt
        assert caught.value.transient


async def test_to_connect_twice_is_to_connect_once(ground: Ground) -> None:
    bus, ear = await ground.bus(), Ear()
    await asyncio.gather(bus.connect(), bus.connect())
    await bus.subscribe("a", ear)
    await bus.publish("a", b"1")
    await ear.until(1)
    assert ear.payloads == [b"1"]


async def test_what_was_published_before_a_close_is_sent(ground: Ground) -> None:
    speaker, hearer, ear = await ground.bus(), await ground.bus(), Ear()
    await hearer.subscribe("a", ear)
    for _ in range(1000):
        await speaker.publish("a", bytes(500))
    await speaker.close()
    await ear.until(1000)


async def test_a_closed_bus_is_closed_for_good(ground: Ground) -> None:
    bus, other, ear, last = await ground.bus(), await ground.bus(), Ear(), Ear()
    subscription = await bus.subscribe("a", ear)
    await other.subscribe("a", last)
    await bus.close()
    await bus.close()
    await subscription.end()
    assert not bus.connected
    for attempt in (bus.publish("a", b""), bus.flush(), bus.subscribe("a", Ear()), bus.connect()):
        with pytest.raises(AdapterError, match="closed") as caught:
            await attempt
        assert not caught.value.transient
    await other.publish("a", b"1")
    await last.until(1)
    assert ear.heard == []


async def test_a_bus_may_be_closed_while_others_publish_on_it(ground: Ground) -> None:
    """Every publisher returns or is told; none hangs."""
    bus = await ground.bus()
    started = 0

    async def speak() -> AdapterError:
        nonlocal started
        started += 1
        while True:
            try:
                await bus.publish("a", bytes(2000))
            except AdapterError as error:
                return error
            await asyncio.sleep(0)

    speakers = [asyncio.ensure_future(speak()) for _ in range(10)]
    await eventually(lambda: started == 10)
    await bus.close()
    async with asyncio.timeout(10):
        told = await asyncio.gather(*speakers)
    assert not any(error.transient for error in told)


async def test_a_publisher_that_never_pauses_lets_others_have_their_turn(ground: Ground) -> None:
    """Nothing is lost between a busy publisher and a subscriber on the same loop."""
    bus, ear = await ground.bus(waiting_max=20_000), Ear()
    subscription = await bus.subscribe("a", ear)
    for _ in range(30_000):
        await bus.publish("a", bytes(100))
    await ear.until(30_000)
    assert subscription.dropped == 0


class FromEvil:
    """A `MessageFilter`."""

    subjects = of_senders(["evil"])
    dropped = 0

    def drops(self, subject: str, count: int = 1) -> bool:
        is_evil = sender(subject) == "evil"
        self.dropped += count if is_evil else 0
        return is_evil


async def test_unwanted_messages_are_dropped_as_they_come_in_and_no_others(ground: Ground) -> None:
    speaker, hearer = await ground.bus(), await ground.bus()
    ear = Ear()
    await hearer.subscribe("heartbeat.>", ear)
    unwanted = FromEvil()
    hearer.drop(unwanted)
    for name in ("evil", "good", "evil.1", "end"):
        await speaker.publish(f"heartbeat.{name}", name.encode())
    await ear.until_last(b"end")
    hearer.drop(None)
    await speaker.publish("heartbeat.evil", b"back")
    await ear.until_last(b"back")
    assert ear.payloads == [b"good", b"end", b"back"]
    assert unwanted.dropped == 2
