"""Nobody's verdict depends on the agents that another source makes up.

What is shared on purpose, and so left out here: that the hub hears anybody at all, that a host is there because somebody speaks
from it, and what two other sources or more agree on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifesigns.core.awareness import REFUTED_BY
from lifesigns.core.effects import Brake, Effect, Flip, Intervention, NeedsHuman, Order, SendNudge
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.core.signals import ErrorReported, GroupReleased, ProcessExited, ToolFinished
from lifesigns.core.source_counts import SourceCounts, seen_from
from tests.core.harness import START, Watch

FREE = FleetPolicy(canary_every=0, acted_share=1.0)
GOOD, EVIL = "good", "evil"


def joined(watch: Watch, source: str, count: int, **fields: Any) -> list[str]:
    """So many healthy agents of a source."""
    names = [f"{source}-{n}" for n in range(count)]
    for name in names:
        watch.beat(name, source=source, **fields)
    return names


def sicken(watch: Watch, names: Sequence[str]) -> None:
    for name in names:
        watch.hear(ErrorReported(agent_id=name, message="disk full", recoverable=False))


def heal(watch: Watch, names: Sequence[str]) -> None:
    for name in names:
        watch.hear(ToolFinished(agent_id=name, call_id="c", tool="ls"))


def nudged(watch: Watch) -> set[str]:
    return {order.agent_id for order in watch.orders(SendNudge)}


# --- how much others count -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "others", "unwell", "seen"),
    [
        pytest.param((5, 2), 0, 0, (5, 2), id="alone"),
        pytest.param((5, 2), 1, 1, (5, 2), id="one other that is unwell counts for nothing"),
        pytest.param((5, 2), 1, 0, (5, 2), id="one other that is well counts for nothing"),
        pytest.param((5, 2), 2, 1, (5, 2), id="nor do one of each"),
        pytest.param((5, 2), 2, 2, (7, 4), id="two agree"),
        pytest.param((5, 2), 4, 0, (8, 2), id="one that is well is left out"),
        pytest.param((1, 1), 9, 9, (10, 10), id="a token each"),
        pytest.param((0, 0), 3, 3, (3, 3), id="none of ours is left"),
    ],
)
def test_other_sources_are_one_agent_each_and_one_of_them_none(
    own: tuple[int, int], others: int, unwell: int, seen: tuple[int, int]
) -> None:
    assert seen_from(own, others, unwell) == seen


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 6), st.integers(0, 6)), max_size=40))
def test_counts_by_source_are_the_same_however_they_came_about(steps: list[tuple[str, int, int]]) -> None:
    counts, held = SourceCounts(0.55), dict[str, tuple[int, int]]()
    for source, members, unwell in steps:
        after = (members, min(members, unwell))
        before = held.get(source, (0, 0))
        counts.shift(source, after[0] - before[0], after[1] - before[1])
        held[source] = after
    there = {source: count for source, count in held.items() if count[0]}
    assert len(counts) == len(there)
    for source, own in there.items():
        ill = sum(u > 0 and u >= 0.55 * m for other, (m, u) in there.items() if other != source)
        assert counts.of(source) == own
        assert counts.seen_by(own) == seen_from(own, len(there) - 1, ill)


# --- the brake -----------------------------------------------------------------------------------------------


def test_made_up_agents_that_are_unwell_brake_nobody_else() -> None:
    watch = Watch(fleet=FREE)
    good = joined(watch, GOOD, 5, host="h")
    sicken(watch, joined(watch, EVIL, 50, host="h"))
    watch.forget()
    sicken(watch, good[:1])
    assert nudged(watch) == set(good[:1])


def test_made_up_agents_that_are_well_release_nobody_else() -> None:
    watch = Watch(fleet=FREE)
    good = joined(watch, GOOD, 5, host="h")
    joined(watch, EVIL, 500, host="h")
    sicken(watch, good)
    assert len(nudged(watch)) == 2
    assert ("host h", 3, 5) in [(one.group, one.unwell, one.members) for one in watch.facts(Brake) if one.on]


@pytest.mark.parametrize("sources", [3, 10])
def test_a_host_whose_agents_have_a_token_each_is_braked_and_that_is_one_alert(sources: int) -> None:
    watch = Watch(fleet=FREE)
    names = [name for n in range(sources) for name in joined(watch, f"t{n}", 1, host="h")]
    for n in range(20):
        joined(watch, f"elsewhere{n}", 1)
    sicken(watch, names)
    assert [fact.group for fact in watch.facts(Brake)] == ["host h"]
    assert [fact.reason for fact in watch.facts(NeedsHuman)].count("mass brake") == 1
    assert len(nudged(watch)) < len(names)
    watch.forget()
    watch.run_until(START + 4.0)
    assert not watch.orders(SendNudge)


def test_people_hear_of_a_brake_though_another_source_set_off_its_own_before() -> None:
    watch = Watch(fleet=FREE)
    good = joined(watch, GOOD, 4, host="h")
    sicken(watch, joined(watch, EVIL, 9, host="h"))
    watch.forget()
    sicken(watch, good)
    assert [(fact.group, fact.on, fact.unwell) for fact in watch.facts(Brake)] == [
        ("fleet", True, 3),
        ("host h", True, 3),
    ]


def test_the_brake_is_off_when_the_last_source_is_well_again() -> None:
    watch = Watch(fleet=FREE)
    good, evil = joined(watch, GOOD, 4), joined(watch, EVIL, 4)
    sicken(watch, good)
    sicken(watch, evil)
    heal(watch, evil)
    assert [fact.on for fact in watch.facts(Brake)] == [True, True]
    heal(watch, good)
    assert [fact.on for fact in watch.facts(Brake)] == [True, True, False]
    assert not watch.engine.beliefs.fleet.groups["fleet"].braked


def test_a_person_releases_a_group_for_all_its_sources() -> None:
    watch = Watch(fleet=FREE)
    good, evil = joined(watch, GOOD, 4), joined(watch, EVIL, 4)
    sicken(watch, [*good, *evil])
    watch.hear(GroupReleased(group="fleet", by="eva"))
    watch.live(START + 120, *good, *evil)
    assert nudged(watch) == {*good, *evil}


def lost_with_a_host(*, back: Sequence[int]) -> Watch:
    """Ten agents with a token each vanish with their host; some are back after ten minutes."""
    watch = Watch()
    others = [name for n in range(30) for name in joined(watch, f"o{n}", 1)]
    names = [name for n in range(10) for name in joined(watch, f"t{n}", 1, host="h")]
    watch.live(START + 60, *others, *names)
    watch.live(START + 600, *others)
    assert watch.engine.beliefs.fleet.groups["host h"].lost == 10
    watch.forget()
    watch.live(START + 900, *others, *[names[n] for n in back])
    return watch


def test_agents_with_a_token_each_that_were_lost_with_their_host_are_left_to_a_person() -> None:
    assert not lost_with_a_host(back=[]).orders(Order)


def test_one_that_is_back_says_nothing_of_the_agents_of_others_but_two_do() -> None:
    def asked(watch: Watch) -> set[str]:
        return {order.agent_id for order in watch.orders(Order) if "t" in order.agent_id}

    assert asked(lost_with_a_host(back=[0])) == set()
    assert asked(lost_with_a_host(back=[0, 1])) == {f"t{n}-0" for n in range(2, 10)}


# --- limits and self-doubt ------------------------------------------------------------------------------------


def test_what_one_source_needs_keeps_no_other_waiting() -> None:
    watch = Watch(fleet=FleetPolicy(canary_every=0, brake_count=999, nudges_per_minute=3))
    good = joined(watch, GOOD, 1)
    evil = joined(watch, EVIL, 100)
    sicken(watch, evil)
    watch.forget()
    sicken(watch, good)
    assert nudged(watch) == set(good)


def test_agents_with_a_token_each_have_the_limits_of_a_fleet() -> None:
    watch = Watch(fleet=FleetPolicy(canary_every=0, brake_count=999))
    sicken(watch, [name for n in range(100) for name in joined(watch, f"t{n}", 1)])
    assert len(nudged(watch)) == 15
    watch = Watch(fleet=FleetPolicy(canary_every=0, acted_share=1.0, brake_count=999, nudges_per_minute=10))
    sicken(watch, [name for n in range(100) for name in joined(watch, f"t{n}", 1)])
    assert len(nudged(watch)) == 11  # One other source is left out.


def late_and_back(watch: Watch, *names: str) -> None:
    """These are late, and are heard before they are convicted."""
    watch.run_until(watch.now + 12.6)
    for name in names:
        watch.beat(name)


def test_suspicions_that_one_source_refutes_slow_down_its_own_verdicts_only() -> None:
    watch = Watch(fleet=FREE)
    joined(watch, GOOD, 3)
    evil = joined(watch, EVIL, 40)
    for _ in range(4):
        late_and_back(watch, *evil)
    aware = watch.engine.beliefs.awareness
    assert aware.factor(watch.now, FREE, EVIL) > 2
    assert aware.factor(watch.now, FREE, GOOD) == 1
    assert watch.engine.self_doubt(watch.now) > 1


def test_suspicions_that_several_sources_refute_are_a_doubt_about_everybody() -> None:
    for sources, doubts in ((REFUTED_BY - 1, 0), (REFUTED_BY, 1)):
        watch = Watch(fleet=FREE)
        names = [name for n in range(sources) for name in joined(watch, f"t{n}", 1)]
        late_and_back(watch, *names)
        assert watch.engine.beliefs.awareness.score == doubts


def test_sources_that_leave_no_doubt_are_let_go() -> None:
    watch = Watch(fleet=FREE)
    evil = joined(watch, EVIL, 3)
    joined(watch, GOOD, 1)
    late_and_back(watch, *evil)
    assert set(watch.engine.beliefs.awareness.doubts) == {EVIL}
    watch.live(watch.now + 300, *evil, "good-0")
    late_and_back(watch, "good-0")
    assert EVIL not in watch.engine.beliefs.awareness.doubts


# --- nobody else's agents change anything -------------------------------------------------------------------------

MODES = ("well", "silent", "late", "sick", "crashed")
PHASE = 6.0
BEAT_EVERY = {"well": 1.0, "sick": 1.0, "late": 2.4, "always": 0.5}


def behave(watch: Watch, name: str, mode: str, tick: float, source: str, host: str) -> None:
    """What an agent does in this half of a second."""
    every = BEAT_EVERY.get(mode)
    if every is not None and (tick / every) % 1 < 0.5 / every - 1e-9:
        watch.beat(name, source=source, host=host, seq=None)
    if tick % PHASE == 0 and mode == "sick":
        sicken(watch, [name])
    elif tick % PHASE == 0 and mode == "well":
        heal(watch, [name])
    elif tick % PHASE == 0 and mode == "crashed":
        watch.hear(ProcessExited(agent_id=name, status=1))


def lived(ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]) -> list[Any]:
    """What is found of our agents and done to them, beside agents of another source. Each list is one agent's modes."""
    engine = Engine(PolicyBook(profile("swift")), FleetPolicy(canary_every=0))
    watch = Watch(engine=engine)
    agents = [(f"{GOOD}-{n}", modes, GOOD) for n, modes in enumerate(ours)]
    agents += [(f"{EVIL}-{n}", modes, EVIL) for n, modes in enumerate(theirs)]
    for name, _, source in agents:
        watch.beat(name, source=source, host="h", seq=None)
    tick = 0.0
    while tick < PHASE * max(map(len, ours)):
        for name, modes, source in agents:
            mode = modes[int(tick / PHASE)] if tick / PHASE < len(modes) else "well"
            behave(watch, name, mode, tick, source, "h")
        tick += 0.5
        watch.run_until(START + tick)
    return [shown for effect in watch.effects if (shown := _of_ours(effect)) is not None]


