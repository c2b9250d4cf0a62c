"""Engines that judge parts of a fleet, and tell each other: together they act as one would."""

from __future__ import annotations

import itertools

import pytest

from lifesigns.core.effects import Brake, Escalate, Rung, Terminate
from lifesigns.core.fleet_summary import KNOWN_FOR, ActElsewhere, FleetSummary, together
from lifesigns.core.health import Cause, Health
from lifesigns.core.policy import MINUTE, FleetPolicy
from lifesigns.core.signals import ErrorReported
from tests.core.harness import Watch

NOBODY = FleetSummary()


def parts(count: int = 2) -> list[Watch]:
    watches = [Watch(fleet=FleetPolicy(canary_every=0, acted_share=1.0)) for _ in range(count)]
    for watch in watches:
        watch.engine.judges_a_part(1 / count)
    return watches


def tell_each_other(*watches: Watch) -> None:
    said = [watch.engine.summary(watch.now) for watch in watches]
    for n, watch in enumerate(watches):
        others = together([one for m, one in enumerate(said) if m != n])
        watch.keep(watch.engine.hear_of_others(others, 0.0, watch.now))


def run(until: float, *watches: Watch) -> None:
    """Let time pass; they tell each other every second."""
    while watches[0].now < until:
        for watch in watches:
            watch.run_until(watch.now + 1)
        tell_each_other(*watches)


def sick(watch: Watch, *names: str) -> None:
    for name in names:
        watch.beat(name)
        watch.hear(ErrorReported(agent_id=name, message="disk full", recoverable=False))


def test_a_group_is_braked_by_what_is_unwell_elsewhere() -> None:
    """Two of two here and two of two there: one engine would see four of four."""
    one, two = parts()
    sick(one, "a", "b")
    sick(two, "c", "d")
    assert not one.facts(Brake)
    tell_each_other(one, two)
    assert [(fact.group, fact.on, fact.unwell, fact.members) for fact in one.facts(Brake)] == [
        ("fleet", True, 4, 4)
    ]


def test_the_brake_is_off_when_they_are_well_elsewhere() -> None:
    one, two = parts()
    sick(one, "a", "b")
    sick(two, "c", "d")
    tell_each_other(one, two)
    for n in range(6):
        two.beat(f"well-{n}")
    tell_each_other(one, two)
    assert [fact.on for fact in one.facts(Brake)] == [True, False]


def test_what_was_told_once_is_not_counted_twice() -> None:
    one, two = parts()
    sick(one, "a", "b")
    sick(two, "c", "d")
    for _ in range(5):
        tell_each_other(one, two)
    assert one.engine.summary(one.now).groups == {"fleet": {"": (2, 2)}}
    assert two.engine.summary(two.now).groups == {"fleet": {"": (2, 2)}}


def silent_for(minutes: float, *, told: bool) -> Watch:
    """An agent that answers nothing, and whose fleet is well elsewhere."""
    one, two = parts()
    one.beat("a")
    two.beat("b")
    until = one.now + minutes * MINUTE
    while one.now < until:
        two.beat("b", two.now + 1)
        one.run_until(one.now + 1)
        if told:
            tell_each_other(one, two)
    return one


def test_an_agent_is_ended_only_while_the_others_are_known() -> None:
    assert silent_for(20, told=True).orders(Terminate)
    untold = silent_for(20, told=False)
    assert untold.orders(Escalate)
    assert not untold.orders(Terminate)


def test_what_was_told_counts_for_some_seconds_and_less_if_it_was_old() -> None:
    (one,) = parts(1)
    one.beat("a")
    fleet = one.engine._context.fleet
    agent = one.agent("a")
    one.keep(one.engine.hear_of_others(NOBODY, 2.0, one.now))
    assert fleet.hold(agent, Rung.TERMINATE, one.now + KNOWN_FOR - 2.01) is None
    assert fleet.hold(agent, Rung.TERMINATE, one.now + KNOWN_FOR - 2.0) is not None
    assert fleet.hold(agent, Rung.NUDGE, one.now + 1000) is None


@pytest.mark.parametrize(("elsewhere", "held"), [(9, False), (10, True)])
def test_acts_elsewhere_count_for_the_limit_of_a_minute(elsewhere: int, held: bool) -> None:
    one, _ = parts()
    one.beat("a")
    acts = [ActElsewhere(1.0, Rung.TERMINATE, f"x-{n}", "") for n in range(elsewhere)]
    members = {"fleet": {"": (1000, 0)}}
    one.keep(one.engine.hear_of_others(FleetSummary(members, acts=acts), 0.0, one.now))
    assert (one.engine._context.fleet.hold(one.agent("a"), Rung.TERMINATE, one.now) is not None) is held


