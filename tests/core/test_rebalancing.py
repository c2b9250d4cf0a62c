"""Tasks of unwell workers are offered to healthy ones with room; nothing is taken from a worker that lives."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.agent import Agent
from lifesigns.core.effects import AskBack, ClaimChanged, ClaimStage, MoveStage, OfferTask, TaskMove
from lifesigns.core.health import Health
from lifesigns.core.policy import MINUTE, FleetPolicy, Policy
from lifesigns.core.rebalancing import ANSWER_WITHIN, OFFERED_FOR, taker
from tests.core.harness import START, Watch

POLICY = Policy()
LOST = POLICY.claim.lease + POLICY.claim.check_wait + 5
"""How long a worker is silent until its claims are released."""


def workers(*, moves_per_minute: int = 10, policy: Policy = POLICY, **fleet: float) -> Watch:
    """`sick` holds t-1 and t-2 and works on t-1; `busy` and `idle` have room."""
    limits = {"canary_every": 0.0, "brake_count": 99, **fleet}
    watch = Watch(policy, fleet=FleetPolicy(moves_per_minute=moves_per_minute, **limits))  # type: ignore[arg-type]
    everybody(watch)
    for task_id in ("t-1", "t-2"):
        watch.hear(s.TaskClaimed(agent_id="sick", task_id=task_id))
    watch.forget()
    return watch


def everybody(watch: Watch, *exclude: str, at: float | None = None, sick: str | None = None) -> None:
    """A beat of each."""
    for agent_id, load, room in (("busy", 0.8, 5), ("idle", 0.1, 1)):
        if agent_id not in exclude:
            watch.beat(agent_id, at, load=load, capacity_available=room)
    if "sick" not in exclude:
        watch.beat("sick", at, load=0.9, task_id="t-1", tasks=("t-1", "t-2"), status=sick)


def beating(watch: Watch, seconds: float, *exclude: str, sick: str | None = None) -> None:
    until = watch.now + seconds
    while watch.now + 5 <= until:
        everybody(watch, *exclude, at=watch.now + 5, sick=sick)


def offers(watch: Watch) -> list[tuple[str, str]]:
    return [(order.task_id, order.agent_id) for order in watch.orders(OfferTask)]


def moves(watch: Watch) -> list[tuple[str, str, str]]:
    return [(fact.task_id, fact.agent_id, fact.stage) for fact in watch.facts(TaskMove)]


def test_without_the_key_nothing_is_offered_and_nobody_is_asked() -> None:
    watch = workers(moves_per_minute=0)
    beating(watch, 30, sick="degraded")
    beating(watch, LOST, "sick")
    assert watch.facts(ClaimChanged)[-1].stage is ClaimStage.RELEASED
    assert not offers(watch)
    assert not watch.orders(AskBack)


def test_the_task_of_a_lost_worker_goes_to_the_least_loaded_that_has_room() -> None:
    """`idle` has room for one: the second task is for `busy`."""
    watch = workers()
    beating(watch, LOST, "sick")
    assert offers(watch) == [("t-1", "idle"), ("t-2", "busy")]
    watch.hear(s.TaskClaimed(agent_id="idle", task_id="t-1"))
    assert watch.facts(ClaimChanged)[-1].token == 3
    assert moves(watch)[-1] == ("t-1", "idle", MoveStage.TAKEN)


def test_an_offer_that_nobody_answers_goes_to_the_next_and_then_to_the_queue() -> None:
    watch = workers()
    watch.hear(s.TaskReleased(agent_id="sick", task_id="t-2", token=2))
    beating(watch, LOST, "sick")
    freed_at = watch.facts(TaskMove)[0].at
    assert offers(watch) == [("t-1", "idle")]
    beating(watch, OFFERED_FOR + 60, "sick")
    assert offers(watch) == [("t-1", "idle"), ("t-1", "busy")]
    assert [order.at - freed_at for order in watch.orders(OfferTask)] == [0.0, ANSWER_WITHIN]
    last = watch.facts(TaskMove)[-1]
    assert (last.stage, last.at) == (MoveStage.NOT_TAKEN, freed_at + OFFERED_FOR)
    assert last.reason == "offered to idle, busy"


def test_a_task_that_is_claimed_or_done_is_offered_no_more() -> None:
    watch = workers()
    beating(watch, LOST, "sick")
    watch.hear(s.TaskClaimed(agent_id="other", task_id="t-1"))
    watch.hear(s.TaskDone(agent_id="other", task_id="t-1"))
    watch.hear(s.TaskDone(agent_id="other", task_id="t-2"))
    before = len(offers(watch))
    beating(watch, 2 * OFFERED_FOR, "sick")
    assert len(offers(watch)) == before


def test_an_unwell_worker_is_asked_for_what_it_does_not_work_on_and_keeps_it_until_it_says_so() -> None:
    watch = workers()
    beating(watch, 10, sick="degraded")
    assert [(o.agent_id, o.task_id, o.token) for o in watch.orders(AskBack)] == [("sick", "t-2", 2)]
    beating(watch, 300, sick="degraded")
    assert watch.agent("sick").claims == ("t-1", "t-2")
    assert len(watch.orders(AskBack)) == 1, "it is asked once for each task while it is in this state"
    assert not offers(watch)
    watch.hear(s.TaskReleased(agent_id="sick", task_id="t-2", token=2))
    assert offers(watch) == [("t-2", "idle")]
    assert moves(watch) == [("t-2", "sick", MoveStage.ASKED_BACK), ("t-2", "idle", MoveStage.OFFERED)]


def test_a_healthy_worker_is_asked_for_nothing_and_what_it_gives_back_goes_to_the_queue() -> None:
    watch = workers()
    beating(watch, 300)
    watch.hear(s.TaskReleased(agent_id="sick", task_id="t-2", token=2))
    beating(watch, 60)
    assert not watch.orders(AskBack)
    assert not offers(watch)


def test_nobody_is_asked_while_nobody_has_room() -> None:
    watch = workers()
    for _ in range(20):
        watch.beat("busy", watch.now + 5, load=0.8, capacity_available=0)
        watch.beat("idle", load=0.1)
        watch.beat("sick", task_id="t-1", status="degraded")
    assert watch.health("sick") is Health.DEGRADED
    assert not watch.orders(AskBack)
    everybody(watch, "sick", at=watch.now + 5)
    beating(watch, 20, sick="degraded")
    assert watch.orders(AskBack)


def test_a_worker_that_a_person_paused_or_whose_group_is_braked_is_not_asked() -> None:
    paused = workers()
    paused.hear(s.PauseRequested(agent_id="sick", by="ada"))
    beating(paused, 60, sick="degraded")
    braked = workers(brake_count=1, brake_share=0.1)
    braked.hear(s.ErrorReported(agent_id="sick", message="no disk", recoverable=False))
    beating(braked, 60)
    assert braked.health("sick") is Health.FAILING
    assert not paused.orders(AskBack)
    assert not braked.orders(AskBack)


def test_no_more_than_so_many_a_minute() -> None:
    watch = workers(moves_per_minute=1)
    beating(watch, LOST + 300, "sick")
    at = [order.at for order in watch.orders(OfferTask)]
    assert len(at) == 4, "each of two tasks to each of two workers"
    assert all(later - earlier >= MINUTE for earlier, later in pairwise(at))


def test_a_task_waits_for_the_next_life_of_its_worker() -> None:
    """A respawn goes on with it: another worker would do the same work beside it."""
    watch = workers(policy=POLICY.with_changes({"respawn": {"start_timeout": 120}}))
    watch.hear(s.CheckpointSaved(agent_id="sick", checkpoint_id="cp", task_id="t-1"))
    watch.hear(s.ProcessExited(agent_id="sick", status=1))
    beating(watch, 60, "sick")
    life = watch.orders(e.Respawn)[0].new_incarnation
    for at in (5, 60):
        watch.beat("sick", watch.now + at, incarnation=life, task_id="t-1", tasks=("t-1",))
        everybody(watch, "sick")
        assert watch.agent("sick").claims == ()
        assert not offers(watch)
    watch.hear(s.TaskClaimed(agent_id="sick", task_id="t-1", incarnation=life))
    beating(watch, 20, "sick")
    assert offers(watch) == [("t-2", "idle")], "t-1 goes on, t-2 is free"


def worker(n: int, load: float | None, room: int | None, health: Health, role: str | None) -> Agent:
    agent = Agent(id=f"w-{n}", order=n, since=START, heard_at=START)
    agent.load, agent.capacity, agent.health, agent.role = load, room, health, role
    return agent


fleets = st.lists(
    st.tuples(
        st.none() | st.floats(0, 1),
        st.none() | st.integers(0, 3),
        st.sampled_from(Health),
        st.sampled_from((None, "batch")),
    ),
    max_size=12,
).map(lambda rows: [worker(n, *row) for n, row in enumerate(rows)])


@given(
    fleets,
    st.sets(st.sampled_from([f"w-{n}" for n in range(12)])),
    st.dictionaries(st.sampled_from([f"w-{n}" for n in range(12)]), st.integers(0, 4)),
)
def test_the_taker_is_healthy_has_room_left_and_nobody_fit_has_less_load(
    agents: list[Agent], exclude: set[str], promised: dict[str, int]
) -> None:
    found = taker(agents, None, exclude, promised)
    fit = [
        agent
        for agent in agents
        if agent.health is Health.HEALTHY
        and (agent.capacity or 0) - promised.get(agent.id, 0) > 0
        and agent.role is None
        and agent.id not in exclude
    ]
    assert (found is None) == (not fit)
    if found is not None:
        assert found in fit
        known = [agent.load for agent in fit if agent.load is not None and agent.load < 0.95]
        assert not known or found.load == min(known)


def _beat(agent_id: str, status: str | None, room: int) -> s.Signal:
    return s.BeatReceived(agent_id, status=status, capacity_available=room, load=0.5)


ids = st.sampled_from(("a", "b", "c"))
tasks = st.sampled_from(("t-1", "t-2", "t-3"))
FIRST: list[tuple[float, s.Signal]] = [
    *((0.0, _beat(agent_id, None, 2)) for agent_id in ("a", "b", "c")),
    *((0.0, s.TaskClaimed(agent_id="a", task_id=task_id)) for task_id in ("t-1", "t-2")),
    (1.0, _beat("a", "degraded", 0)),
]
"""Without them hardly a history has anybody to be asked for a task, and anybody to take it."""
steps: st.SearchStrategy[list[tuple[float, s.Signal]]] = st.lists(
    st.tuples(
        st.floats(0, 14) | st.floats(0, 400),
        st.one_of(
            st.builds(_beat, ids, st.sampled_from((None, "degraded", "busy")), st.integers(0, 2)),
            st.builds(_beat, st.just("a"), st.just("degraded"), st.integers(0, 2)),
            st.builds(s.TaskClaimed, agent_id=ids, task_id=tasks),
            st.sampled_from(
                [
                    s.TaskReleased(agent_id="a", task_id=f"t-{n}", token=n) for n in (1, 2)
                ]  # As it was granted.
            ),
            st.builds(s.TaskReleased, agent_id=ids, task_id=tasks, token=st.integers(1, 6)),
            st.builds(s.TaskDone, agent_id=ids, task_id=tasks),
            st.builds(s.ProcessExited, agent_id=ids, status=st.just(1)),
        ),
    ),
    max_size=40,
)


class Checked(Watch):
    """Looks at every effect in the moment in which it is given."""

    def __init__(self, per_minute: int) -> None:
        super().__init__(POLICY, fleet=FleetPolicy(canary_every=0, moves_per_minute=per_minute))
        self.per_minute = per_minute
        self.held: dict[str, str] = {}
        self.moved_at: list[float] = []
        self.speaker = ""

    def hear(self, signal: s.Signal, at: float | None = None) -> None:
        self.run_until(self.now if at is None else at)
        self.speaker = getattr(signal, "agent_id", "")
        super().hear(signal)
        self.speaker = ""

    def keep(self, effects: Sequence[e.Effect]) -> None:
        super().keep(effects)
        for effect in effects:
            match effect:
                case ClaimChanged(stage=ClaimStage.GRANTED):
                    self.held[effect.task_id] = effect.agent_id
                case ClaimChanged(stage=ClaimStage.RELEASED):
                    assert self.held.pop(effect.task_id) == effect.agent_id
                    silent_for = self.now - self.agent(effect.agent_id).heard_at
                    assert self.speaker == effect.agent_id or silent_for >= POLICY.claim.lease
                case OfferTask():
                    to = self.agent(effect.agent_id)
                    assert effect.task_id not in self.held
                    assert (to.health, to.id == effect.giver) == (Health.HEALTHY, False)
                    assert to.capacity
                    self.moved_at.append(effect.at)
                case AskBack():
                    assert self.held[effect.task_id] == effect.agent_id
                    assert self.health(effect.agent_id) is not Health.HEALTHY
                    self.moved_at.append(effect.at)
                case _:
                    pass
        assert len([at for at in self.moved_at if at > self.now - MINUTE]) <= self.per_minute


def lived(history: list[tuple[float, s.Signal]], per_minute: int) -> Checked:
    watch = Checked(per_minute)
    for wait, signal in [*FIRST, *history]:
        watch.hear(signal, watch.now + wait)
    return watch


@given(steps, st.integers(1, 3))
def test_whatever_happens_only_free_tasks_are_offered_only_to_the_healthy_and_never_too_many(
    history: list[tuple[float, s.Signal]], per_minute: int
) -> None:
    assert lived(history, per_minute).orders(AskBack)


def test_the_property_meets_both_ways_to_move_a_task() -> None:
    watch = lived([(5.0, s.TaskReleased(agent_id="a", task_id="t-1", token=1))], 3)
    assert watch.orders(AskBack)
    assert watch.orders(OfferTask)


def test_the_property_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebalancer without a limit is caught by the check above."""
    monkeypatch.setattr("lifesigns.core.rebalancing.Rebalancing._full_until", lambda _, now: now)
    watch = Checked(1)
    for task_id in ("t-1", "t-2"):
        watch.beat("b", capacity_available=2)
        watch.hear(s.TaskClaimed(agent_id="a", task_id=task_id))
    with pytest.raises(AssertionError):
        watch.live(START + 2 * LOST, "b", capacity_available=2)
