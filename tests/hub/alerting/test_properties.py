"""What holds however agents fall, heal and flap, channels fail and hubs end."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.errors import AdapterError
from lifesigns.hub.alerting.alerts import Ack, AlertSubject
from lifesigns.hub.alerting.rules import Pacing, Rate, Rules
from lifesigns.ports import Notice, NoticeStage
from tests.hub.alerting.ground import Ground

AGENTS = [f"a-{n}" for n in range(8)]
RATE = Rate(per_minute=6, gap=1.0)
PACING = Pacing(hold_for=5, update_every=30, repeat_every=300, group_from=3)

agents = st.sampled_from(AGENTS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("fall"), st.lists(agents, min_size=1, max_size=8, unique=True)),
        st.tuples(st.just("heal"), st.lists(agents, min_size=1, max_size=8, unique=True)),
        st.tuples(st.just("ask"), agents),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 3.0, 6.0, 31.0, 200.0])),
        st.tuples(st.just("break"), st.booleans()),
        st.tuples(st.just("refuse"), agents),
        st.tuples(st.just("keep"), st.none()),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("acknowledge"), agents),
    ),
    max_size=40,
)


def ground(rate: Rate = RATE) -> Ground:
    made = Ground(Rules({"ops": rate, "mail": Rate()}, pacing=PACING))
    made.fleet.agents = {name: AlertSubject(host=f"ws-{n // 4}") for n, name in enumerate(AGENTS)}
    return made


def act(world: Ground, step: str, what: object, *, crashes: bool) -> None:
    match step, what:
        case "fall", list():
            world.fall(what, Health.STUCK)
        case "heal", list():
            world.heal(what)
        case "ask", str():
            world.happen(e.NeedsHuman(world.now, what, "blocked", "look"))
        case "wait", float():
            world.run(what)
        case "break", bool():
            world.broken = {"ops": lambda _: AdapterError("away")} if what else {}
        case "refuse", str():
            world.broken = {
                "ops": lambda notice: AdapterError("no", transient=False) if what in notice.key else None
            }
        case "acknowledge", str():
            world.alerting.acknowledge(f"stuck_agent:{what}", Ack("ada", world.now))
        case "keep", _:
            world.keep()
        case "restart", _:
            if not crashes:
                world.keep()
            world.restart()


def settle(world: Ground) -> None:
    """Everything is well again, and everybody is there."""
    world.broken = {}
    world.heal(AGENTS)
    world.run(3600)


@settings(max_examples=60)
@given(steps)
def test_what_is_told_as_opened_is_at_last_told_as_resolved(history: list[tuple[str, object]]) -> None:
    """And on the way nobody is told the end of what they were not told the beginning of."""
    world = ground()
    for step, what in history:
        act(world, step, what, crashes=False)
    settle(world)
    for channel in world.rules.channels:
        assert world.open_at(channel) == set()
        assert_in_order([n for n in world.notices(channel) if n.kind != "missed"])
    assert len(world.alerting.alerts) == 0
    assert all(not queue.alert_groups and not queue.members for queue in world.alerting.queues.values())


def assert_in_order(notices: list[Notice]) -> None:
    open_: set[str] = set()
    for notice in notices:
        assert (notice.stage is NoticeStage.OPENED) == (notice.key not in open_), notice
        if notice.stage is NoticeStage.RESOLVED:
            open_.discard(notice.key)
        else:
            open_.add(notice.key)


@settings(max_examples=50)
@given(steps)
def test_whatever_happens_a_channel_is_never_told_more_than_its_rate(
    history: list[tuple[str, object]],
) -> None:
    rate = Rate(per_minute=2, gap=1.0)  # Few enough that a history of this length reaches it.
    world = ground(rate)
    for step, what in history:
        act(world, step, what, crashes=False)
    settle(world)
    tried = world.tried.get("ops", [])
    assert len(tried) >= len(world.notices("ops")), "what was told was tried"
    assert all(b - a >= rate.gap - 1e-6 for a, b in pairwise(tried))
    in_a_minute = zip(tried, tried[rate.per_minute :], strict=False)
    assert all(b - a >= 60 - 1e-6 for a, b in in_a_minute)


@settings(max_examples=50)
@given(steps)
def test_after_any_crash_everything_open_is_resolved_when_all_is_well(
    history: list[tuple[str, object]],
) -> None:
    """What the crash forgot, the events say again: they are in the store, after the last one that was looked at."""
    world = ground()
    log: list[tuple[int, list[e.Fact]]] = []
    happen = world.happen

    def remember(*facts: e.Fact) -> None:
        log.append((world.last_event, list(facts)))
        happen(*facts)

    world.happen = remember  # type: ignore[method-assign]
    for step, what in history:
        act(world, step, what, crashes=True)
        if step == "restart":
            last = world.last_event
            for before, facts in log:
                world.last_event = before
                happen(*facts)
            world.last_event = last
    settle(world)
    for channel in world.rules.channels:
        assert world.open_at(channel) == set()


@settings(max_examples=60)
@given(st.lists(st.tuples(agents, st.floats(0.1, 4.5), st.floats(10.1, 20)), max_size=20))
def test_flaps_shorter_than_the_hold_never_ring(flaps: list[tuple[str, float, float]]) -> None:
    world = ground()
    for agent_id, lasts, calm in flaps:
        world.fall([agent_id])
        world.run(lasts)
        world.heal([agent_id])
        world.run(calm)
    assert world.told == []


@settings(max_examples=60)
@given(st.lists(agents, min_size=1, max_size=8, unique=True), st.floats(20, 2000))
def test_everybody_who_lies_is_told_once_however_they_are_grouped(down: list[str], lasts: float) -> None:
    world = ground()
    world.fall(down)
    world.run(lasts)
    opened = [n for n in world.notices() if n.stage is NoticeStage.OPENED]
    assert Counter(name for notice in opened for name in notice.agents) == Counter(down)
    assert sum(notice.count for notice in opened) == len(down)
