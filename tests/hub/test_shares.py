"""Shares: who worked the hub for too long waits, and nobody else does."""

from __future__ import annotations

import asyncio
import json
import time
from math import inf

import pytest

from lifesigns.config.values import Limits
from lifesigns.core.signals import BeatReceived
from lifesigns.hub.principals import Role
from lifesigns.hub.shares import (
    BURST_FOR,
    BUS_SOURCE,
    FULL_FROM,
    RECKON_EVERY,
    TURN_FOR,
    PartShares,
    Shares,
    level_of,
)
from tests.web.hub import running_hub


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_who_used_more_than_a_burst_owes_the_rest_and_nobody_else_does() -> None:
    clock = Clock()
    shares = Shares(clock, share=0.25)
    shares.charge("evil", 0.249 * BURST_FOR)
    assert shares.owes("evil") == 0.0
    shares.charge("evil", 0.25 + 0.001 * BURST_FOR)
    assert shares.owes("evil") == pytest.approx(1.0)
    assert shares.owes("good") == 0.0
    clock.now += 1.001
    assert shares.owes("evil") == 0.0


def test_nobody_is_told_to_wait_for_less_than_a_turn() -> None:
    """A loop that counts in milliseconds wakes at once whoever waits for less, again and again: one token with single posts kept
    a hub busy all the time, so that it found no death."""
    clock = Clock()
    shares = Shares(clock, share=0.25)
    shares.charge("evil", 0.25 * (BURST_FOR + 0.0001))
    assert shares.owes("evil") == TURN_FOR
    clock.now += 0.0002
    assert shares.owes("evil") == 0.0


async def test_hubs_of_one_process_count_together_what_somebody_uses() -> None:
    """They have one thread: whoever is over its share at one of them has to wait at all."""
    clock = Clock()
    whole = Shares(clock, share=0.25)
    one, two = PartShares(whole), PartShares(whole)
    for part in (one, two):
        part.charge("evil", 0.125 + 0.125 * BURST_FOR)
    assert one.owes("evil") == two.owes("evil") == pytest.approx(1.0)
    assert one.owes("good") == 0.0
    assert await two.begins("good")
    one.share = 0.5
    assert (whole.share, two.share) == (0.5, 0.5)


def test_a_bus_is_flooded_for_all_as_long_as_it_is_for_one_of_them() -> None:
    whole = Shares(Clock())
    one, two = PartShares(whole), PartShares(whole)
    one.flooded = two.flooded = True
    one.flooded = False
    assert (one.flooded, two.flooded, whole.flooded) == (False, True, True)
    two.flooded = False
    assert not whole.flooded
    one.charge_apart(BUS_SOURCE, 0.1)
    assert (one.spent_on_bus, two.spent_on_bus) == (0.1, 0.0), "each divides what it spent itself"


def test_what_was_not_used_is_not_saved_up() -> None:
    clock = Clock()
    shares = Shares(clock, share=0.5)
    shares.charge("a", 0.1)
    clock.now += 3600.0
    shares.charge("a", 0.5 * (BURST_FOR + 2.0))
    assert shares.owes("a") == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("uses", "together", "level"),
    [
        ([], 0.5, inf),
        ([0.1, 0.2], 0.5, inf),
        ([0.4, 0.4], 0.5, 0.25),
        ([0.1, 0.4, 0.4], 0.5, 0.2),
        ([0.4, 0.01, 0.3, 0.01], 0.5, 0.24),
        ([0.25] * 100, 0.5, 0.005),
    ],
)
def test_who_uses_little_gets_it_and_the_others_the_same(
    uses: list[float], together: float, level: float
) -> None:
    assert level_of(uses, together) == pytest.approx(level)


