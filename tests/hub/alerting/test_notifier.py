"""The teller on a real loop: channels that are slow, away or broken, and hubs that end in the middle."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.errors import AdapterError
from lifesigns.events import event_of
from lifesigns.hub.alerting.alerts import Ack
from lifesigns.hub.alerting.notifier import Notifier
from lifesigns.hub.alerting.rules import Matcher, Pacing, Rate, Rules, Silence
from lifesigns.ports import Channel, Commit, Event, NotDelivered, Notice
from tests.hub.alerting.ground import START, Fleet

WAIT_MAX = 20.0
FAST = Rate(per_minute=600, gap=0.0)
AT_ONCE = Pacing(hold_for=0.05, update_every=0.1, repeat_every=0, group_from=3)


class Ear:
    """A channel that takes what it is told, unless it is told to fail or to hang."""

    def __init__(self) -> None:
        self.told: list[Notice] = []
        self.fault: Exception | None = None
        self.hangs = False
        self.closed = False

    async def tell(self, notice: Notice) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault
        self.told.append(notice)

    async def close(self) -> None:
        self.closed = True

    @property
    def stages(self) -> list[str]:
        return [str(notice.stage) for notice in self.told]


class House:
    """A teller and a store that outlives it; pages are kept as the hub keeps them."""

    def __init__(self, *names: str, pacing: Pacing = AT_ONCE) -> None:
        self._name = str(uuid.uuid4())
        self.ears = {name: Ear() for name in names or ("ops",)}
        self.rules = Rules(dict.fromkeys(self.ears, FAST), pacing=pacing)
        self.fleet = Fleet()
        self._began_at = asyncio.get_running_loop().time()
        self.keeps = True
        self.channels: Callable[[], Mapping[str, Channel]] = lambda: self.ears

    def clock(self) -> float:
        return START + asyncio.get_running_loop().time() - self._began_at

    async def open(self) -> None:
        self.store = MemoryStore(self._name)
        remembered = await self.store.open()
        self._page, self._event = remembered.commit, remembered.event
        self._lock = asyncio.Lock()
        self.notifier = Notifier(
            self.rules,
            self.channels(),
            self.fleet,
            store=self.store,
            clock=self.clock,
            request_commit=lambda: None,
            wait_until_stored=self.keep,
        )
        self.notifier.recall(remembered.beliefs)
        self.notifier.start()

    async def keep(self, events: Sequence[Event] = ()) -> None:
        if not self.keeps:
            await asyncio.Event().wait()
        async with self._lock:
            self._page += 1
            await self.store.commit(Commit(self._page, self.notifier.changed(), events))

    async def happen(self, *facts: e.Fact, heard: bool = True) -> None:
        events = []
        for fact in facts:
            self._event += 1
            events.append(event_of(self._event, fact))
        await self.keep(events)
        if heard:
            self.notifier.hear(events)

    async def fall(self, *agents: str, heard: bool = True) -> None:
        at = self.clock()
        flips = [e.Flip(at, a, Health.HEALTHY, Health.DISCONNECTED, "gone") for a in agents]
        await self.happen(*flips, heard=heard)

    async def heal(self, *agents: str, heard: bool = True) -> None:
        at = self.clock()
        flips = [e.Flip(at, a, Health.DISCONNECTED, Health.HEALTHY, "back") for a in agents]
        await self.happen(*flips, heard=heard)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_MAX):
            while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
                await asyncio.sleep(0.002)

    def told_ever(self, channel: str) -> int:
        """How many alerts a channel was told of in all."""
        return sum(
            alert_group.told.ever
            for alert_group in self.notifier.alerting.queues[channel].alert_groups.values()
        )

    def open_bundles(self) -> int:
        return sum(len(queue.alert_groups) for queue in self.notifier.alerting.queues.values())

    async def restart(self) -> None:
        """As after a crash: nothing is kept that was not kept before."""
        await self.notifier.stop()
        await self.store.close()
        await self.open()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.notifier.stop()
        await self.store.close()


async def test_it_tells_what_happens_and_when_it_is_over() -> None:
    async with House() as house:
        await house.fall("a")
        await house.until(lambda: house.ears["ops"].stages == ["opened"])
        await house.heal("a")
        await house.until(lambda: house.ears["ops"].stages == ["opened", "resolved"])
    assert house.ears["ops"].closed


async def test_without_channels_nothing_is_remembered() -> None:
    async with House() as house:
        house.channels, house.rules = dict, Rules({})
        await house.restart()
        await house.fall("a")
        assert len(house.notifier.alerting.alerts) == 0
        assert house.notifier.changed() == []


async def test_a_channel_that_hangs_holds_up_nobody() -> None:
    async with House("slow", "quick") as house:
        house.ears["slow"].hangs = True
        await house.fall("a")
        await house.until(lambda: house.ears["quick"].stages == ["opened"])
        await house.heal("a")
        await house.until(lambda: house.ears["quick"].stages == ["opened", "resolved"])
        assert house.ears["slow"].told == []


async def test_a_channel_that_is_back_is_told_what_still_lasts() -> None:
    async with House() as house:
        ear = house.ears["ops"]
        ear.fault = AdapterError("away")
        await house.fall("a", "b")
        await house.until(lambda: house.notifier.alerting.queues["ops"].trouble)
        ear.fault = None
        await house.until(lambda: len(ear.told) >= 2)
        assert {n.key for n in ear.told} == {"stuck_agent:a", "stuck_agent:b"}


async def test_a_bug_in_a_channel_is_logged_without_its_words_and_does_not_end_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with House("odd", "other") as house:
        house.ears["odd"].fault = RuntimeError("token xoxb-secret")
        await house.fall("a")
        await house.until(lambda: house.ears["other"].stages == ["opened"])
        await house.until(lambda: [r for r in caplog.records if _action(r) == "channel_raised"])
        assert "RuntimeError" in caplog.text
        assert "xoxb-secret" not in caplog.text
        assert house.notifier.alerting.queues["odd"].trouble is not None


def _action(record: logging.LogRecord) -> str | None:
    return getattr(record, "action", None)


async def test_nobody_waits_long_for_a_store_that_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store is what failed, that is what people have to be told."""
    monkeypatch.setattr("lifesigns.hub.alerting.notifier.STORE_FOR", 0.05)
    async with House() as house:
        await house.until(lambda: house.notifier.caught_up)
        house.keeps = False
        house.notifier.hear([Event(0, house.clock(), "HUB_STORE_LOST", "", b'{"reason": "disk full"}')])
        await house.until(lambda: house.ears["ops"].told)
        assert house.ears["ops"].told[0].text == "disk full"
        house.keeps = True


