"""Two lives of one agent at once: one of them is one too many, and it is known which."""

import pytest

from lifesigns.core.effects import Intervention, NeedsHuman, Respawn, Rung, Stage, StopStranger, Terminate
from lifesigns.core.health import Health, Phase
from lifesigns.core.policy import HOUR, MINUTE, Policy
from lifesigns.core.profiles import profile
from lifesigns.core.signals import (
    AgentLeft,
    AgentRegistered,
    ProcessExited,
    RecoveryRequested,
    RespawnFailed,
    RespawnStarted,
    TerminationDone,
    TerminationRequested,
)
from tests.core.harness import START, Watch

SLOW = Policy().with_changes({"respawn": {"jitter": 0.0, "per_hour_max": 20, "crash_loop_max": 20}})


def crashed(policy: Policy = SLOW) -> Watch:
    """Its process ended: a start is ordered at once."""
    watch = Watch(policy)
    watch.beat("b")
    watch.beat(incarnation="i-1", task_id="t")
    watch.hear(ProcessExited(agent_id="a", incarnation="i-1", status=1))
    return watch


def started_twice(policy: Policy = SLOW) -> tuple[Watch, str, str]:
    """The first start was not heard in time, and a second one is ordered."""
    watch = crashed(policy)
    watch.live(START + 7 * MINUTE, "b")
    first, second = (order.new_incarnation for order in watch.orders(Respawn, "a"))
    return watch, first, second


def phase(watch: Watch) -> Phase:
    return watch.engine.beliefs.lineages["a"].phase


def stopped(watch: Watch) -> list[str]:
    return [order.retired for order in watch.orders(StopStranger)]


def stages(watch: Watch) -> list[tuple[str, Stage]]:
    """What is on record of each start, in order."""
    number = {order.order_id: f"start {n}" for n, order in enumerate(watch.orders(Respawn, "a"), 1)}
    return [(number[f.id], f.stage) for f in watch.facts(Intervention, "a") if f.rung is Rung.RESPAWN]


def told(watch: Watch, agent_id: str = "a") -> list[str]:
    return [fact.reason for fact in watch.facts(NeedsHuman, agent_id)]


# --- started twice -----------------------------------------------------------------------------------------


def test_a_second_start_names_the_first_which_may_still_come() -> None:
    watch, first, _ = started_twice()
    assert [order.instead_of for order in watch.orders(Respawn, "a")] == [(), (first,)]


def test_a_start_that_failed_for_certain_is_not_named() -> None:
    watch = crashed()
    (order,) = watch.orders(Respawn, "a")
    watch.hear(RespawnFailed(agent_id="a", order_id=order.order_id, reason="no image"))
    watch.live(START + 2 * MINUTE, "b")
    assert [order.instead_of for order in watch.orders(Respawn, "a")] == [(), ()]


def test_a_start_that_comes_late_is_the_agent_and_the_second_is_stopped() -> None:
    watch, first, second = started_twice()
    watch.beat(incarnation=first, seq=1)
    assert (watch.health(), phase(watch)) == (Health.HEALTHY, Phase.PROBATION)
    watch.hear(AgentRegistered(agent_id="a", incarnation=second))
    watch.beat(incarnation=second, seq=1)
    assert not stopped(watch), "the first has not been heard beside it yet"
    watch.beat(incarnation=first, seq=2, at=watch.now + 5)
    watch.beat(incarnation=second, seq=2)
    watch.beat(incarnation=second, seq=3, at=watch.now + 5)
    assert stopped(watch) == [second]
    assert (watch.agent().incarnation, watch.health()) == (first, Health.HEALTHY)
    assert stages(watch) == [
        ("start 1", Stage.ORDERED),
        ("start 1", Stage.FAILED),
        ("start 2", Stage.ORDERED),
        ("start 2", Stage.DROPPED),
        ("start 1", Stage.DONE),
    ]


def test_the_second_that_does_not_listen_is_told_again() -> None:
    watch, first, second = started_twice()
    for n in range(1, 50):
        watch.beat(incarnation=first, seq=n, at=watch.now + 5)
        watch.beat(incarnation=second, seq=n)
    assert stopped(watch) == [second] * 4


def test_if_the_second_comes_first_the_first_is_stopped() -> None:
    watch, first, second = started_twice()
    for n in range(1, 4):
        watch.beat(incarnation=second, seq=n, at=watch.now + 5)
        watch.beat(incarnation=first, seq=n)
    assert (watch.agent().incarnation, stopped(watch)) == (second, [first])