class Thread:
    """A thread that works for whoever may, and as long again for nobody: `evil` ones ask all the time, up to `each` of it, `good` for
    its part of each moment."""

    def __init__(self, evil: int, good: float, each: float = 1.0, besides: float = 0.0) -> None:
        self.clock, self.worked = Clock(), 0.0
        self.shares = Shares(self.clock, share=0.25, worked=lambda: self.worked)
        self.names = [f"evil-{n}" for n in range(evil)]
        self.good, self.each, self.besides = good, each, besides

    def run(self, seconds: float) -> tuple[float, float]:
        """Which part of the time it worked, and worked for `good`."""
        worked, began, for_good = self.worked, self.clock.now, 0.0
        step = passed = 0.01
        while self.clock.now < began + seconds:
            spent = self.besides * passed
            wants = dict.fromkeys(self.names, 2 * self.each * step) | {"good": self.good * passed}
            for name, want in wants.items():
                if want and self.shares.owes(name) <= 0:
                    self.shares.charge(name, want / (1 if name == "good" else 2))
                    spent += want
                    for_good += want if name == "good" else 0.0
            self.worked += spent
            passed = max(step, spent)
            self.clock.now += passed
        passed = self.clock.now - began
        return (self.worked - worked) / passed, for_good / passed


@pytest.mark.parametrize("each", [1.0, 0.2])
@pytest.mark.parametrize("evil", [2, 5, 20])
def test_however_many_ask_for_too_much_the_thread_is_not_full_and_who_asks_for_little_gets_it(
    evil: int, each: float
) -> None:
    """Also those who keep just below the share of one."""
    thread = Thread(evil, good=0.01, each=each)
    thread.run(5.0)
    busy, for_good = thread.run(10.0)
    assert busy <= FULL_FROM + 0.1
    assert for_good >= 0.009


def test_when_they_are_gone_everybody_has_a_whole_share_again() -> None:
    thread = Thread(5, good=0.2)
    thread.run(5.0)
    thread.names = []
    thread.run(5.0)
    assert thread.run(5.0)[1] == pytest.approx(0.2, rel=0.05)


def test_a_thread_that_is_full_of_something_else_leaves_a_share_to_those_who_pay() -> None:
    thread = Thread(0, good=0.2, besides=0.79)
    thread.run(5.0)
    assert thread.run(5.0)[1] == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize("skipping", [0.3, 0.4, 0.45])
def test_beside_a_flood_of_the_bus_one_token_leaves_the_thread_its_idle_moments(skipping: float) -> None:
    """What is skipped is charged to nobody, as is half of what the token causes. A thread without idle moments is behind, and finds
    nobody dead."""
    thread = Thread(1, good=0.01, besides=skipping)
    thread.shares.flooded = True
    thread.run(5.0)
    for _ in range(20):
        thread.shares.charge(
            "bus evil", 1.2, fine=True
        )  # For what was skipped within the last half of a second.
        busy, for_good = thread.run(0.5)
        assert busy <= FULL_FROM + 0.12
        assert for_good >= 0.009


def test_beside_a_flood_those_who_pay_have_half_a_share_together_at_least() -> None:
    thread = Thread(0, good=0.12, besides=0.85)
    thread.shares.flooded = True
    thread.run(5.0)
    assert thread.run(5.0)[1] == pytest.approx(0.12, rel=0.05)


def test_beside_a_flood_who_was_held_to_less_does_not_get_a_whole_share_at_once() -> None:
    """Not even if it used less than all may have together: then the thread is full of the flood."""
    thread = Thread(1, good=0.01, besides=0.6)
    thread.shares.flooded = True
    thread.run(5.0)
    for _ in range(300):
        thread.run(0.01)
        assert thread.shares._level < 0.2


