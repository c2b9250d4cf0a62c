"""What a hub that stands by says of an agent: heard, not heard, or that it cannot tell."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import msgspec
import pytest

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.core.effects import SendPing
from lifesigns.core.signals import Opinion, PongReceived, TaskAssigned
from lifesigns.hub import opinion_giver
from lifesigns.hub.bus_receiver import Relays
from lifesigns.hub.counters import HubCounters
from lifesigns.hub.opinion_giver import OpinionGiver
from lifesigns.hub.principals import Patterns, Principal, Role
from lifesigns.hub.signatures import NO_KEYS, Signatures
from lifesigns.wire import decode_order, encode_signal
from lifesigns.wire.opinions import Inquiry, Question

NOW = 1000.0
LISTEN_FOR = 0.3


def question(agent_id: str = "a", silent_for: float = 11.0) -> Question:
    return Question(agent_id, None, "7-1", 7, silent_for)


def inquiry(*questions: Question, listen_for: float = LISTEN_FOR) -> Inquiry:
    return Inquiry(questions or (question(),), listen_for)


class Ground:
    """A giver, and a bus on which agents speak."""

    def __init__(self, bus: bool = True, relays: Relays = Relays.OPEN, must_sign: str = "") -> None:
        self.address = f"memory://{uuid.uuid4()}"
        self.agents = MemoryBus(self.address)
        self.now = NOW
        signatures = Signatures(
            NO_KEYS, HubCounters().forged, must_sign=Patterns.of(must_sign) if must_sign else None
        )
        own_bus = MemoryBus(self.address) if bus else None
        self.giver = OpinionGiver("west", "me", own_bus, signatures, relays, lambda: self.now)
        self.pinged: list[SendPing] = []

    async def start(self) -> None:
        await self.agents.connect()
        await self.giver.run()

    async def answer(self, *questions: Question, listen_for: float = LISTEN_FOR) -> dict[str, Opinion]:
        return (await self.giver.answer(inquiry(*questions, listen_for=listen_for))).opinions

    async def answer_while(self, subject: str, payload: bytes) -> Opinion:
        """What it says of `a` if this is sent while it listens."""
        asking = asyncio.create_task(self.answer())
        await asyncio.sleep(LISTEN_FOR / 3)
        await self.agents.publish(subject, payload)
        return (await asking)["a"]

    async def answers_pings(self, subject: str) -> None:
        def obey(_subject: str, payload: bytes) -> None:
            order = decode_order(payload)
            assert isinstance(order, SendPing)
            self.pinged.append(order)
            pong = encode_signal(PongReceived(agent_id="a", seq=order.seq))
            tasks.append(asyncio.ensure_future(self.agents.publish(subject, pong)))

        tasks: list[asyncio.Future[None]] = []
        await self.agents.subscribe("lifesigns.order.a", obey)


@pytest.fixture
async def ground() -> AsyncIterator[Ground]:
    made = Ground()
    await made.start()
    yield made
    await made.giver.close()
    await made.agents.close()


BEAT = b'{"agent_id": "a"}'


async def test_nothing_on_a_bus_that_works_is_not_heard(ground: Ground) -> None:
    assert await ground.answer() == {"a": Opinion.NOT_HEARD}


@pytest.mark.parametrize(
    ("subject", "payload"),
    [
        ("heartbeat.a", BEAT),
        ("lifesigns.signal.a", encode_signal(PongReceived(agent_id="a"))),
        ("lifesigns.report.relay:x.3.a", encode_signal(PongReceived(agent_id="a"))),
        ("lifesigns.signal.relay:x.3", encode_signal(PongReceived(agent_id="a"))),
    ],
)
async def test_whatever_it_says_itself_is_heard(ground: Ground, subject: str, payload: bytes) -> None:
    assert await ground.answer_while(subject, payload) is Opinion.HEARD


@pytest.mark.parametrize(
    ("subject", "payload"),
    [
        ("heartbeat.b", b'{"agent_id": "b"}'),
        ("heartbeat.b", BEAT),
        ("heartbeat.a", b'{"agent_id": "b"}'),
        ("heartbeat.a", b"nonsense"),
        ("lifesigns.signal.a", encode_signal(TaskAssigned(agent_id="a", task_id="t"))),
        ("lifesigns.signal.relay:x.3", b"[]"),
    ],
)
async def test_what_others_say_is_not(ground: Ground, subject: str, payload: bytes) -> None:
    assert await ground.answer_while(subject, payload) is Opinion.NOT_HEARD


async def test_an_agent_that_has_to_sign_is_not_heard_unsigned() -> None:
    ground = Ground(must_sign="a")
    await ground.start()
    assert await ground.answer_while("heartbeat.a", BEAT) is Opinion.NOT_HEARD


async def test_a_relay_that_is_refused_is_not_heard() -> None:
    ground = Ground(relays=Relays.REFUSED)
    await ground.start()
    pong = encode_signal(PongReceived(agent_id="a"))
    assert await ground.answer_while("lifesigns.signal.relay:x.3", pong) is Opinion.NOT_HEARD


async def test_it_pings_by_its_own_way_and_answers_at_once(ground: Ground) -> None:
    """With the epoch of the hub that judges, or the agent would refuse it."""
    await ground.answers_pings("lifesigns.report.relay:x.1.a")
    began = asyncio.get_running_loop().time()
    assert await ground.answer(listen_for=20.0) == {"a": Opinion.HEARD}
    assert asyncio.get_running_loop().time() - began < 10
    (ping,) = ground.pinged
    assert (ping.epoch, ping.order_id) == (7, "7-1-west-0")


async def test_many_at_once_are_heard_on_all_subjects(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opinion_giver, "APART_MAX", 2)
    asking = asyncio.create_task(ground.answer(*(question(name) for name in "abcd")))
    await asyncio.sleep(LISTEN_FOR / 3)
    await ground.agents.publish("heartbeat.relay:x", b'[{"agent_id": "a"}, {"agent_id": "c"}]')
    assert await asking == {
        "a": Opinion.HEARD,
        "b": Opinion.NOT_HEARD,
        "c": Opinion.HEARD,
        "d": Opinion.NOT_HEARD,
    }


async def test_it_hears_nobody_when_it_is_not_asked(ground: Ground) -> None:
    assert await ground.answer_while("heartbeat.a", BEAT) is Opinion.HEARD
    await ground.agents.publish("heartbeat.a", BEAT)
    assert await ground.answer() == {"a": Opinion.NOT_HEARD}, (
        "what was heard for another question is forgotten"
    )


async def test_two_inquiries_about_one_agent_are_both_answered(ground: Ground) -> None:
    asking = [asyncio.create_task(ground.answer()) for _ in range(2)]
    await asyncio.sleep(LISTEN_FOR / 3)
    await ground.agents.publish("heartbeat.a", BEAT)
    assert [await one for one in asking] == [{"a": Opinion.HEARD}] * 2


async def test_without_a_bus_or_before_it_is_reached_it_cannot_tell() -> None:
    assert await Ground(bus=False).answer() == {"a": Opinion.CANNOT_TELL}
    assert await Ground().answer() == {"a": Opinion.CANNOT_TELL}


async def test_a_bus_that_carries_nothing_tells_nothing(ground: Ground) -> None:
    """Its own canary does not come back."""
    assert ground.giver._canary is not None
    await ground.giver._canary.end()
    assert await ground.answer() == {"a": Opinion.CANNOT_TELL}


async def test_of_more_than_it_can_listen_to_it_cannot_tell(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opinion_giver, "ASKED_MAX", 1)
    assert set((await ground.answer(question("a"), question("b"))).values()) == {Opinion.CANNOT_TELL}


# --- posts ---------------------------------------------------------------------------------------------

AGENT = Principal("t-1", "agents", Role.AGENT, Patterns.of("a,a*"))


async def test_what_an_agent_posts_here_counts_from_when_its_silence_began(ground: Ground) -> None:
    ground.giver.note_post(BEAT, AGENT, beats=True)
    ground.now = NOW + 10
    assert await ground.answer(question(silent_for=10.0)) == {"a": Opinion.HEARD}
    assert await ground.answer(question(silent_for=9.9)) == {"a": Opinion.NOT_HEARD}


async def test_nobody_posts_for_others(ground: Ground) -> None:
    ground.giver.note_post(b'{"agent_id": "b"}', AGENT, beats=True)
    ground.giver.note_post(b"nonsense", AGENT, beats=True)
    assigned = msgspec.json.decode(encode_signal(TaskAssigned(agent_id="a", task_id="t")))
    ground.giver.note_post(msgspec.json.encode([assigned]), AGENT, beats=False)
    assert set((await ground.answer(question("a"), question("b"))).values()) == {Opinion.NOT_HEARD}
    ground.giver.note_post(encode_signal(PongReceived(agent_id="a")), AGENT, beats=False)
    assert await ground.answer() == {"a": Opinion.HEARD}


async def test_what_is_posted_is_remembered_of_so_many(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opinion_giver, "POSTED_MAX", 2)
    for name in ("a1", "a2", "a1", "a3"):
        ground.giver.note_post(msgspec.json.encode({"agent_id": name}), AGENT, beats=True)
    said = await ground.answer(*(question(name) for name in ("a1", "a2", "a3")))
    assert said == {"a1": Opinion.HEARD, "a2": Opinion.NOT_HEARD, "a3": Opinion.HEARD}