def test_a_late_start_while_the_next_one_waits_for_its_turn_needs_no_next_one() -> None:
    watch = crashed()
    watch.live(START + 5 * MINUTE + 30, "b")
    (order,) = watch.orders(Respawn, "a")
    assert phase(watch) is Phase.WAITING
    watch.beat(incarnation=order.new_incarnation, seq=1)
    assert phase(watch) is Phase.PROBATION
    watch.live(START + HOUR, incarnation=order.new_incarnation)
    assert len(watch.orders(Respawn, "a")) == 1


def test_a_late_start_after_people_were_asked_is_recovered() -> None:
    watch = crashed()
    watch.live(START + 30 * MINUTE, "b")
    assert phase(watch) is Phase.REVIEW
    watch.beat(incarnation=watch.orders(Respawn, "a")[0].new_incarnation, seq=1)
    assert (watch.health(), phase(watch)) == (Health.HEALTHY, Phase.PROBATION)


def test_the_second_is_welcome_if_the_first_dies_as_it_comes() -> None:
    """It is not stopped for the sake of one that is never heard again, and takes its place when that is doubted."""
    watch, first, second = started_twice()
    watch.beat(incarnation=first, seq=1)
    for n in range(1, 13):
        watch.beat(incarnation=second, seq=n, at=watch.now + 5)
    assert not stopped(watch)
    assert (watch.agent().incarnation, watch.health()) == (second, Health.HEALTHY)


def test_the_second_is_welcome_if_the_end_of_the_first_is_known() -> None:
    watch, first, second = started_twice()
    watch.beat(incarnation=first, seq=1)
    watch.hear(ProcessExited(agent_id="a", incarnation=first, status=1))
    watch.beat(incarnation=second, seq=1)
    assert (watch.agent().incarnation, watch.health()) == (second, Health.HEALTHY)


def test_lives_that_name_themselves_are_one_when_both_have_come() -> None:
    """The command starts a service that knows nothing of the incarnation it was given: the newer one stays."""
    watch, _, _ = started_twice()
    watch.beat(incarnation="own-1", seq=1)
    watch.beat(incarnation="own-2", seq=1, at=watch.now + 5)
    watch.beat(incarnation="own-1", seq=2, at=watch.now + 5)
    assert (watch.agent().incarnation, stopped(watch)) == ("own-2", ["own-1"])


def test_after_the_close_watch_a_new_life_is_nobodys_second() -> None:
    """A user restarts an agent by hand: the old one may take its time to end."""
    watch, _, _ = started_twice()
    watch.beat(incarnation="own-1", seq=1)
    watch.live(watch.now + 20 * MINUTE, incarnation="own-1")
    assert phase(watch) is Phase.IDLE
    watch.beat(incarnation="own-2", seq=1)
    watch.beat(incarnation="own-1", seq=1000)
    assert not stopped(watch)


def test_an_agent_that_is_back_by_itself_stays_and_its_successor_is_stopped() -> None:
    """It was only cut off, and somebody could not wait."""
    watch = lost(respawned=True)
    new = watch.orders(Respawn, "a")[0].new_incarnation
    watch.beat(incarnation="i-1", seq=100)
    assert (watch.health(), phase(watch)) == (Health.HEALTHY, Phase.IDLE)
    for n in range(1, 4):
        watch.beat(incarnation=new, seq=n, at=watch.now + 5)
        watch.beat(incarnation="i-1", seq=100 + n)
    assert (watch.agent().incarnation, stopped(watch)) == ("i-1", [new])
    watch.live(watch.now + HOUR, "a", "b", incarnation="i-1")
    assert len(watch.orders(Respawn, "a")) == 1


# --- lost ----------------------------------------------------------------------------------------------------


def lost(*, respawned: bool = False, host: str = "shared", life: str | None = "i-1") -> Watch:
    """Nothing is heard of it, people are asked and do not answer, and nobody ends it."""
    watch = Watch(SLOW)
    watch.beat("b", incarnation="i-1", host="shared")
    watch.beat("a", incarnation=life, host=host)
    watch.live(START + MINUTE, "a", "b", incarnation=life)
    while not (watch.orders(Respawn, "a") if respawned else watch.orders(Terminate, "a")):
        watch.live(watch.now + MINUTE, "b", incarnation="i-1")
        assert watch.now < START + HOUR
    return watch


