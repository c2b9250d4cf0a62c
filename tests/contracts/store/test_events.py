"""Events: asked for in every combination, they are those of a plain loop in Python."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

from lifesigns.ports import Commit, Event
from lifesigns.ports.store import first_event_since
from tests.contracts.store.ground import AnyStore, Ground, believed, event, fill

TYPES = ["HEALTH_STATE_CHANGED", "FINDING_OPENED", "HUB_BLIND"]
AGENTS = ["coder-7", "coder-70", "a/b:c@d.e_f", ""]


def history() -> list[Event]:
    """Not in the order of time: a fact carries the moment it fell due, not the moment it was noticed."""
    chance = random.Random(7)
    return [
        event(n, at=chance.randrange(20) / 2, type_=chance.choice(TYPES), agent_id=chance.choice(AGENTS))
        for n in range(1, 61)
    ]


def expected(
    after: int,
    until: int | None,
    since: float | None,
    types: Sequence[str],
    agent_id: str | None,
    newest_first: bool,
    limit: int,
) -> list[Event]:
    found = [one for one in history() if one.id > after]
    if until is not None:
        found = [one for one in found if one.id <= until]
    if since is not None:
        found = [one for one in found if one.at >= since]
    if types:
        found = [one for one in found if one.type in types]
    if agent_id is not None:
        found = [one for one in found if one.agent_id == agent_id]
    if newest_first:
        found.reverse()
    return found[:limit]


@pytest.fixture
async def filled(ground: Ground) -> AnyStore:
    store = await ground.store()
    await fill(store, *history())
    return store


HUGE = 2**70


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    after=some.integers(-2, 62),
    until=some.none() | some.integers(-2, 62),
    since=some.none() | some.integers(-1, 21).map(lambda half: half / 2),
    types=some.lists(some.sampled_from([*TYPES, "NO_SUCH_TYPE"]), max_size=3),
    agent_id=some.none() | some.sampled_from([*AGENTS, "nobody"]),
    newest_first=some.booleans(),
    limit=some.integers(0, 70),
)
@example(after=0, until=None, since=None, types=[], agent_id=None, newest_first=False, limit=1000)
@example(after=0, until=None, since=None, types=[], agent_id=None, newest_first=True, limit=1)
@example(after=-HUGE, until=HUGE, since=-1e300, types=TYPES, agent_id=None, newest_first=True, limit=HUGE)
@example(
    after=HUGE, until=-HUGE, since=1e300, types=["'; --"], agent_id="' OR 1=1", newest_first=True, limit=9
)
@example(after=0, until=None, since=None, types=["\0"], agent_id="\0\ud800", newest_first=True, limit=9)
async def test_every_combination_of_filters_finds_what_a_plain_loop_finds(
    filled: AnyStore,
    after: int,
    until: int | None,
    since: float | None,
    types: list[str],
    agent_id: str | None,
    newest_first: bool,
    limit: int,
) -> None:
    found = await filled.events(
        after=after,
        until=until,
        since=since,
        types=types,
        agent_id=agent_id,
        newest_first=newest_first,
        limit=limit,
    )
    assert found == expected(after, until, since, types, agent_id, newest_first, limit)


async def test_no_more_than_a_thousand_unless_asked(ground: Ground) -> None:
    store = await ground.store()
    await fill(store, *(event(n) for n in range(1, 1501)))
    assert [one.id for one in await store.events()] == list(range(1, 1001))
    assert len(await store.events(limit=2000)) == 1500
    assert await store.events(limit=-1) == []


async def test_an_event_is_seen_as_soon_as_its_page_is_kept(ground: Ground) -> None:
    store = await ground.store()
    for number in range(1, 20):
        await store.commit(Commit(number, events=[event(number)]))
        assert [one.id for one in await store.events(after=number - 1)] == [number]


async def test_an_event_in_the_future_keeps_nothing_from_being_forgotten(ground: Ground) -> None:
    """It is of a clock that was wrong. Just within a day of now it may be true."""
    store, now, day = await ground.store(), 1_000_000_000.0, 86400.0
    ahead = event(2, at=now + day + 1)
    await fill(store, event(1, at=now - 50 * day), ahead, event(3, at=now - 40 * day), event(4, at=now + day))
    assert await first_event_since(store, now - 30 * day, now) == 4
    assert await store.forget(now, keep_for=30 * day) == 3
    assert [one.id for one in await store.events()] == [4]
    assert await first_event_since(store, now + 2 * day, now) == 5


async def test_one_belief_is_read_beside_a_hub(ground: Ground) -> None:
    store = await ground.store()
    await store.commit(Commit(1, beliefs=[believed("a", b"1"), believed("a", b"2", kind="other")]))
    assert [await store.belief(kind, "a") for kind in ("agent", "other", "third")] == [b"1", b"2", None]
    await store.commit(Commit(2, beliefs=[believed("a", None)]))
    assert await store.belief("agent", "a") is None
