"""Orders beside the ladder: a person turns a breaker, and what a life left behind is cleaned up."""

import pytest

from lifesigns.core.agent import Agent
from lifesigns.core.effects import (
    BreakerFlip,
    CleanUp,
    Ending,
    Intervention,
    NeedsHuman,
    Refusal,
    Respawn,
    Rung,
    Stage,
    Terminate,
    TurnBreaker,
    VerifyCheckpoint,
)
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import MINUTE, FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.core.side_orders import TURN_FOR
from lifesigns.core.signals import (
    AgentLeft,
    BreakerAct,
    BreakerNotTurned,
    BreakerReported,
    BreakerState,
    BreakerTurned,
    BreakerTurnRequested,
    CheckpointSaved,
    CheckpointVerified,
    CleanedUp,
    CleanUpFailed,
    ProcessExited,
    RecoveryRequested,
    Signal,
    TerminationDone,
    TerminationRequested,
)
from tests.core.harness import Watch

CLEANUP_FOR = 5 * MINUTE


def reported(
    state: BreakerState = BreakerState.OPEN,
    *,
    name: str = "search",
    failures: int = 3,
    until: float | None = None,
) -> BreakerReported:
    return BreakerReported(
        agent_id="a", incarnation="1", name=name, state=state, failures=failures, until=until
    )


def wish(act: BreakerAct = BreakerAct.RESET, *, key: str = "", name: str = "search") -> BreakerTurnRequested:
    return BreakerTurnRequested(agent_id="a", by="ann", name=name, act=act, key=key)


def stages(watch: Watch, rung: Rung) -> list[tuple[str, Stage]]:
    return [(fact.id, fact.stage) for fact in watch.facts(Intervention) if fact.rung is rung]


@pytest.fixture
def watch() -> Watch:
    """An agent that lives and has reported an open breaker."""
    made = Watch(profile("balanced"))
    made.beat(incarnation="1")
    made.hear(reported())
    return made


# --- breakers --------------------------------------------------------------------------------------------------


def test_a_wish_becomes_an_order_and_is_on_record_until_it_is_done(watch: Watch) -> None:
    watch.hear(wish())
    (order,) = watch.orders(TurnBreaker)
    assert (order.name, order.act, order.by, order.incarnation) == ("search", BreakerAct.RESET, "ann", "1")
    watch.hear(BreakerTurned(agent_id="a", incarnation="1", order_id=order.order_id))
    first, last = [fact for fact in watch.facts(Intervention) if fact.rung is Rung.BREAKER]
    assert (first.stage, first.text, first.by) == (Stage.ORDERED, "reset breaker 'search'", "ann")
    assert (last.id, last.stage) == (first.id, Stage.DONE)
    assert watch.engine.beliefs.side_orders == {}


def test_it_says_nothing_about_the_agents_health(watch: Watch) -> None:
    """Turning a breaker is no step of the ladder: nobody who is well gets a case by it."""
    watch.hear(wish())
    assert (watch.health(), watch.agent().case) == (Health.HEALTHY, None)


def test_the_same_key_is_the_same_wish(watch: Watch) -> None:
    watch.hear(wish(key="k"))
    watch.hear(wish(key="k"))
    assert len(watch.orders(TurnBreaker)) == 1
    watch.hear(wish(BreakerAct.OPEN, key="k"))
    assert len(watch.orders(TurnBreaker)) == 2


def test_the_newest_wish_about_a_breaker_counts(watch: Watch) -> None:
    watch.hear(reported(name="git"))
    watch.hear(wish())
    watch.hear(wish(name="git"))
    watch.hear(wish(BreakerAct.OPEN))
    first, other, second = (order.order_id for order in watch.orders(TurnBreaker))
    assert (first, Stage.DROPPED) in stages(watch, Rung.BREAKER)
    assert set(watch.engine.beliefs.side_orders["a"]) == {other, second}
    watch.hear(BreakerTurned(agent_id="a", incarnation="1", order_id=first))
    assert (first, Stage.DONE) not in stages(watch, Rung.BREAKER)


def test_an_agent_without_that_breaker_says_so(watch: Watch) -> None:
    watch.hear(wish())
    (order,) = watch.orders(TurnBreaker)
    watch.hear(BreakerNotTurned(agent_id="a", incarnation="1", order_id=order.order_id, reason="none here"))
    assert watch.facts(Intervention)[-1].text == "none here"
    assert stages(watch, Rung.BREAKER)[-1] == (order.order_id, Stage.FAILED)
    assert watch.facts(NeedsHuman) == []


def test_nobody_is_waited_for_for_ever(watch: Watch) -> None:
    watch.hear(wish())
    given_at = watch.now
    (order,) = watch.orders(TurnBreaker)
    watch.live(given_at + TURN_FOR - 0.01, every=2.0, incarnation="1")
    assert stages(watch, Rung.BREAKER) == [(order.order_id, Stage.ORDERED)]
    watch.run_until(given_at + TURN_FOR)
    assert stages(watch, Rung.BREAKER)[-1] == (order.order_id, Stage.FAILED)
    assert watch.facts(Intervention)[-1].text == "no outcome within 10 min"


