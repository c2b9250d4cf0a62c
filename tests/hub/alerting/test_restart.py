"""A hub that ends in the middle of everything: nothing is lost, and nothing is told twice but what was on its way."""

from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.errors import AdapterError
from lifesigns.hub.alerting.alerts import AlertSubject
from lifesigns.hub.alerting.rules import Matcher, Pacing, Rate, Rules, Silence
from lifesigns.ports import Belief
from tests.hub.alerting.ground import Ground


def test_what_was_told_is_not_told_again() -> None:
    ground = Ground()
    ground.fall(["a"])
    ground.run(60)
    ground.keep()
    ground.restart()
    ground.run(600)
    assert ground.stages() == ["opened"]
    ground.heal(["a"])
    ground.run(60)
    assert ground.stages() == ["opened", "resolved"]


def test_what_was_not_told_yet_is_told() -> None:
    ground = Ground()
    ground.broken = {"ops": lambda _: AdapterError("away")}
    ground.fall(["a"])
    ground.run(60)
    ground.keep()
    ground.broken = {}
    ground.restart()
    ground.run(60)
    assert ground.stages() == ["opened"]


def test_a_hold_goes_on_where_it_was() -> None:
    ground = Ground()
    ground.fall(["a"])
    ground.run(3)
    ground.keep()
    ground.restart()
    ground.run(1)
    assert ground.stages() == []
    ground.run(2)
    assert ground.stages() == ["opened"]


def test_told_but_not_kept_is_told_again_under_the_same_key() -> None:
    ground = Ground()
    ground.fall(["a"])
    ground.run(60)
    ground.restart()
    ground.run(60)
    assert [(n.stage, n.key) for n in ground.notices()] == [("opened", "stuck_agent:a")] * 2


def test_a_crash_right_after_telling_does_not_change_how_it_is_told() -> None:
    """What was told alone must be resolved alone, though after the crash it is one of many."""
    ground = Ground(pacing=Pacing(repeat_every=0))
    ground.fall(["a"])
    ground.run(5)
    assert ground.stages() == ["opened"]
    ground.restart()
    ground.fall(["b", "c", "d"])
    ground.run(60)
    ground.heal(["a", "b", "c", "d"])
    ground.run(60)
    assert ground.open_at() == set()
    assert {n.key for n in ground.notices()} == {"stuck_agent:a", "stuck_agent@fleet"}


def test_a_resolution_that_was_not_told_is_told() -> None:
    ground = Ground()
    ground.fall(["a"])
    ground.run(60)
    ground.broken = {"ops": lambda _: AdapterError("away")}
    ground.heal(["a"])
    ground.run(60)
    ground.keep()
    ground.broken = {}
    ground.restart()
    ground.run(60)
    assert ground.stages() == ["opened", "resolved"]
    ground.keep()
    assert {kind for kind, _ in ground.rows} <= {"alerting", "outlet"}, "nothing is left to remember"


def test_a_group_is_still_a_group() -> None:
    ground = Ground(pacing=Pacing(repeat_every=0))
    names = [f"a-{n}" for n in range(50)]
    ground.fleet.agents |= dict.fromkeys(names, AlertSubject(host="ws-1"))
    ground.fall(names)
    ground.run(60)
    ground.keep()
    ground.restart()
    ground.fleet.agents["late"] = AlertSubject(host="ws-1")
    ground.fall(["late"])
    ground.heal(names)
    ground.run(60)
    ground.heal(["late"])
    ground.run(60)
    assert [(n.stage, n.group) for n in ground.notices()] == [
        ("opened", "host ws-1"),
        ("worse", "host ws-1"),
        ("resolved", "host ws-1"),
    ]


def test_the_rate_holds_over_a_restart() -> None:
    ground = Ground(Rules({"ops": Rate(per_minute=3, gap=1)}, pacing=Pacing(group_from=100)))
    ground.fall(f"a-{n}" for n in range(20))
    for _ in range(20):
        ground.run(10)
        ground.keep()
        ground.restart()
    tried = ground.tried["ops"]
    assert min(b - a for a, b in zip(tried, tried[3:], strict=False)) >= 60


def test_silences_that_people_made_are_remembered() -> None:
    ground = Ground()
    ground.alerting.silence(Silence("s-1", Matcher(agents=("a",)), ground.now + 3600, "ada", "why not"))
    ground.keep()
    ground.restart()
    ground.fall(["a"])
    ground.run(600)
    assert ground.told == []
    assert [silence.by for silence in ground.alerting.silences()] == ["ada"]


def test_a_channel_that_is_not_configured_any_more_is_forgotten() -> None:
    ground = Ground(Rules({"old": Rate(), "ops": Rate()}))
    ground.fall(["a"])
    ground.run(60)
    ground.keep()
    ground.restart(Rules({"ops": Rate(), "new": Rate()}))
    ground.run(60)
    assert ground.stages("ops") == ["opened"]
    assert ground.stages("new") == ["opened"], "who is new is told what is open"
    ground.keep()
    assert not any(key.startswith("old\n") for kind, key in ground.rows if kind == "notice")


def test_what_a_hub_says_of_itself_the_next_one_has_to_say_anew() -> None:
    ground = Ground()
    ground.said("HUB_BUS_LOST", kept=False)
    ground.run(60)
    ground.keep()
    ground.restart()
    ground.run(60)
    assert ground.stages() == ["opened", "resolved"]


def test_a_bus_that_is_still_lost_after_a_restart_is_no_news() -> None:
    ground = Ground(pacing=Pacing(repeat_every=0))
    ground.said("HUB_BUS_LOST", kept=False)
    ground.run(60)
    ground.keep()
    ground.restart()
    ground.run(2)
    ground.said("HUB_BUS_LOST", kept=False)
    ground.run(600)
    assert ground.stages() == ["opened"]


def test_an_event_that_was_looked_at_is_not_looked_at_again() -> None:
    ground = Ground()
    ground.happen(e.NeedsHuman(ground.now, "a", "waiting_for_human", "may I?"))
    ground.run(1)
    ground.keep()
    ground.restart()
    ground.last_event = 0
    ground.happen(e.NeedsHuman(ground.now, "a", "waiting_for_human", "may I?"))
    ground.run(600)
    assert ground.stages() == ["opened"]
    assert ground.alerting.cursor == 1


def test_rows_nobody_can_read_are_passed_over() -> None:
    ground = Ground()
    ground.flip("a", Health.STUCK)
    ground.run(60)
    ground.keep()
    ground.rows["alert", "x"] = b"\xc1"
    ground.rows["notice", "y"] = b"\x93\x01\x02\x03"
    ground.rows["agent", "a"] = b"somebody else's"
    ground.restart()
    ground.run(60)
    assert ground.stages() == ["opened"]
    assert Ground().alerting.recall([Belief("alerting", "", b"\xc0")], ground.now) is False