def test_a_crash_known_only_by_silence_gets_a_successor_when_nobody_could_end_it() -> None:
    watch = lost()
    assert not watch.orders(Respawn, "a")
    watch.live(watch.now + 5 * MINUTE, "b", incarnation="i-1")
    assert len(watch.orders(Terminate, "a")) == 3
    (order,) = watch.orders(Respawn, "a")
    assert "Nobody could end it" in order.handoff
    assert "cannot stop" in told(watch)


@pytest.mark.parametrize("late", ["before", "after"])
def test_the_successor_of_an_agent_that_never_named_its_life_is_not_ended_in_its_place(late: str) -> None:
    """Its first beat names a life that we started: it is the successor, and not the old one that has named itself. What is
    reported late of the end of the old one is about that one."""
    watch = lost(respawned=True, life=None)
    (order,) = watch.orders(Respawn, "a")
    ended = TerminationDone(agent_id="a", order_id=watch.orders(Terminate, "a")[0].order_id)
    if late == "before":
        watch.hear(ended)
    watch.beat(incarnation=watch.orders(Respawn, "a")[-1].new_incarnation, seq=1)
    if late == "after":
        watch.hear(ended)
    watch.live(watch.now + MINUTE, "a", "b", incarnation=watch.agent().incarnation)
    assert (watch.health(), phase(watch)) == (Health.HEALTHY, Phase.PROBATION)
    assert watch.orders(Respawn, "a") == [order]
    watch.beat(incarnation=order.new_incarnation, seq=1)
    assert (watch.health(), phase(watch), watch.agent().case) == (Health.HEALTHY, Phase.PROBATION, None)


def test_who_comes_back_before_that_gets_no_successor() -> None:
    watch = lost()
    watch.live(watch.now + HOUR, "a", "b", incarnation="i-1")
    assert watch.health() is Health.HEALTHY
    assert not watch.orders(Respawn, "a")


def test_who_was_cut_off_with_the_others_gets_no_successor() -> None:
    """A partition is never a reason to replace an agent."""
    watch = Watch(SLOW)
    names = [f"w-{n}" for n in range(4)]
    watch.live(START + MINUTE, "b")
    watch.live(START + 2 * MINUTE, *names, "b", host="far")
    watch.live(START + 3 * HOUR, "b")
    assert {watch.health(name) for name in names} == {Health.DISCONNECTED}
    assert not watch.orders(Respawn)


@pytest.mark.parametrize("host", ["laptop", ""])
def test_who_may_be_asleep_with_its_host_is_replaced_only_on_a_persons_word(host: str) -> None:
    """It may be well, and work on: a successor would be a second one, and the first be stopped when it comes back."""
    watch = lost(host=host)
    watch.live(watch.now + HOUR, "b", incarnation="i-1")
    assert not watch.orders(Respawn, "a")
    assert told(watch)[-1] == "review"
    assert "may be asleep or cut off" in watch.facts(NeedsHuman, "a")[-1].text
    watch.hear(RecoveryRequested(agent_id="a", by="ann", task_id=""))
    watch.live(watch.now + MINUTE, "b", incarnation="i-1")
    assert len(watch.orders(Respawn, "a")) == 1


def test_who_wakes_up_with_its_host_lives_on_and_its_next_crash_is_no_persons_matter() -> None:
    watch = lost(host="laptop")
    watch.live(watch.now + HOUR, "b", incarnation="i-1")
    watch.live(watch.now + HOUR, "a", "b", incarnation="i-1")
    assert (watch.health(), phase(watch)) == (Health.HEALTHY, Phase.IDLE)
    assert not watch.orders(Respawn, "a")
    assert not stopped(watch)
    watch.hear(ProcessExited(agent_id="a", incarnation="i-1", status=1))
    watch.live(watch.now + MINUTE, "b", incarnation="i-1")
    assert len(watch.orders(Respawn, "a")) == 1


def test_who_was_last_heard_on_its_host_before_we_slept_shows_no_host_that_is_there() -> None:
    """The host may have been cut off meanwhile: nobody has found that out yet."""
    usual = lost()
    usual.live(usual.now + 5 * MINUTE, "b", incarnation="i-1")
    (order,) = usual.orders(Respawn, "a")
    watch = lost()
    watch.live(order.at - 20, "b", incarnation="i-1")
    watch.jump_to(watch.now + 5 * MINUTE)
    watch.run_until(watch.now + 2 * MINUTE)
    assert not watch.orders(Respawn, "a")
    assert "may be asleep or cut off" in watch.facts(NeedsHuman, "a")[-1].text