@pytest.mark.parametrize("name", ["git", ""])
def test_a_breaker_nobody_reported_is_refused(watch: Watch, name: str) -> None:
    watch.hear(wish(name=name))
    assert watch.orders(TurnBreaker) == []
    assert watch.facts(Refusal)


def test_breakers_end_with_the_life_that_had_them(watch: Watch) -> None:
    """Nobody is refused by a breaker of a process that is gone; an alert about it has to end, too."""
    watch.hear(wish())
    (order,) = watch.orders(TurnBreaker)
    watch.hear(AgentLeft(agent_id="a", incarnation="1"))
    assert watch.engine.beliefs.breakers == {}
    assert watch.facts(BreakerFlip)[-1].now is BreakerState.CLOSED
    assert stages(watch, Rung.BREAKER)[-1] == (order.order_id, Stage.DROPPED)
    watch.hear(wish())
    assert len(watch.orders(TurnBreaker)) == 1


def test_a_new_life_begins_with_breakers_of_its_own(watch: Watch) -> None:
    watch.hear(wish())
    watch.beat(incarnation="2", seq=1)
    assert watch.engine.beliefs.breakers == {}
    assert stages(watch, Rung.BREAKER)[-1][1] is Stage.DROPPED


def test_a_report_without_a_turn_is_no_flip_but_its_numbers_count(watch: Watch) -> None:
    """An open one that is opened begins its wait anew."""
    flips = len(watch.facts(BreakerFlip))
    watch.hear(reported(failures=5, until=watch.now + 60))
    known = watch.engine.beliefs.breakers["a"]["search"]
    assert (known.failures, known.half_open_at) == (5, watch.now + 60)
    watch.hear(reported(BreakerState.CLOSED, name="git", failures=0))
    assert watch.engine.beliefs.breakers["a"]["git"].state is BreakerState.CLOSED
    assert len(watch.facts(BreakerFlip)) == flips


def test_an_engine_restored_in_between_waits_on(watch: Watch) -> None:
    watch.hear(wish())
    (order,) = watch.orders(TurnBreaker)
    engine = Engine.restore(
        watch.engine.snapshot(),
        watch.now,
        PolicyBook(profile("balanced")),
        FleetPolicy(canary_every=0),
        epoch=2,
    )
    after = Watch(engine=engine, at=watch.now)
    after.run_until(watch.now + TURN_FOR + 1)
    assert stages(after, Rung.BREAKER) == [(order.order_id, Stage.FAILED)]


# --- cleaning up -----------------------------------------------------------------------------------------------


def cleaned(agent: Agent) -> bool:
    return agent.id != "keeps-its-mess"


@pytest.fixture
def tidy() -> Watch:
    """An agent with a task and a checkpoint, after whose lives somebody cleans up."""
    made = Watch(profile("balanced"))
    made.engine.clean_up_after(cleaned)
    made.beat(incarnation="1", task_id="t")
    made.hear(CheckpointSaved(agent_id="a", incarnation="1", checkpoint_id="cp-1", task_id="t"))
    return made


def crash() -> ProcessExited:
    return ProcessExited(agent_id="a", incarnation="1", status=1)


ENDS: list[Signal] = [
    AgentLeft(agent_id="a", incarnation="1", reason="done"),
    ProcessExited(agent_id="a", incarnation="1", status=0),
    ProcessExited(agent_id="a", incarnation="1", signal=9),
]


@pytest.mark.parametrize("end", ENDS, ids=["left", "exited", "crashed"])
def test_a_life_that_is_over_is_cleaned_up_after_once(tidy: Watch, end: Signal) -> None:
    tidy.hear(end)
    (order,) = tidy.orders(CleanUp)
    assert (order.incarnation, order.task_id, order.checkpoint_id) == ("1", "t", "cp-1")
    tidy.hear(end)
    tidy.hear(ENDS[0])
    tidy.hear(CleanedUp(agent_id="a", order_id=order.order_id))
    tidy.hear(end)
    assert len(tidy.orders(CleanUp)) == 1
    assert [stage for _, stage in stages(tidy, Rung.CLEANUP)] == [Stage.ORDERED, Stage.DONE]


def test_a_life_that_was_ended_is_cleaned_up_after(tidy: Watch) -> None:
    tidy.hear(TerminationRequested(agent_id="a", by="ann", reason="enough"))
    (stop,) = tidy.orders(Terminate)
    assert tidy.orders(CleanUp) == []
    tidy.hear(TerminationDone(agent_id="a", order_id=stop.order_id, forced=True))
    assert [order.reason for order in tidy.orders(CleanUp)] == ["enough"]


def test_nothing_is_cleaned_up_where_nobody_does_that(watch: Watch) -> None:
    watch.hear(AgentLeft(agent_id="a", incarnation="1"))
    watch.engine.clean_up_after(cleaned)
    watch.beat("keeps-its-mess", incarnation="1")
    watch.hear(AgentLeft(agent_id="keeps-its-mess", incarnation="1"))
    assert watch.orders(CleanUp) == []


