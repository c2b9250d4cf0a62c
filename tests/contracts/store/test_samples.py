"""Samples: minutes for a day, then hours, then nothing."""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from msgspec.structs import replace

from lifesigns.adapters.store.sampling import hour_of
from lifesigns.ports import Commit, Sample
from tests.contracts.store.ground import Ground, event, sample

HOUR, DAY = 3600.0, 86400.0
MONTH = 30 * DAY
NOW = 400 * DAY


async def test_a_minute_comes_back_as_it_was(ground: Ground) -> None:
    store = await ground.store()
    full = Sample("coder-7", 120.0, 12, 0.123456789, 0.1 + 0.2, 99.9, 310.25, 18230, 1 / 3, 4)
    bare = Sample("coder-7", 180.0, 0, 0.0)
    worker = replace(
        replace(full, at=240.0, status="degraded \x00 ü", tasks=2, capacity=3),
        tasks_completed=42,
        tasks_failed=2**70,
        uptime_s=7200.5,
    )
    await store.commit(Commit(1, samples=[bare, full, worker]))
    *others, kept = await store.samples("coder-7", 0.0, 1e12)
    assert others == [full, bare]
    assert kept == replace(worker, tasks_failed=kept.tasks_failed)
    assert (kept.tasks_failed or 0) >= 2**63 - 1
    assert await store.samples("coder-70", 0.0, 1e12) == []


@pytest.mark.parametrize(
    ("since", "until", "minutes"),
    [
        (60.0, 180.0, [60.0, 120.0]),
        (60.5, 180.5, [120.0, 180.0]),
        (120.0, 120.0, []),
        (float("-inf"), float("inf"), [60.0, 120.0, 180.0]),
        (1e9, 2e9, []),
        (500.0, 0.0, []),
    ],
)
async def test_a_range_has_its_beginning_and_not_its_end(
    ground: Ground, since: float, until: float, minutes: list[float]
) -> None:
    store = await ground.store()
    await store.commit(Commit(1, samples=[sample("a", at) for at in (60.0, 120.0, 180.0)]))
    assert [one.at for one in await store.samples("a", since, until)] == minutes


async def test_of_a_minute_told_twice_the_later_counts(ground: Ground) -> None:
    """A sample belongs to the minute in which it begins."""
    store = await ground.store()
    await store.commit(Commit(1, samples=[sample("a", 60.0, beats=1), sample("a", 61.5, beats=2)]))
    assert await store.samples("a", 0, 1e9) == [sample("a", 60.0, beats=2)]
    await store.commit(Commit(2, samples=[sample("a", 60.0, beats=3)]))
    assert await store.samples("a", 0, 1e9) == [sample("a", 60.0, beats=3)]


async def test_a_total_beyond_what_databases_count_does_not_stop_a_page(ground: Ground) -> None:
    store = await ground.store()
    huge = replace(sample("a", 60.0), tokens=2**70, errors=2**63, cost_usd=1.7e308)
    await store.commit(Commit(1, samples=[huge]))
    (kept,) = await store.samples("a", 0, 1e9)
    assert (kept.tokens or 0) >= 2**63 - 1
    assert kept.cost_usd == 1.7e308


async def test_after_a_day_minutes_become_hours(ground: Ground) -> None:
    """Whole hours: the one that reaches into the last day is left alone."""
    store = await ground.store()
    old = [
        Sample(
            "a", NOW - DAY - HOUR + n * 60, n, n / 10, n / 2 if n % 2 else None, 1.0, None, 100 + n, None, 3
        )
        for n in range(60)
    ]
    young = [sample("a", NOW - DAY + n * 60) for n in range(3)]
    other = [sample("b", NOW - DAY - HOUR + 120, beats=7)]
    await store.commit(Commit(1, samples=[*young, *old, *other]))
    assert await store.forget(NOW, keep_for=MONTH) == 61
    hour, *minutes = await store.samples("a", 0, NOW)
    assert hour.load == pytest.approx(15.0)
    assert hour.cpu_percent == pytest.approx(1.0)
    beats = sum(range(60))
    assert replace(hour, load=None, cpu_percent=None) == Sample(
        "a", NOW - DAY - HOUR, beats, 5.9, tokens=159, errors=3
    )
    assert minutes == young
    assert await store.samples("b", 0, NOW) == [sample("b", NOW - DAY - HOUR, beats=7)]
    assert await store.forget(NOW, keep_for=MONTH) == 0


