"""When people are told, and when they are left in peace."""

import itertools

import pytest

from lifesigns.core import effects as e
from lifesigns.core.health import Cause, FailureClass, Health
from lifesigns.errors import AdapterError
from lifesigns.hub.alerting.alerts import LAPSE_AFTER, OPEN_MAX, Ack
from lifesigns.hub.alerting.rules import Pacing, Rate, Rules
from lifesigns.ports import NotDelivered, NoticeSeverity, NoticeStage
from tests.hub.alerting.ground import Ground


def test_an_agent_that_is_lost_is_told_and_told_again_when_it_is_well() -> None:
    ground = Ground()
    ground.flip("coder-7", Health.DISCONNECTED, cause=Cause.CRASH)
    ground.run(10)
    (opened,) = ground.notices()
    assert (opened.stage, opened.key, opened.kind) == ("opened", "stuck_agent:coder-7", "stuck_agent")
    assert opened.title == "coder-7 is disconnected (crash)"
    assert (opened.agents, opened.count, opened.severity) == (("coder-7",), 1, "warning")
    ground.run(600)
    ground.heal(["coder-7"])
    ground.run(10)
    assert ground.stages() == ["opened", "resolved"]
    assert ground.notices()[1].title == "Resolved: coder-7 is disconnected (crash), after 10 min"
    assert ground.notices()[1].text == "coder-7 is healthy again"


@pytest.mark.parametrize(("lasts", "told"), [(4.9, []), (5.1, ["opened", "resolved"])])
def test_what_passes_within_the_hold_rings_for_nobody(lasts: float, told: list[str]) -> None:
    ground = Ground()
    ground.fall(["a"])
    ground.run(lasts)
    ground.heal(["a"])
    ground.run(60)
    assert ground.stages() == told


def test_one_that_flaps_all_the_time_is_told_once_and_resolved_once_it_is_calm() -> None:
    ground = Ground()
    for _ in range(100):
        ground.fall(["a"])
        ground.run(2)
        ground.heal(["a"])
        ground.run(2)
    ground.run(60)
    assert ground.stages() == ["opened", "resolved"]


def test_who_needs_a_human_is_told_at_once() -> None:
    """Twenty times a day somebody waits half an hour for a permission nobody knew was asked for."""
    ground = Ground()
    ground.happen(e.NeedsHuman(ground.now, "a", "waiting_for_human", "a waits for a human: may I grep?"))
    ground.run(0)
    (notice,) = ground.notices()
    assert (notice.title, notice.text) == ("a waits for a human", "a waits for a human: may I grep?")


def test_a_second_question_is_told_although_the_first_is_still_open() -> None:
    ground = Ground()
    for question in ("one?", "two?"):
        ground.happen(e.NeedsHuman(ground.now, "a", "waiting_for_human", question))
        ground.run(40)
    assert [(n.stage, n.text) for n in ground.notices()] == [("opened", "one?"), ("worse", "two?")]


def test_a_wait_that_is_over_is_resolved_although_no_event_says_so() -> None:
    ground = Ground()
    ground.happen(e.NeedsHuman(ground.now, "a", "waiting_for_human", "may I?"))
    ground.run(60)
    ground.fleet.finished["needs_human:a:waiting_for_human"] = "a does not wait any more"
    ground.run(30)
    assert ground.stages() == ["opened", "resolved"]


def test_what_gets_worse_is_told_but_not_all_the_time() -> None:
    ground = Ground()
    ground.flip("a", Health.STUCK)
    ground.run(6)
    ground.flip("a", Health.DISCONNECTED, Health.STUCK)
    ground.run(20)
    assert ground.stages() == ["opened"]
    ground.run(20)
    assert [(n.stage, n.title) for n in ground.notices()][1:] == [("worse", "a is disconnected")]
    ground.flip("a", Health.STUCK, Health.DISCONNECTED)
    ground.run(600)
    assert ground.stages() == ["opened", "worse"], "better is no news"


def test_it_is_repeated_while_it_lasts() -> None:
    ground = Ground(pacing=Pacing(repeat_every=600))
    ground.fall(["a"])
    ground.run(1900)
    assert ground.stages() == ["opened", "reminder", "reminder", "reminder"]
    assert ground.notices()[1].title == "Still, for 10 min: a is disconnected"
    ground.heal(["a"])
    ground.run(10_000)
    assert ground.stages()[-1] == "resolved"
    assert len(ground.told) == 5


