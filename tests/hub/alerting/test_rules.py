"""Who is told of what, and what is silenced."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.errors import UsageError
from lifesigns.hub.alerting.alerting import SILENCES_MAX
from lifesigns.hub.alerting.alerts import AlertSubject
from lifesigns.hub.alerting.rules import Matcher, Rate, Route, Rules, Silence, Window
from lifesigns.ports import NoticeSeverity
from tests.hub.alerting.ground import Ground

THREE = {"slack": Rate(), "pagerduty": Rate(), "mail": Rate()}
W, E, C = NoticeSeverity.WARNING, NoticeSeverity.ERROR, NoticeSeverity.CRITICAL

SEED = {
    "stuck_agent": Route(("slack", "pagerduty"), severity=W),
    "circuit_breaker_open": Route(("slack",), severity=W),
    "recovery_failed": Route(("slack", "pagerduty"), severity=C),
}


def told(ground: Ground) -> dict[str, str]:
    ground.run(20)
    return {channel: str(notice.severity) for channel, _, notice in ground.told}


def test_the_tree_of_the_seed_says_who_is_told_and_how_loudly() -> None:
    ground = Ground(Rules(THREE, by_kind=SEED))
    ground.fall(["a"])
    assert told(ground) == {"slack": "warning", "pagerduty": "warning"}
    ground = Ground(Rules(THREE, by_kind=SEED))
    ground.happen(e.Recovery(ground.now, "a", "t", e.Recovered.FAILED, 3))
    assert told(ground) == {"slack": "critical", "pagerduty": "critical"}


def test_what_no_rule_names_goes_to_everybody() -> None:
    ground = Ground(Rules(THREE, by_kind=SEED))
    ground.happen(e.NeedsHuman(ground.now, "a", "waiting_for_human", "may I?"))
    assert told(ground) == {"slack": "warning", "pagerduty": "warning", "mail": "warning"}


def test_a_channel_that_is_not_there_is_told_nothing() -> None:
    ground = Ground(Rules({"slack": Rate()}, by_kind=SEED))
    ground.fall(["a"])
    assert told(ground) == {"slack": "warning"}


def test_who_has_none_of_the_channels_named_for_a_kind_is_told_by_what_there_is() -> None:
    ground = Ground(Rules({"mail": Rate()}, by_kind=SEED))
    ground.fall(["a"])
    assert told(ground) == {"mail": "warning"}


def test_the_first_route_that_fits_decides() -> None:
    routes = [
        Route(("mail",), Matcher(agents=("night-*",))),
        Route((), Matcher(kinds=("stuck_agent",), roles=("standby",))),
        Route(("pagerduty",), Matcher(kinds=("HEALTH_STATE_CHANGED",)), severity=E),
    ]
    for agent_id, who, expected in (
        ("night-1", AlertSubject(), {"mail": "warning"}),
        ("day-1", AlertSubject(role="standby"), {}),
        ("day-2", AlertSubject(role="coder"), {"pagerduty": "error"}),
    ):
        ground = Ground(Rules(THREE, routes=routes, by_kind=SEED))
        ground.fleet.agents[agent_id] = who
        ground.fall([agent_id])
        assert told(ground) == expected


def test_a_route_may_be_for_loud_alerts_only() -> None:
    rules = Rules(THREE, routes=[Route(("pagerduty",), at_least=C), Route(("mail",))])
    ground = Ground(rules)
    ground.fall(["a"])
    assert told(ground) == {"mail": "warning"}
    ground = Ground(rules)
    ground.happen(e.Recovery(ground.now, "a", "t", e.Recovered.FAILED, 3))
    assert told(ground) == {"pagerduty": "critical"}


def test_a_route_on_needs_human_gets_everything_a_human_is_needed_for() -> None:
    ground = Ground(Rules(THREE, routes=[Route(("mail",), Matcher(kinds=("NEEDS_HUMAN",))), Route(())]))
    ground.happen(e.Brake(ground.now, "fleet", True, 5, 9))
    ground.happen(
        e.Intervention(ground.now, "a", "i-1", e.Rung.ESCALATE, e.Stage.ORDERED, 1, "stuck for 1 h")
    )
    ground.fall(["b"])
    ground.run(20)
    assert {n.kind for n in ground.notices("mail")} == {"group_braked", "escalation"}
    assert len(ground.told) == 2


# --- silences ----------------------------------------------------------------------------------------------


def test_what_is_silenced_is_told_to_nobody_but_is_on_record() -> None:
    ground = Ground()
    ground.alerting.silence(Silence("s-1", Matcher(agents=("a-*",)), ground.now + 3600, "ada", "deploying"))
    ground.fall(["a-1", "b-1"])
    ground.run(600)
    assert [n.key for n in ground.notices()] == ["stuck_agent:b-1"]
    silenced = ground.alerting.alerts.get("stuck_agent:a-1")
    assert silenced is not None
    assert silenced.silenced_by == "silenced by ada: deploying"


def test_what_still_lasts_when_the_silence_ends_is_told_then() -> None:
    ground = Ground()
    ground.alerting.silence(Silence("s-1", Matcher(), ground.now + 3600, "ada", ""))
    ground.fall(["a"])
    ground.run(3590)
    assert ground.told == []
    ground.run(30)
    assert ground.stages() == ["opened"]
    assert ground.alerting.silences() == [], "it is forgotten when it is over"


def test_a_silence_that_is_taken_back_is_over_at_once() -> None:
    ground = Ground()
    ground.alerting.silence(Silence("s-1", Matcher(kinds=("stuck_agent",)), ground.now + 3600, "ada", ""))
    ground.fall(["a"])
    ground.run(60)
    assert ground.alerting.end_silence("s-1")
    assert not ground.alerting.end_silence("s-1")
    ground.run(0)
    assert ground.stages() == ["opened"]


def test_what_was_told_before_the_silence_is_resolved_within_it() -> None:
    """Or the pager would wait for ever."""
    ground = Ground()
    ground.flip("a", Health.STUCK)
    ground.run(60)
    ground.alerting.silence(Silence("s-1", Matcher(), ground.now + 86400, "ada", ""))
    ground.flip("a", Health.DISCONNECTED, Health.STUCK)
    ground.run(8000)
    assert ground.stages() == ["opened"], "nothing more of it"
    ground.heal(["a"])
    ground.run(60)
    assert ground.stages() == ["opened", "resolved"]


def test_there_is_an_end_to_the_number_of_silences() -> None:
    ground = Ground()
    for n in range(SILENCES_MAX):
        ground.alerting.silence(Silence(f"s-{n}", Matcher(), ground.now + 60, "ada", ""))
    with pytest.raises(UsageError, match="already"):
        ground.alerting.silence(Silence("more", Matcher(), ground.now + 60, "ada", ""))


# --- maintenance -------------------------------------------------------------------------------------------

SATURDAY = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
HOUR = 3600.0


@pytest.mark.parametrize(
    ("at", "active"),
    [
        (SATURDAY + 22 * HOUR - 1, False),
        (SATURDAY + 22 * HOUR, True),
        (SATURDAY + 26 * HOUR - 1, True),
        (SATURDAY + 26 * HOUR, False),
        (SATURDAY - 2 * HOUR, False),
    ],
)
def test_a_window_lasts_over_midnight_and_no_longer(at: float, active: bool) -> None:
    window = Window("backups", Matcher(), frozenset({5}), 22 * HOUR, 4 * HOUR)
    assert window.active(at) is active


def test_a_window_is_told_by_the_clock_on_the_wall_there() -> None:
    """In Berlin it begins an hour earlier in summer, by our clock."""
    window = Window("backups", Matcher(), frozenset(range(7)), 2 * HOUR, HOUR, ZoneInfo("Europe/Berlin"))
    winter, summer = (
        datetime(2026, 12, 1, tzinfo=UTC).timestamp(),
        datetime(2026, 7, 1, tzinfo=UTC).timestamp(),
    )
    assert window.active(winter + 1.5 * HOUR)
    assert not window.active(winter + 0.5 * HOUR)
    assert window.active(summer + 0.5 * HOUR)
    assert not window.active(summer + 1.5 * HOUR)


def test_a_window_of_a_whole_week_is_always_open() -> None:
    window = Window("closed", Matcher(), frozenset({0}), 0, 7 * 24 * HOUR)
    assert all(window.active(SATURDAY + n * 6 * HOUR) for n in range(28))


def test_maintenance_silences() -> None:
    every_day = frozenset(range(7))
    ground = Ground(windows=[Window("backups", Matcher(agents=("db-*",)), every_day, 0.0, 24 * HOUR)])
    ground.fall(["db-1", "coder-1"])
    ground.run(600)
    assert [n.key for n in ground.notices()] == ["stuck_agent:coder-1"]