def test_who_is_merely_silent_may_live_and_is_not_cleaned_up_after(tidy: Watch) -> None:
    """Never on an agent that lives: only an end that somebody saw or said is one."""
    tidy.beat("b", incarnation="1")
    tidy.live(tidy.now + 60, "b", every=2.0, incarnation="1")
    assert tidy.health() is Health.DISCONNECTED
    assert tidy.orders(CleanUp) == []


def test_each_life_has_its_own(tidy: Watch) -> None:
    tidy.hear(crash())
    tidy.hear(CleanedUp(agent_id="a", order_id=tidy.orders(CleanUp)[0].order_id))
    tidy.beat(incarnation="2", seq=1)
    tidy.hear(AgentLeft(agent_id="a", incarnation="2"))
    assert [order.incarnation for order in tidy.orders(CleanUp)] == ["1", "2"]


def test_a_life_that_begins_by_itself_drops_it(tidy: Watch) -> None:
    tidy.hear(crash())
    (order,) = tidy.orders(CleanUp)
    tidy.beat(incarnation="2", seq=1)
    assert stages(tidy, Rung.CLEANUP)[-1] == (order.order_id, Stage.DROPPED)
    tidy.hear(CleanUpFailed(agent_id="a", order_id=order.order_id, reason="late"))
    assert tidy.facts(NeedsHuman) == []


def verify(watch: Watch) -> None:
    """The checkpoint is read back."""
    watch.run_until(watch.now)
    order = watch.orders(VerifyCheckpoint)[-1]
    watch.hear(
        CheckpointVerified(
            agent_id="a", order_id=order.order_id, task_id="t", checkpoint_id=order.checkpoint_id, valid=True
        )
    )


def test_a_successor_waits_until_it_is_done(tidy: Watch) -> None:
    tidy.hear(crash())
    verify(tidy)
    tidy.run_until(tidy.now + 60)
    assert tidy.orders(Respawn) == []
    tidy.hear(CleanedUp(agent_id="a", order_id=tidy.orders(CleanUp)[0].order_id))
    tidy.run_until(tidy.now)
    assert [order.checkpoint_id for order in tidy.orders(Respawn)] == ["cp-1"]


@pytest.mark.parametrize("given_up", [True, False], ids=["given up", "no answer"])
def test_what_cannot_be_cleaned_up_is_told_to_people_and_the_successor_goes_on(
    tidy: Watch, given_up: bool
) -> None:
    tidy.hear(crash())
    crashed_at = tidy.now
    (order,) = tidy.orders(CleanUp)
    verify(tidy)
    if given_up:
        tidy.hear(CleanUpFailed(agent_id="a", order_id=order.order_id, reason="refused"))
    else:
        tidy.run_until(crashed_at + CLEANUP_FOR - 0.01)
        assert tidy.orders(Respawn) == []
    tidy.run_until(crashed_at + CLEANUP_FOR)
    assert [fact.reason for fact in tidy.facts(NeedsHuman)] == ["not_cleaned_up"]
    assert stages(tidy, Rung.CLEANUP)[-1] == (order.order_id, Stage.FAILED)
    assert len(tidy.orders(Respawn)) == 1


# --- what an ending leaves -------------------------------------------------------------------------------------


def test_a_termination_tells_what_was_saved_last(tidy: Watch) -> None:
    tidy.hear(TerminationRequested(agent_id="a", by="ann", reason="enough"))
    (stop,) = tidy.orders(Terminate)
    tidy.hear(TerminationDone(agent_id="a", order_id=stop.order_id))
    assert [fact.checkpoint_id for fact in tidy.facts(Ending)] == ["cp-1"]


def test_what_was_saved_at_the_end_is_where_the_next_life_goes_on(watch: Watch) -> None:
    """Whoever stood beside the agent found it; the agent itself said nothing of it."""
    watch.beat(incarnation="1", task_id="t")
    watch.hear(TerminationRequested(agent_id="a", by="ann", reason="enough", respawn=True))
    (stop,) = watch.orders(Terminate)
    watch.hear(TerminationDone(agent_id="a", order_id=stop.order_id, checkpoint_id="last"))
    assert [fact.checkpoint_id for fact in watch.facts(Ending)] == ["last"]
    watch.run_until(watch.now)
    assert [order.checkpoint_id for order in watch.orders(VerifyCheckpoint)] == ["last"]


def test_why_a_person_wants_a_recovery_is_told_to_the_new_life(watch: Watch) -> None:
    watch.beat(incarnation="1", task_id="t")
    watch.hear(AgentLeft(agent_id="a", incarnation="1"))
    watch.hear(RecoveryRequested(agent_id="a", by="ann", task_id="t", reason="the disk is back"))
    watch.run_until(watch.now + 1)
    (order,) = watch.orders(Respawn)
    assert "requested by ann: the disk is back" in order.handoff
