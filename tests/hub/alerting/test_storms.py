"""Many alerts at once are one problem: people are told so, once per group and channel."""

from collections.abc import Callable

import pytest

from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.core.signals import BreakerState
from lifesigns.errors import AdapterError
from lifesigns.hub.alerting.alerts import AlertSubject
from lifesigns.hub.alerting.rules import Pacing, Rate, Rules
from tests.hub.alerting.ground import Ground

QUIET = Pacing(repeat_every=0)


def storm(
    ground: Ground, agents: int, who: Callable[[int], AlertSubject], seconds: float = 10.0
) -> list[str]:
    """So many agents fail one after the other within some seconds."""
    names = [f"a-{n}" for n in range(agents)]
    for n, name in enumerate(names):
        ground.fleet.agents[name] = who(n)
        ground.fall([name])
        ground.run(seconds / agents)
    return names


@pytest.mark.parametrize(
    ("who", "groups"),
    [
        (lambda n: AlertSubject(host="ws-1"), {"host ws-1"}),
        (lambda n: AlertSubject(host=f"ws-{n % 3}"), {"host ws-0", "host ws-1", "host ws-2"}),
        (lambda n: AlertSubject(host=f"ws-{n % 50}"), {"fleet"}),
        (lambda n: AlertSubject(host=f"ws-{n % 50}", provider="acme"), {"provider acme"}),
        (lambda n: AlertSubject(), {"fleet"}),
    ],
)
def test_five_hundred_agents_that_fail_in_ten_seconds_are_one_alert_per_group(
    who: Callable[[int], AlertSubject], groups: set[str]
) -> None:
    ground = Ground(Rules({"slack": Rate(), "mail": Rate()}, pacing=QUIET))
    names = storm(ground, 500, who)
    ground.run(120)
    for channel in ("slack", "mail"):
        told = ground.notices(channel)
        opened = [n for n in told if n.stage == "opened"]
        assert {n.group for n in opened} == groups
        assert len(opened) == len(groups)
        assert sum({n.key: n.count for n in told}.values()) == 500, "at last all of them are in it"
        assert len(told) <= 3 * len(groups), "updated at intervals, not for everyone"
        assert all(len(n.agents) <= 20 for n in told)
    ground.heal(names)
    ground.run(120)
    assert ground.open_at("slack") == ground.open_at("mail") == set()
    resolved = [n for n in ground.notices("slack") if n.stage == "resolved"]
    assert {n.group for n in resolved} == groups
    assert len(resolved) == len(groups)


def test_a_grouped_notice_says_how_many_where_and_some_names() -> None:
    ground = Ground(pacing=QUIET)
    storm(ground, 30, lambda _: AlertSubject(host="ws-1"), seconds=1)
    ground.run(60)
    (notice,) = ground.notices()
    assert notice.title == "30 agents are unwell (host ws-1)"
    assert notice.key == "stuck_agent@host ws-1"
    assert "30 disconnected" in notice.text
    assert "a-0, a-1" in notice.text
    assert "and 10 more" in notice.text


def test_those_outside_of_the_group_are_told_alone() -> None:
    ground = Ground(pacing=QUIET)
    ground.fleet.agents |= {f"a-{n}": AlertSubject(host="ws-1") for n in range(10)} | {
        "b": AlertSubject(host="ws-2")
    }
    ground.fall([*(f"a-{n}" for n in range(10)), "b"])
    ground.run(60)
    assert {n.key for n in ground.notices()} == {"stuck_agent@host ws-1", "stuck_agent:b"}


def test_those_outside_of_the_group_are_not_told_before_they_have_lasted() -> None:
    ground = Ground(pacing=QUIET)
    ground.fleet.agents |= {f"a-{n}": AlertSubject(host="ws-1") for n in range(10)} | {
        "b": AlertSubject(host="ws-2")
    }
    ground.fall(f"a-{n}" for n in range(10))
    ground.run(4)
    ground.fall(["b"])
    ground.run(2)
    ground.heal(["b"])
    ground.run(60)
    assert [n.key for n in ground.notices()] == ["stuck_agent@host ws-1"]


def test_a_host_cannot_break_a_line() -> None:
    ground = Ground(pacing=QUIET)
    names = [f"a-{n}" for n in range(5)]
    ground.fleet.agents |= dict.fromkeys(names, AlertSubject(host="ws\r\nBcc: eve"))
    ground.fall(names)
    ground.run(60)
    assert ground.notices()[0].key == "stuck_agent@host ws Bcc: eve"