async def test_a_minute_that_comes_very_late_joins_its_hour(ground: Ground) -> None:
    store = await ground.store()
    at = NOW - 2 * DAY
    await store.commit(Commit(1, samples=[sample("a", at, beats=3, late_max=5.0, load=1.0)]))
    await store.forget(NOW, keep_for=MONTH)
    await store.commit(Commit(2, samples=[sample("a", at + 120, beats=4, late_max=1.0, load=0.5)]))
    await store.forget(NOW, keep_for=MONTH)
    assert await store.samples("a", 0, NOW) == [sample("a", at, beats=7, late_max=5.0, load=0.75)]


async def test_what_is_older_than_it_is_kept_for_goes(ground: Ground) -> None:
    """On the boundary it stays. Events go by their ids, without gaps: one that tells of an older moment waits for those
    before it. Beliefs, orders and numbers stay in any case."""
    store = await ground.store()
    events = [event(1, at=NOW - MONTH - 0.1), event(2, at=NOW), event(3, at=NOW - MONTH), event(4, at=1.0)]
    samples = [sample("a", NOW - MONTH - HOUR), sample("a", NOW - MONTH)]
    await store.commit(Commit(1, events=events, samples=samples))
    assert await store.forget(NOW, keep_for=MONTH) == 3
    assert [one.id for one in await store.events()] == [2, 3, 4]
    assert [one.at for one in await store.samples("a", 0, NOW)] == [NOW - MONTH]
    assert await store.forget(NOW + HOUR, keep_for=HOUR - 0.1) == 4
    assert await store.events() == []
    _, found = await ground.opened()
    assert (found.commit, found.event) == (1, 4)


async def test_many_are_forgotten_while_pages_are_written(ground: Ground) -> None:
    """More than one step can take, of events and of agents."""
    store = await ground.store()
    await store.commit(
        Commit(
            1,
            events=[event(n, at=1.0) for n in range(1, 5001)],
            samples=[sample(f"a-{n}", NOW - 2 * DAY + m * 60) for n in range(250) for m in range(4)],
        )
    )
    assert await store.forget(NOW, keep_for=MONTH) == 6000
    assert await store.events() == []
    for n in range(250):
        assert await store.samples(f"a-{n}", 0, NOW) == [sample(f"a-{n}", NOW - 2 * DAY, beats=4)]


@dataclass
class Model:
    """The law in plain Python."""

    samples: dict[tuple[str, float], Sample] = field(default_factory=dict)
    hours: dict[tuple[str, float], Sample] = field(default_factory=dict)

    def forget(self, now: float, keep_for: float) -> None:
        for kept in (self.samples, self.hours):
            for key in [key for key in kept if key[1] < now - keep_for]:
                del kept[key]
        for key in sorted(key for key in self.samples if key[1] < (now - DAY) // HOUR * HOUR):
            self.hours.setdefault((key[0], key[1] // HOUR * HOUR), self.samples.pop(key))

    def of(self, agent_id: str) -> set[float]:
        return {at for agent, at in [*self.samples, *self.hours] if agent == agent_id}


MINUTES = some.tuples(some.sampled_from("ab"), some.integers(-40 * 24 * 60, 0).map(lambda n: NOW + n * 60.0))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rounds=some.lists(
        some.tuples(
            some.lists(MINUTES, max_size=8),
            some.sampled_from([0.0, 1800.0, DAY, 3 * DAY]),
            some.sampled_from([HOUR, DAY, 7 * DAY, MONTH]),
        ),
        max_size=4,
    )
)
async def test_whatever_was_told_and_forgotten_the_right_moments_are_left(
    ground: Ground, rounds: list[tuple[list[tuple[str, float]], float, float]]
) -> None:
    await ground.move()
    store, model, now = await ground.store(), Model(), NOW
    for number, (told, later, keep_for) in enumerate(rounds, 1):
        now += later
        await store.commit(Commit(number, samples=[sample(agent_id, at) for agent_id, at in told]))
        model.samples.update({key: sample(*key) for key in told})
        await store.forget(now, keep_for=keep_for)
        model.forget(now, keep_for)
        for agent_id in "ab":
            found = [one.at for one in await store.samples(agent_id, 0, 2 * NOW)]
            assert len(found) == len(set(found))
            assert set(found) == model.of(agent_id)


def test_an_hour_of_one_sample_is_that_sample() -> None:
    numbers = (3, 0.1, 0.2, 0.3, 0.4, 5, 0.6, 7)
    assert hour_of([numbers]) == numbers


def test_the_mean_of_the_largest_numbers_is_a_number() -> None:
    largest = (1, 0.0, 1.7e308, 1.7e308, None, None, None, None)
    assert hour_of([largest, largest])[2:4] == (1.7e308, 1.7e308)