def test_it_is_not_repeated_where_nobody_wants_that() -> None:
    ground = Ground(pacing=Pacing(repeat_every=0))
    ground.fall(["a"])
    ground.run(86400)
    assert ground.stages() == ["opened"]


def test_an_acknowledged_alert_reminds_nobody_until_it_is_worse() -> None:
    ground = Ground(pacing=Pacing(repeat_every=600))
    ground.flip("a", Health.STUCK)
    ground.run(10)
    assert ground.alerting.acknowledge("stuck_agent:a", Ack("ada", ground.now))
    ground.run(3600)
    assert [(n.stage, n.text) for n in ground.notices()][1:] == [("acknowledged", "by ada")]
    ground.flip("a", Health.DISCONNECTED, Health.STUCK)
    ground.run(700)
    assert ground.stages() == ["opened", "acknowledged", "worse", "reminder"]
    assert not ground.alerting.acknowledge("stuck_agent:nobody", Ack("ada", ground.now))


def test_what_no_event_ever_ends_lapses() -> None:
    ground = Ground(pacing=Pacing(repeat_every=0))
    ground.happen(e.NeedsHuman(ground.now, "a", "task_failed", "t-1 has failed"))
    ground.run(LAPSE_AFTER - 1)
    assert ground.stages() == ["opened"]
    ground.run(60)
    assert ground.stages() == ["opened", "resolved"]
    assert "nothing more was heard" in ground.notices()[1].text


def test_never_more_than_the_rate_is_told_and_the_loudest_first() -> None:
    ground = Ground(Rules({"ops": Rate(per_minute=5, gap=2)}, pacing=Pacing(group_from=1000)))
    ground.fall(f"a-{n}" for n in range(30))
    ground.happen(e.Recovery(ground.now, "z", "t", e.Recovered.FAILED, 3, None, "gone"))
    ground.run(600)
    tried = ground.tried["ops"]
    assert len(ground.told) == 31
    assert ground.notices()[0].kind == "recovery_failed"
    assert min(b - a for a, b in itertools.pairwise(tried)) >= 2
    assert min(b - a for a, b in zip(tried, tried[5:], strict=False)) >= 60


# --- channels that fail ------------------------------------------------------------------------------------


def test_a_channel_that_is_down_loses_nothing_and_holds_up_nobody() -> None:
    ground = Ground(Rules({"slack": Rate(), "mail": Rate()}))
    ground.broken = {"slack": lambda _: AdapterError("away")}
    ground.fall(["a"])
    ground.run(60)
    assert ground.stages("mail") == ["opened"]
    assert ground.stages("slack") == []
    ground.broken = {}
    ground.run(600)
    assert ground.stages("slack") == ["opened"]


def test_what_came_and_went_while_a_channel_was_down_is_said_once() -> None:
    ground = Ground()
    ground.broken = {"ops": lambda _: AdapterError("away")}
    ground.fall(["a", "b"])
    ground.run(60)
    ground.heal(["a", "b"])
    ground.run(60)
    ground.fall(["c"])
    ground.run(600)
    ground.broken = {}
    ground.run(6000)
    assert [n.title for n in ground.notices()][:2] == [
        "c is disconnected",
        "2 alerts were opened and resolved before anybody could be told here",
    ]
    assert len([n for n in ground.notices() if n.kind == "missed"]) == 1


def test_it_is_tried_again_ever_more_rarely_but_for_ever() -> None:
    ground = Ground(pacing=Pacing(repeat_every=0))
    ground.broken = {"ops": lambda _: AdapterError("away")}
    ground.fall(["a"])
    ground.run(86400)
    tried = ground.tried["ops"]
    waits = [b - a for a, b in itertools.pairwise(tried)]
    assert waits[:4] == [1, 2, 4, 8]
    assert max(waits) <= 300
    assert 86400 / 300 <= len(tried) <= 86400 / 300 + 20


def test_a_channel_is_asked_again_when_it_said() -> None:
    ground = Ground()
    ground.broken = {"ops": lambda _: NotDelivered("slow down", retry_after=42)}
    ground.fall(["a"])
    ground.run(90)
    tried = ground.tried["ops"]
    assert [b - a for a, b in itertools.pairwise(tried)] == [42, 42]