def test_who_falls_later_joins_its_group() -> None:
    ground = Ground(pacing=QUIET)
    storm(ground, 10, lambda _: AlertSubject(host="ws-1"), seconds=1)
    ground.run(300)
    ground.fleet.agents["late"] = AlertSubject(host="ws-1")
    ground.fall(["late"])
    ground.run(60)
    assert [(n.stage, n.count) for n in ground.notices()] == [("opened", 10), ("worse", 11)]


def test_a_group_is_over_when_its_last_is_well() -> None:
    ground = Ground(pacing=QUIET)
    names = storm(ground, 10, lambda _: AlertSubject(host="ws-1"), seconds=1)
    ground.run(60)
    ground.heal(names[:-1])
    ground.run(600)
    assert ground.stages() == ["opened"]
    ground.heal(names[-1:])
    ground.run(20)
    assert ground.stages() == ["opened", "resolved"]
    assert ground.notices()[-1].count == 10


def test_two_are_no_storm() -> None:
    ground = Ground(pacing=QUIET)
    ground.fall(["a", "b"])
    ground.run(60)
    assert [n.key for n in ground.notices()] == ["stuck_agent:a", "stuck_agent:b"]


def test_questions_that_trickle_in_are_not_told_one_by_one_for_ever() -> None:
    """What is told at once cannot wait to see whether it is a storm: the first few ring, the rest is one."""
    ground = Ground(pacing=QUIET)
    for n in range(300):
        ground.happen(e.NeedsHuman(ground.now, f"a-{n}", "waiting_for_human", "may I?"))
        ground.run(0.1)
    ground.run(60)
    told = ground.notices()
    assert len(told) <= 8
    assert [n.count for n in told if n.group][-1] >= 290
    assert {n.group for n in told} == {"", "fleet"}


def test_a_storm_while_the_channel_is_away_is_told_as_it_is_when_it_comes_back() -> None:
    ground = Ground(pacing=QUIET)
    ground.broken = {"ops": lambda _: AdapterError("away")}
    names = storm(ground, 100, lambda _: AlertSubject(host="ws-1"))
    ground.run(300)
    ground.heal(names[:60])
    ground.run(300)
    ground.broken = {}
    ground.run(600)
    assert [(n.stage, n.title) for n in ground.notices()] == [("opened", "40 agents are unwell (host ws-1)")]


def test_kinds_are_not_mixed() -> None:
    ground = Ground(pacing=QUIET)
    ground.fall(f"a-{n}" for n in range(10))
    for n in range(10):
        breaker = e.BreakerFlip(ground.now, f"a-{n}", "api", BreakerState.CLOSED, BreakerState.OPEN)
        ground.happen(breaker)
    ground.run(60)
    assert {n.key for n in ground.notices()} == {"stuck_agent@fleet", "circuit_breaker_open@fleet"}


def test_the_brake_of_a_host_is_one_alert() -> None:
    ground = Ground(pacing=QUIET)
    ground.happen(
        e.Brake(ground.now, "host ws-1", True, 5, 9),
        e.NeedsHuman(ground.now, "host ws-1", "mass brake", "5 of 9 agents in host ws-1 are unwell at once."),
    )
    ground.run(1)
    assert [(n.key, n.title) for n in ground.notices()] == [
        ("group_braked:host ws-1", "5 of 9 agents in host ws-1 are unwell at once")
    ]
    ground.happen(e.Brake(ground.now, "host ws-1", False, 1, 9))
    ground.run(20)
    assert ground.stages() == ["opened", "resolved"]


def test_an_agent_that_is_well_again_before_its_turn_is_not_told() -> None:
    """The rate keeps it waiting; what is outdated by then is not told, only that there was something."""
    ground = Ground(Rules({"ops": Rate(per_minute=1, gap=60)}, pacing=Pacing(group_from=100, repeat_every=0)))
    ground.flip("a", Health.STUCK)
    ground.flip("b", Health.STUCK)
    ground.run(10)
    ground.heal(["b"])
    ground.run(300)
    assert [n.key for n in ground.notices()] == ["stuck_agent:a", "missed:ops"]