async def test_a_thread_that_waits_for_a_processor_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has hardly run, and is behind all the same: on a machine that is full of others' work five that flood it would have
    had a whole share each."""
    monkeypatch.setattr("lifesigns.hub.shares.wanted_seconds", lambda: time.monotonic)
    async with running_hub() as hub:
        shares = hub.service.hub.shares
        for _ in range(3):
            await asyncio.sleep(RECKON_EVERY)
            for n in range(5):
                shares.charge(f"evil-{n}", 0.02)
        assert shares.owes("evil-0") > 0.02 / (shares.share / 4) - BURST_FOR


def test_who_is_fined_waits_and_has_used_nothing() -> None:
    """A fine is no work: if it were, all that was worked would seem to be for whoever is dropped anyway."""
    thread = Thread(5, good=0.01, besides=0.5)
    thread.shares.flooded = True
    thread.run(5.0)
    thread.shares.charge("bus evil", 100.0, fine=True)
    assert thread.shares.owes("bus evil") > 100.0
    for _ in range(50):
        thread.run(0.01)
        assert thread.shares._level < 0.15


async def test_the_steps_of_some_work_are_charged_and_its_waiting_is_not() -> None:
    shares = Shares(Clock(), share=0.99)

    async def some_work() -> str:
        work(0.15)
        await asyncio.sleep(0.3)
        work(0.15)
        return "done"

    assert await shares.measured("a", some_work()) == "done"
    assert 0.3 - BURST_FOR <= shares.owes("a") < 0.5 - BURST_FOR


async def test_measured_work_fails_and_is_cancelled_as_it_would_be_by_itself() -> None:
    shares = Shares(Clock())
    told: list[str] = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise LookupError

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    with pytest.raises(LookupError):
        await shares.measured("a", fails())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await shares.measured("a", waits())
    assert told == ["cancelled"]


async def test_who_is_worked_for_does_not_pay_for_what_is_done_in_passing() -> None:
    shares = Shares(Clock(), share=0.99)

    async def helps() -> None:
        work(0.3)
        shares.charge_apart("b", 0.3)

    await shares.measured("a", helps())
    assert shares.owes("a") == 0.0
    assert shares.owes("b") == pytest.approx(0.3 / 0.99 - BURST_FOR)


async def test_who_beats_does_not_pay_for_the_deadlines_of_others() -> None:
    """Made-up agents of one token fall due when anybody is heard next: a neighbour was refused for that."""
    clock = Clock()
    async with running_hub(clock=clock) as hub:
        hearing, shares = hub.service.hub, hub.service.hub.shares
        for first in range(0, 4000, 500):
            hearing.hear(
                [BeatReceived(agent_id=f"evil-{n}", source="evil") for n in range(first, first + 500)]
            )
        while hearing.inbox.waiting:
            hearing._drain()
        clock.now += 60.0
        began, own_began = time.thread_time(), shares.own_time()
        assert hearing.hear_beats([BeatReceived(agent_id="good", source="good")], b"{}", "good", clock.now)
        assert shares.own_time() - own_began < 0.2 * (time.thread_time() - began)


async def test_a_token_over_its_share_is_refused_and_its_neighbour_is_heard() -> None:
    async with running_hub() as hub:
        evil, good = [await hub.token_for(Role.AGENT, f"{name}-*") for name in ("evil", "good")]
        async with hub.client(evil) as bad, hub.client(good) as well:
            assert (await bad.post("/api/v1/beats", json={"agent_id": "evil-1"})).status_code == 202
            source = hub.service.engine.beliefs.agents["evil-1"].source
            hub.service.hub.shares.charge(source, 60.0)
            refused = await bad.post("/api/v1/beats", json={"agent_id": "evil-1"})
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) > 100
            assert (await well.post("/api/v1/beats", json={"agent_id": "good-1"})).status_code == 202
            assert (await hub.post("/api/v1/beats", {"agent_id": "other"})).status_code == 202
        said = (await hub.get("/metrics")).text
        assert 'lifesigns_http_requests_over_limit_total{limit="busy_share"} 1.0' in said
        assert (source, "") in hub.service.engine.beliefs.awareness.put_off_until


async def test_a_large_delivery_is_heard_in_turns_and_whole() -> None:
    """With a share of a hundredth it takes seconds; a neighbour is answered meanwhile."""
    async with running_hub(limits=Limits(busy_share_per_token=0.02)) as hub:
        evil, good = [await hub.token_for(Role.AGENT, f"{name}-*") for name in ("evil", "good")]
        beats = [{"agent_id": f"evil-{n}"} for n in range(1000)]
        async with hub.client(evil) as bad, hub.client(good) as well:
            large = asyncio.ensure_future(
                bad.post("/api/v1/beats", content=json.dumps(beats).encode(), timeout=60)
            )
            agents = hub.service.engine.beliefs.agents
            async with asyncio.timeout(20):
                while "evil-1" not in agents:  # noqa: ASYNC110 -- what it waits for tells nobody
                    await asyncio.sleep(0)
            assert (await well.post("/api/v1/beats", json={"agent_id": "good-1"})).status_code == 202
            assert not large.done()
            assert (await large).json()["accepted"] == 1000
        assert sum(name.startswith("evil-") for name in agents) == 1000