# --- ends and beginnings -----------------------------------------------------------------------------------


async def test_what_happened_while_there_was_no_teller_is_read_from_the_store() -> None:
    async with House() as house:
        await house.fall("a")
        await house.until(lambda: house.ears["ops"].stages == ["opened"])
        await house.keep()
        await house.heal("a", heard=False)
        await house.fall("b", heard=False)
        await house.restart()
        await house.until(lambda: len(house.ears["ops"].told) == 3)
        assert {(str(n.stage), n.key) for n in house.ears["ops"].told[1:]} == {
            ("resolved", "stuck_agent:a"),
            ("opened", "stuck_agent:b"),
        }


async def test_what_came_and_went_while_there_was_no_teller_is_told_to_nobody() -> None:
    async with House() as house:
        await house.fall("first")
        await house.until(lambda: house.ears["ops"].told)
        await house.keep()
        for n in range(2500):
            await house.fall(f"a-{n % 50}", heard=False)
            await house.heal(f"a-{n % 50}", heard=False)
        await house.fall("last", heard=False)
        await house.restart()
        await house.until(lambda: len(house.ears["ops"].told) == 2)
        assert [n.key for n in house.ears["ops"].told] == ["stuck_agent:first", "stuck_agent:last"]


async def test_what_happens_while_it_reads_is_not_lost() -> None:
    async with House() as house:
        for n in range(1500):
            await house.fall(f"a-{n}", heard=False)
        await house.restart()
        await house.fall("now")
        await house.heal(*(f"a-{n}" for n in range(1500)))
        await house.until(lambda: any("now" in n.agents for n in house.ears["ops"].told))
        await house.heal("now")
        await house.until(lambda: not len(house.notifier.alerting.alerts))
        await house.until(lambda: not house.notifier.alerting.queues["ops"].alert_groups)


