"""Who takes an alert on is not reminded of it, and everybody else is told who did."""

from __future__ import annotations

from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.events import event_of
from lifesigns.hub.alerting.alerts import Ack, AlertSubject
from lifesigns.hub.alerting.reading import key_of
from lifesigns.hub.alerting.rules import Matcher, Pacing, Rate, Rules, Silence
from lifesigns.ports import Event
from tests.hub.alerting.ground import Ground

HOURLY = Pacing(repeat_every=3600)
GROUP = "stuck_agent@host ws-1"


def ack(ground: Ground, key: str, why: str = "", lasts_for: float | None = None) -> int:
    """Ada takes it on; how many alerts that are."""
    until_at = float("inf") if lasts_for is None else ground.now + lasts_for
    return len(ground.alerting.acknowledge(key, Ack("ada", ground.now, why, until_at)))


def host_down(ground: Ground, count: int = 5) -> list[str]:
    names = [f"a-{n}" for n in range(count)]
    ground.fleet.agents |= dict.fromkeys(names, AlertSubject(host="ws-1"))
    ground.fall(names)
    ground.run(10)
    return names


def test_every_channel_that_was_told_is_told_who_took_it_on_and_why() -> None:
    ground = Ground(Rules({"slack": Rate(), "pagerduty": Rate()}, pacing=HOURLY))
    ground.fall(["a"])
    ground.run(10)
    assert ack(ground, "stuck_agent:a", "looking") == 1
    ground.run(24 * 3600)
    for channel in ("slack", "pagerduty"):
        assert [(n.stage, n.key) for n in ground.notices(channel)] == [
            ("opened", "stuck_agent:a"),
            ("acknowledged", "stuck_agent:a"),
        ]
        assert ground.notices(channel)[-1].text == "by ada: looking"


def test_what_was_taken_on_is_still_resolved() -> None:
    ground = Ground(pacing=HOURLY)
    ground.fall(["a"])
    ground.run(10)
    ack(ground, "stuck_agent:a")
    ground.run(60)
    ground.heal(["a"])
    ground.run(60)
    assert ground.stages() == ["opened", "acknowledged", "resolved"]
    assert not ack(ground, "stuck_agent:a"), "it is over"


def test_it_survives_a_restart() -> None:
    """Also if the hub ends before the channel was told of it."""
    ground = Ground(pacing=HOURLY)
    ground.fall(["a"])
    ground.run(10)
    ack(ground, "stuck_agent:a", "looking")
    ground.keep()
    ground.restart()
    ground.run(1)
    assert ground.stages() == ["opened", "acknowledged"]
    ground.keep()
    ground.restart()
    ground.run(24 * 3600)
    assert ground.stages() == ["opened", "acknowledged"]


def test_who_is_not_done_in_time_is_reminded_at_once() -> None:
    ground = Ground(pacing=HOURLY)
    ground.fall(["a"])
    ground.run(10)
    ack(ground, "stuck_agent:a", lasts_for=900)
    ground.run(899)
    assert ground.stages() == ["opened", "acknowledged"]
    ground.run(60)
    assert ground.stages() == ["opened", "acknowledged", "reminder"]
    ground.run(3600)
    assert ground.stages()[3:] == ["reminder"], "and from then on as ever"
    ack(ground, "stuck_agent:a")
    ground.run(24 * 3600)
    assert ground.stages()[4:] == ["acknowledged"]


def test_a_group_is_taken_on_by_its_key_and_whoever_joins_later_is_not() -> None:
    ground = Ground(pacing=HOURLY)
    host_down(ground)
    assert ack(ground, GROUP) == 5
    ground.run(60)
    assert ground.stages() == ["opened", "acknowledged"]
    ground.fleet.agents["late"] = AlertSubject(host="ws-1")
    ground.fall(["late"])
    ground.run(3700)
    assert ground.stages()[2:] == ["worse", "reminder"]
    assert ack(ground, GROUP) == 6
    ground.run(24 * 3600)
    assert ground.stages()[4:] == ["acknowledged"]


def test_one_of_a_group_does_not_take_on_the_others() -> None:
    ground = Ground(pacing=HOURLY)
    names = host_down(ground)
    assert ack(ground, "stuck_agent:a-0") == 1
    ground.run(3700)
    assert ground.stages() == ["opened", "reminder"]
    ground.heal(names[1:])
    ground.run(60)
    assert ground.stages()[2:] == ["acknowledged"], "what is left is all taken on"


def test_what_was_taken_on_before_it_was_told_is_told_and_that_it_is_taken_on() -> None:
    ground = Ground(pacing=HOURLY)
    ground.fall(["a"])
    ground.run(1)
    assert ack(ground, "stuck_agent:a") == 1
    ground.run(60)
    assert ground.stages() == ["opened", "acknowledged"]


def test_another_question_of_the_same_agent_was_taken_on_by_nobody() -> None:
    ground = Ground(pacing=HOURLY)
    ground.happen(e.NeedsHuman(ground.now, "a", "waiting_for_human", "may I delete it?"))
    ground.run(1)
    ack(ground, "needs_human:a:waiting_for_human")
    ground.run(60)
    ground.happen(e.NeedsHuman(ground.now, "a", "waiting_for_human", "may I push it?"))
    ground.run(60)
    assert ground.stages() == ["opened", "acknowledged", "worse"]


def test_what_is_silenced_is_not_told_that_it_was_taken_on() -> None:
    ground = Ground(pacing=HOURLY)
    ground.fall(["a"])
    ground.run(10)
    ground.alerting.silence(Silence("s", Matcher(agents=("a",)), ground.now + 600, "bob", "lunch"))
    ack(ground, "stuck_agent:a")
    ground.run(300)
    assert ground.stages() == ["opened"]
    ground.run(600)
    assert ground.stages() == ["opened", "acknowledged"]


def test_an_event_leads_to_its_alert_as_long_as_that_lasts() -> None:
    ground = Ground(pacing=HOURLY)
    flip = e.Flip(ground.now, "a", Health.HEALTHY, Health.STUCK, "no checkpoint")
    ground.happen(flip)
    fell = event_of(1, flip)
    alert = ground.alerting.about(fell)
    assert alert is not None
    assert alert.key == "stuck_agent:a"
    ground.heal(["a"])
    assert ground.alerting.about(fell) is None
    ground.run(60)
    ground.fall(["a"])
    assert ground.alerting.about(fell) is None, "that was another time"


def test_what_the_engine_says_twice_leads_to_one_alert() -> None:
    def needs(who: str, reason: str) -> Event:
        return event_of(1, e.NeedsHuman(1.0, who, reason, "look"))

    assert key_of(needs("host ws-1", "mass brake")) == "group_braked:host ws-1"
    assert key_of(needs("", "blind")) == "hub_blind"
    assert key_of(needs("a", "escalation")) == "escalation:a"
    assert key_of(needs("a", "quarantined")) == key_of(needs("a", "review")) == "recovery_failed:a"
    assert key_of(needs("a", "blocked")) == "needs_human:a:blocked"
    well = e.Flip(1.0, "a", Health.STUCK, Health.HEALTHY, "progress")
    assert key_of(event_of(1, well)) == ""