def test_if_its_host_falls_silent_too_it_is_not_started_a_second_time() -> None:
    watch = lost(respawned=True)
    watch.live(watch.now + 20 * MINUTE, "c", host="elsewhere")
    assert watch.health("b") is Health.DISCONNECTED
    assert (len(watch.orders(Respawn, "a")), phase(watch)) == (1, Phase.REVIEW)


def test_when_its_end_is_known_after_all_nobody_need_be_asked() -> None:
    """The host is back, and its supervisor tells that the agent had died there."""
    watch = lost(host="laptop")
    watch.live(watch.now + 10 * MINUTE, "b", incarnation="i-1")
    assert phase(watch) is Phase.REVIEW
    watch.hear(ProcessExited(agent_id="a", incarnation="i-1", status=1))
    watch.live(watch.now + MINUTE, "b", incarnation="i-1")
    assert len(watch.orders(Respawn, "a")) == 1


def test_on_our_own_host_nobody_is_asleep_or_cut_off() -> None:
    watch = lost(host="ours")
    watch.engine.lives_on("ours")
    watch.live(watch.now + 5 * MINUTE, "b", incarnation="i-1")
    assert len(watch.orders(Respawn, "a")) == 1


def test_who_comes_back_after_its_successor_has_spoken_is_the_stranger() -> None:
    """There is one life, and it is known which: the one that was given the work, and the other is told to stop."""
    watch = lost(respawned=True)
    new = watch.orders(Respawn, "a")[0].new_incarnation
    watch.live(watch.now + 5 * MINUTE, "a", "b", incarnation=new)
    for n in range(1, 4):
        watch.beat(incarnation="i-1", seq=1000 + n, at=watch.now + 5)
        watch.beat(incarnation=new, seq=1000 + n)
    assert (watch.agent().incarnation, watch.health(), stopped(watch)) == (new, Health.HEALTHY, ["i-1"])


# --- ended in order to be started anew -------------------------------------------------------------------------


def test_a_termination_with_respawn_under_close_watch_has_a_successor() -> None:
    """Who wanted it has looked at it: that is no failure of the new life."""
    watch = crashed()
    first = watch.orders(Respawn, "a")[0].new_incarnation
    watch.beat(incarnation=first, seq=1)
    watch.live(watch.now + MINUTE, incarnation=first)
    assert phase(watch) is Phase.PROBATION
    watch.hear(TerminationRequested(agent_id="a", by="ann", respawn=True))
    (order,) = watch.orders(Terminate, "a")
    watch.hear(TerminationDone(agent_id="a", order_id=order.order_id))
    watch.live(watch.now + 2 * MINUTE, "b")
    assert len(watch.orders(Respawn, "a")) == 2
    assert not told(watch)


def test_even_then_the_limits_hold() -> None:
    watch = crashed(Policy().with_changes({"respawn": {"jitter": 0.0, "per_task_max": 1}}))
    first = watch.orders(Respawn, "a")[0].new_incarnation
    watch.beat(incarnation=first, seq=1)
    watch.hear(TerminationRequested(agent_id="a", by="ann", respawn=True))
    watch.hear(TerminationDone(agent_id="a", order_id=watch.orders(Terminate, "a")[0].order_id))
    watch.live(watch.now + 2 * MINUTE, "b")
    assert len(watch.orders(Respawn, "a")) == 1
    assert told(watch) == ["review"]


# --- a supervisor that is gone -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("answers", "gone"), [(True, False), (False, True)])
def test_a_supervisor_that_leaves_a_start_unanswered_is_gone(answers: bool, gone: bool) -> None:
    watch = crashed()
    (order,) = watch.orders(Respawn, "a")
    if answers:
        watch.hear(RespawnStarted(agent_id="a", order_id=order.order_id))
    watch.live(START + 7 * MINUTE, "b")
    assert watch.engine.beliefs.lineages["a"].supervisor_gone is gone


def test_a_supervisor_that_ended_nobody_in_three_orders_is_gone_and_may_be_back_with_its_agent() -> None:
    """A start is not offered to it first: that would be waited for in vain, for five minutes."""
    watch = lost(respawned=True)
    lineage = watch.engine.beliefs.lineages["a"]
    assert lineage.supervisor_gone
    watch.beat(incarnation="i-1", seq=100)
    assert (watch.health(), lineage.supervisor_gone) == (Health.HEALTHY, False)