def _of_ours(effect: Effect) -> Any:
    if not getattr(effect, "agent_id", "").startswith(GOOD):
        return None
    match effect:
        case Flip():
            return (effect.at, effect.agent_id, effect.now, effect.cause)
        case Intervention():
            return (effect.at, effect.agent_id, effect.rung, effect.stage, effect.text)
        case Order():
            return (effect.at, effect.agent_id, type(effect).__name__)
    return None


lives = st.lists(st.sampled_from(MODES), min_size=8, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(lives, min_size=1, max_size=5), st.lists(lives, min_size=1, max_size=8))
def test_no_agent_of_another_source_changes_what_is_found_of_ours_and_done_to_them(
    ours: list[list[str]], theirs: list[list[str]]
) -> None:
    """Well, unwell, late, silent or crashing: no verdict, hold or step comes earlier, later or otherwise."""
    there = [*ours, ["always"] * 8]  # Somebody of ours is always heard: the host is there, and the hub hears.
    assert lived(there, theirs) == lived(there, [])


def test_these_lives_have_verdicts_holds_and_steps_to_compare() -> None:
    """A property of nothing is a defect."""
    ours = [["well", "silent", "silent", "silent", "well", "sick", "sick", "crashed"]] * 4 + [["well"] * 8]
    seen = lived(ours, [])
    assert {Health.DISCONNECTED, Health.FAILING} <= {one[2] for one in seen}
    assert any("too many in" in str(one[-1]) for one in seen)
    assert any("late" in str(one[-1]) or "limit" in str(one[-1]) for one in seen)