def test_a_notice_that_is_refused_for_good_lets_the_others_pass() -> None:
    """It may be this one's fault: a text the server does not like must not silence everything behind it."""
    ground = Ground(pacing=Pacing(group_from=100))
    ground.broken = {
        "ops": lambda notice: NotDelivered("bad text", transient=False) if notice.key.endswith("a") else None
    }
    ground.fall(["a", "b", "c"])
    ground.run(60)
    assert {n.key for n in ground.notices()} == {"stuck_agent:b", "stuck_agent:c"}
    ground.broken = {}
    ground.run(600)
    assert "stuck_agent:a" in {n.key for n in ground.notices()}


def test_people_are_told_by_the_others_that_a_channel_is_down() -> None:
    """A bell that is configured and does not ring is worse than none."""
    ground = Ground(Rules({"slack": Rate(), "mail": Rate()}))
    ground.broken = {"slack": lambda _: AdapterError("no_such_channel")}
    ground.fall(["a"])
    ground.run(400)
    assert [n.kind for n in ground.notices("mail")] == ["stuck_agent", "channel_down"]
    ground.broken = {}
    ground.run(600)
    assert [str(n.stage) for n in ground.notices("mail") if n.kind == "channel_down"] == [
        "opened",
        "resolved",
    ]
    assert [n.kind for n in ground.notices("slack")] == ["stuck_agent"]


def test_what_comes_again_while_the_channel_is_being_told_that_it_is_over_is_opened_anew() -> None:
    ground = Ground()
    ground.fall(["a"])
    ground.run(10)
    ground.heal(["a"])
    ground.run(4)
    ground.now += 2
    notice = ground.alerting.next("ops", ground.now)
    assert notice is not None
    assert notice.stage == "resolved"
    ground.fall(["a"])
    ground.now += 6
    ground.alerting.advance(ground.now)
    ground.alerting.delivered("ops", ground.now)
    ground.run(10)
    assert ground.stages() == ["opened", "opened"]
    ground.heal(["a"])
    ground.run(10)
    assert ground.stages()[2:] == ["resolved"]


# --- bounds ------------------------------------------------------------------------------------------------


def test_more_alerts_than_there_is_room_for_are_counted() -> None:
    ground = Ground(pacing=Pacing(repeat_every=0))
    everybody = [f"a-{n}" for n in range(OPEN_MAX + 500)]
    ground.fall(everybody)
    ground.run(60)
    assert len(ground.alerting.alerts) == OPEN_MAX + 1
    assert ground.notices()[0].count == OPEN_MAX + 500
    ground.heal(everybody)
    ground.run(60)
    assert len(ground.alerting.alerts) == 0
    assert ground.open_at() == set()


def test_a_hub_that_is_blind_says_so_and_that_it_sees_again() -> None:
    ground = Ground()
    ground.happen(e.HubVisibility(ground.now, True, "our own beat has not come back"))
    ground.happen(e.NeedsHuman(ground.now, "hub", "blind", "The hub is blind."))
    ground.run(1)
    assert [(n.kind, n.severity) for n in ground.notices()] == [("hub_blind", "critical")]
    ground.happen(e.HubVisibility(ground.now, False, "it came back"))
    ground.run(20)
    assert ground.stages() == ["opened", "resolved"]


def test_a_store_that_is_lost_is_told_although_no_store_keeps_that() -> None:
    ground = Ground()
    ground.said("HUB_STORE_LOST", b'{"reason": "disk full"}', kept=False)
    ground.run(20)
    assert [(n.kind, n.text) for n in ground.notices()] == [("hub_store_lost", "disk full")]
    ground.said("HUB_STORE_BACK")
    ground.run(20)
    assert ground.stages() == ["opened", "resolved"]


def test_a_failure_that_becomes_terminal_is_told_again_and_louder() -> None:
    """And one about which people were asked is not told twice: its failed recovery says it."""
    ground = Ground()
    ground.flip("a", Health.DISCONNECTED)
    ground.flip("b", Health.DISCONNECTED)
    ground.run(600)
    for agent_id, asked in (("a", False), ("b", True)):
        ground.happen(
            e.FailureClassified(
                ground.now, agent_id, FailureClass.RECOVERABLE, FailureClass.TERMINAL, "why", asked
            )
        )
    ground.run(600)
    told = [(notice.key, notice.stage, notice.severity) for _, _, notice in ground.told]
    assert told == [
        ("stuck_agent:a", NoticeStage.OPENED, NoticeSeverity.WARNING),
        ("stuck_agent:b", NoticeStage.OPENED, NoticeSeverity.WARNING),
        ("stuck_agent:a", NoticeStage.WORSE, NoticeSeverity.CRITICAL),
    ]