def test_two_engines_that_act_at_once_stay_below_the_limit_together() -> None:
    one, _ = parts()
    for n in range(8):
        one.beat(f"a-{n}")
    one.keep(one.engine.hear_of_others(FleetSummary({"fleet": {"": (1000, 0)}}), 0.0, one.now))
    fleet = one.engine._context.fleet
    for n in range(5):
        agent = one.agent(f"a-{n}")
        assert fleet.hold(agent, Rung.TERMINATE, one.now) is None
        fleet.acted(agent, Rung.TERMINATE, one.now)
    assert fleet.hold(one.agent("a-5"), Rung.TERMINATE, one.now) is not None, "half of ten is its part"


def test_a_host_on_which_another_engine_hears_somebody_is_there() -> None:
    """Else silence on it is called a partition: the host may be away as a whole."""

    def cause(*, heard: bool) -> Cause | None:
        one, two = parts()
        one.beat("a", host="h")
        two.beat("b", host="h")
        until = one.now + 60
        while one.now < until:
            if heard:
                two.beat("b", two.now + 1, host="h")
            else:
                two.run_until(two.now + 1)
            one.run_until(one.now + 1)
            tell_each_other(one, two)
        assert one.health("a") is Health.DISCONNECTED
        return one.agent("a").cause

    assert cause(heard=False) is Cause.PARTITION
    assert cause(heard=True) is Cause.UNKNOWN


def test_hosts_are_told_of_only_while_somebody_there_is_in_trouble() -> None:
    """Here or elsewhere: with a host for each agent, all of them would be told every second."""
    one, two = parts()
    for watch, name in ((one, "a"), (two, "b")):
        watch.beat(name, host="h")
        watch.beat(f"{name}-2", host=f"of-{name}")
    tell_each_other(one, two)
    assert {*two.engine.summary(two.now).groups} == {"fleet"}
    one.hear(ErrorReported(agent_id="a", message="disk full", recoverable=False))
    tell_each_other(one, two)
    assert two.engine.summary(two.now).groups == {"fleet": {"": (2, 0)}, "host h": {"": (1, 0)}}
    tell_each_other(one, two)
    assert one.engine.summary(one.now).groups == {"fleet": {"": (2, 1)}, "host h": {"": (1, 1)}}
    assert one.engine._context.fleet._sources_in("host h").of("") == (2, 1)


def small_fleet(watches: int = 4) -> list[Watch]:
    """An agent for each engine, whose fleet may lose one a minute."""
    engines = [Watch(fleet=FleetPolicy(canary_every=0)) for _ in range(watches)]
    for n, watch in enumerate(engines):
        watch.engine.judges_a_part(1 / watches)
        watch.beat(f"a-{n}")
    return engines


@pytest.mark.parametrize(
    "late_by", [(0.0, 0.0, 0.0, 0.0), (0.0, 3.0, 6.0, 9.0), (12.0, 8.0, 4.0, 0.0), (9.0, 0.0, 18.0, 2.0)]
)
def test_of_a_small_fleet_no_more_are_ended_at_once_than_one_engine_would_end(
    late_by: tuple[float, ...],
) -> None:
    """Whoever comes first by a moment, or last; and news that are as old as they may be."""
    engines, ended = small_fleet(), list[float]()
    begun_at = engines[0].now
    again = [begun_at + late for late in late_by]
    news: list[list[FleetSummary]] = []
    for second in range(200):
        now = begun_at + second
        for watch in engines:
            watch.beat(f"a-{engines.index(watch)}", now)
        news.append([watch.engine.summary(now) for watch in engines])
        told = news[max(0, second - 4)]
        for n, watch in enumerate(engines):
            others = together([one for m, one in enumerate(told) if m != n])
            watch.keep(watch.engine.hear_of_others(others, 4.0, now))
            fleet, agent = watch.engine._context.fleet, watch.agent(f"a-{n}")
            if now >= again[n]:
                held = fleet.hold(agent, Rung.TERMINATE, now)
                again[n] = now + 1000 if held is None else held[1]
                if held is None:
                    fleet.acted(agent, Rung.TERMINATE, now)
                    ended.append(now)
    assert len(ended) >= 2, "they are ended all the same"
    assert all(later - earlier >= MINUTE - 5 for earlier, later in itertools.pairwise(sorted(ended)))