def test_an_orphan_says_that_its_supervisor_is_gone_and_its_next_life_has_one_again() -> None:
    watch = Watch(SLOW)
    watch.beat(incarnation="i-1")
    watch.hear(
        ProcessExited(agent_id="a", incarnation="i-1", detail="Its supervisor was killed.", orphaned=True)
    )
    watch.run_until(START + 20)
    lineage = watch.engine.beliefs.lineages["a"]
    assert lineage.supervisor_gone
    watch.beat(incarnation=watch.orders(Respawn, "a")[0].new_incarnation, seq=1)
    assert not lineage.supervisor_gone


# --- one id on two hosts ---------------------------------------------------------------------------------------


def two_hosts() -> Watch:
    """The same id was given to two agents."""
    watch = Watch()
    watch.live(START + MINUTE, "a", "b", incarnation="old", host="h-1")
    return watch


def both(watch: Watch, count: int, *, old_from: int = 100, new_from: int = 0) -> None:
    for n in range(1, count + 1):
        watch.beat(incarnation="new", seq=new_from + n, host="h-2", at=watch.now + 5)
        watch.beat(incarnation="old", seq=old_from + n, host="h-1")
        watch.beat("b", incarnation="old", host="h-1")


def test_one_id_twice_is_told_once() -> None:
    watch = two_hosts()
    both(watch, 60)
    assert told(watch) == ["one id twice"]
    text = watch.facts(NeedsHuman)[0].text
    assert "new on h-2" in text
    assert "old" in text
    assert not stopped(watch), "nobody knows which one is right"


def test_an_old_life_that_takes_its_time_to_end_is_no_second() -> None:
    """A rolling restart: the new one is there before the old one has drained."""
    watch = two_hosts()
    both(watch, 5)
    watch.live(watch.now + 10 * MINUTE, "a", "b", incarnation="new")
    assert not told(watch)


def test_an_old_life_that_drains_for_half_a_minute_does_not_come_back_when_the_new_one_leaves() -> None:
    """However short its timeout is: an agent that had ended well was revived, missed and replaced."""
    watch = Watch(profile("swift"))
    watch.live(START + MINUTE, incarnation="old", every=1.0)
    for n in range(1, 56):
        watch.beat(incarnation="new", seq=n, at=watch.now + 1)
        watch.beat(incarnation="old", seq=100 + n)
    watch.hear(AgentLeft(agent_id="a", incarnation="new", reason="done"))
    watch.beat(incarnation="old", seq=156, at=watch.now + 1)
    assert watch.health() is Health.TERMINATED
    watch.run_until(watch.now + HOUR)
    assert not watch.orders(Respawn, "a")


def test_what_a_bus_delivers_again_and_again_is_no_second() -> None:
    watch = two_hosts()
    for n in range(1, 100):
        watch.beat(incarnation="new", seq=n, host="h-2", at=watch.now + 5)
        watch.beat(incarnation="old", seq=3, host="h-1")
    assert not told(watch)


def test_when_the_newer_one_is_gone_the_older_one_is_the_agent() -> None:
    watch = two_hosts()
    both(watch, 30)
    for n in range(1, 60):
        watch.beat(incarnation="old", seq=200 + n, host="h-1", at=watch.now + 5)
        watch.beat("b", incarnation="old", host="h-1")
    assert (watch.agent().incarnation, watch.health()) == ("old", Health.HEALTHY)
    assert not watch.orders(Terminate, "a")


def test_when_the_newer_one_crashed_the_older_one_is_the_agent_and_nobody_is_started_for_good() -> None:
    watch = two_hosts()
    both(watch, 30)
    watch.hear(ProcessExited(agent_id="a", incarnation="new", status=1))
    for n in range(1, 200):
        watch.beat(incarnation="old", seq=200 + n, host="h-1", at=watch.now + 5)
    assert (watch.agent().incarnation, watch.health()) == ("old", Health.HEALTHY)
    assert phase(watch) is Phase.IDLE
    assert len(watch.orders(Respawn, "a")) <= 1


def test_late_beats_of_a_replaced_life_do_not_bring_it_back() -> None:
    """They come out of a bus that was away, all at once, after the newer life has crashed."""
    watch = two_hosts()
    watch.beat(incarnation="new", seq=1)
    watch.hear(ProcessExited(agent_id="a", incarnation="new", status=1))
    for n in range(1, 50):
        watch.beat(incarnation="old", seq=100 + n)
    assert watch.agent().incarnation == "new"
    assert len(watch.orders(Respawn, "a")) == 1