async def test_what_is_kept_after_the_last_read_began_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is slow answers with what it knew when it was asked."""
    events = MemoryStore.events
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(self: MemoryStore, **wanted: object) -> Sequence[Event]:
        found = await events(self, **wanted)  # type: ignore[arg-type]
        asked.set()
        await answer.wait()
        return found

    monkeypatch.setattr(MemoryStore, "events", slow)
    async with House() as house:
        async with asyncio.timeout(WAIT_MAX):
            await asked.wait()
        await house.fall("meanwhile")
        answer.set()
        await house.until(lambda: [n.key for n in house.ears["ops"].told] == ["stuck_agent:meanwhile"])


async def test_who_alerts_for_the_first_time_does_not_dig_up_old_stories() -> None:
    async with House() as house:
        long_ago = e.Flip(START - 7200, "old", Health.HEALTHY, Health.DISCONNECTED, "gone")
        lately = e.Flip(START - 600, "new", Health.HEALTHY, Health.DISCONNECTED, "gone")
        await house.happen(long_ago, lately, heard=False)
        await house.restart()
        await house.until(lambda: house.ears["ops"].told)
        assert [n.key for n in house.ears["ops"].told] == ["stuck_agent:new"]


async def test_hubs_that_end_again_and_again_in_the_middle_lose_nothing_and_end_everything() -> None:
    """At least once, under one key: opened may come twice, an end never lacks."""
    async with House() as house:
        ear = house.ears["ops"]
        for n in range(30):
            await house.fall(f"a-{n}")
            if n % 3:
                await house.until(lambda: ear.told)
            if n % 4 == 0:
                await house.keep()
            await house.restart()
        await house.heal(*(f"a-{n}" for n in range(30)))
        await house.until(lambda: not len(house.notifier.alerting.alerts))
        await house.until(lambda: not house.notifier.alerting.queues["ops"].alert_groups)
    told = {notice.key for notice in ear.told if notice.kind != "missed"}
    ended = {notice.key for notice in ear.told if notice.stage == "resolved" and notice.kind != "missed"}
    assert told == ended
    assert told


async def test_a_store_that_cannot_be_read_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifesigns.hub.alerting.notifier.RETRY_AFTER", 0.01)
    async with House() as house:
        await house.fall("a", heard=False)
        asked = 0
        events = MemoryStore.events

        async def failing(self: MemoryStore, **wanted: object) -> Sequence[Event]:
            nonlocal asked
            asked += 1
            if asked <= 3:
                raise AdapterError("locked")
            return await events(self, **wanted)  # type: ignore[arg-type]

        monkeypatch.setattr(MemoryStore, "events", failing)
        await house.restart()
        await house.until(lambda: house.ears["ops"].stages == ["opened"])
        assert asked > 3


async def test_a_person_silences_and_acknowledges() -> None:
    async with House() as house:
        await house.until(lambda: house.notifier.caught_up)
        house.notifier.silence(Silence("s", Matcher(agents=("a",)), house.clock() + 60, "ada", "deploying"))
        await house.fall("a")
        await house.fall("b")
        ear = house.ears["ops"]
        await house.until(lambda: [n.key for n in ear.told] == ["stuck_agent:b"])
        assert house.notifier.acknowledge("stuck_agent:b", Ack("ada", house.clock()))
        await house.until(lambda: ear.stages == ["opened", "acknowledged"])
        assert house.notifier.end_silence("s")
        await house.until(lambda: [n.key for n in ear.told][2:] == ["stuck_agent:a"])


async def test_a_channel_that_says_when_to_come_again_is_left_alone_until_then() -> None:
    async with House() as house:
        ear = house.ears["ops"]
        ear.fault = NotDelivered("slow down", retry_after=3600)
        await house.fall("a")
        await house.until(lambda: house.notifier.alerting.queues["ops"].trouble)
        assert house.notifier.alerting.queues["ops"].not_before >= house.clock() + 3500


async def test_what_an_older_hub_kept_about_itself_does_not_ring_after_its_end() -> None:
    """It died without its bus; the next one has it, and nobody else would ever say that this is over."""
    async with House() as house:
        house._event += 1
        await house.keep([Event(house._event, house.clock(), "HUB_BUS_LOST", "", b'{"reason": "refused"}')])
        await house.restart()
        await house.until(lambda: house.notifier.caught_up)
        await house.until(lambda: not len(house.notifier.alerting.alerts))
        assert house.ears["ops"].told == []
