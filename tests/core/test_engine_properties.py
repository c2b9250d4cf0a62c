"""The laws of the engine, over histories nobody thought of."""

from collections.abc import Sequence

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.agent import NEVER
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.engine import Engine
from lifesigns.core.health import LEGAL, Doing
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile

IDS = ("a", "b", "c")
LIVES = (None, None, "one", "two")
TASKS = ("t-1", "t-2")

ids = st.sampled_from(IDS)
lives = st.sampled_from(LIVES)
tasks = st.sampled_from(TASKS)
order_ids = st.integers(1, 30).map(lambda n: f"1-{n}")
texts = st.sampled_from(("", "x"))
common = {"agent_id": ids, "incarnation": lives}

beats = st.builds(
    s.BeatReceived,
    ids,
    seq=st.none() | st.integers(0, 40),
    incarnation=lives,
    sent_at=st.none() | st.floats(-1e12, 1e12),
    doing=st.none() | st.sampled_from(Doing),
    until=st.none() | st.floats(0, 1e5),
    load=st.none() | st.floats(0, 1),
    capacity_available=st.none() | st.integers(0, 2),
    task_id=st.none() | tasks,
    token_count=st.none() | st.integers(0, 10**9),
    error_count=st.none() | st.integers(0, 100),
    loop_lag_ms=st.none() | st.floats(0, 1e6),
    metrics=st.none() | st.builds(s.Metrics, cpu_percent=st.floats(0, 100)),
    host=st.none() | st.sampled_from(("h1", "h2")),
    role=st.none() | st.sampled_from(("standby", "nobody")),
)
others = st.one_of(
    st.builds(s.AgentRegistered, grace=st.none() | st.floats(0, 100), role=st.none(), **common),
    st.builds(s.ActivitySeen, kind=st.sampled_from(("activity", "output")), **common),
    st.builds(
        s.ToolStarted, call_id=texts, tool=st.just("grep"), bound=st.none() | st.floats(0, 1e4), **common
    ),
    st.builds(
        s.ToolFinished,
        call_id=texts,
        tool=st.just("grep"),
        args_digest=st.just("aa"),
        result_digest=texts,
        ok=st.booleans(),
        error_kind=st.none() | st.just("429"),
        **common,
    ),
    st.builds(s.ModelStarted, **common),
    st.builds(s.ModelFinished, tokens_in=st.integers(0, 10**6), **common),
    st.builds(
        s.CheckpointSaved,
        checkpoint_id=texts,
        parent_id=st.none() | texts,
        task_id=st.none() | tasks,
        **common,
    ),
    st.builds(s.ProgressMade, **common),
    st.builds(s.ErrorReported, message=texts, recoverable=st.booleans(), **common),
    st.builds(
        s.DoingChanged,
        doing=st.sampled_from(Doing),
        until=st.none() | st.floats(0, 1e5),
        note=texts,
        **common,
    ),
    st.builds(s.PongReceived, status=st.none() | texts, **common),
    st.builds(s.NudgeSeen, nudge_id=order_ids, **common),
    st.builds(s.NudgeAnswered, nudge_id=order_ids, answer=st.sampled_from(s.Answer), **common),
    st.builds(s.TaskAssigned, task_id=tasks, expected_for=st.none() | st.floats(0, 1e4), **common),
    st.builds(s.TaskDone, task_id=tasks, **common),
    st.builds(s.TaskFailed, task_id=tasks, **common),
    st.builds(s.TaskClaimed, task_id=tasks, **common),
    st.builds(s.TaskReleased, task_id=tasks, token=st.integers(0, 9), **common),
    st.builds(s.MessageSent, message_id=texts, to=ids, priority=st.sampled_from(s.Priority), **common),
    st.builds(s.MessageAcked, message_id=texts, **common),
    st.builds(s.MessageWithdrawn, message_id=texts, **common),
    st.builds(s.BreakerReported, name=texts, state=st.sampled_from(s.BreakerState), **common),
    st.builds(s.AgentLeft, **common),
    st.builds(s.ProcessExited, status=st.sampled_from((0, 1, None)), **common),
    st.builds(s.ConnectionClosed, **common),
    st.builds(s.OpinionGiven, zone=st.sampled_from(("b", "c")), opinion=st.sampled_from(s.Opinion), **common),
    st.builds(s.NudgeDelivered, order_id=order_ids, **common),
    st.builds(s.NudgeFailed, order_id=order_ids, **common),
    st.builds(s.EscalationDecided, order_id=order_ids, decision=st.sampled_from(s.Decision), **common),
    st.builds(s.TerminationDone, order_id=order_ids, **common),
    st.builds(s.TerminationFailed, order_id=order_ids, **common),
    st.builds(
        s.CheckpointVerified,
        order_id=order_ids,
        task_id=tasks,
        checkpoint_id=texts,
        valid=st.booleans(),
        **common,
    ),
    st.builds(s.RespawnStarted, order_id=order_ids, **common),
    st.builds(s.RespawnFailed, order_id=order_ids, **common),
    st.builds(s.NudgeRequested, by=texts, key=texts, **common),
    st.builds(s.EscalationRequested, by=texts, **common),
    st.builds(s.TerminationRequested, by=texts, respawn=st.booleans(), **common),
    st.builds(s.PauseRequested, pause_for=st.none() | st.floats(0, 1e4), **common),
    st.builds(s.ResumeRequested, **common),
    st.builds(s.ClearRequested, **common),
    st.builds(s.RecoveryRequested, task_id=tasks, **common),
    st.builds(s.BreakerTurned, order_id=order_ids, **common),
    st.builds(s.BreakerNotTurned, order_id=order_ids, **common),
    st.builds(s.CleanedUp, order_id=order_ids, **common),
    st.builds(s.CleanUpFailed, order_id=order_ids, **common),
    st.builds(
        s.BreakerTurnRequested, name=texts, act=st.sampled_from(s.BreakerAct), by=texts, key=texts, **common
    ),
    st.builds(s.CanaryReturned, seq=st.integers(0, 100)),
    st.builds(s.PathLost, path=st.sampled_from(("", "bus", "ai-maestro"))),
    st.builds(s.PathRestored, path=st.sampled_from(("", "bus", "ai-maestro"))),
    st.builds(s.GroupReleased, group=st.just("fleet")),
)
waits = st.sampled_from((0.0, 0.01, 1.0, 2.0, 5.0, 13.0, 61.0, 301.0, 1000.0, 4000.0))
histories = st.lists(st.tuples(waits, beats | others), max_size=40)

PROFILES = ("swarm", "balanced", "fleet")


SELDOM = FleetPolicy(canary_every=60.0, canary_late_after=170.0, tick_every=30.0, moves_per_minute=3)
"""Fewer ticks and canaries than usual: these histories last hours, and every look costs time."""


def engine(name: str = "swarm", canary: bool = True, moves: bool = True) -> Engine:
    fleet = SELDOM if canary else replace(SELDOM, canary_every=0)
    if not moves:
        fleet = replace(fleet, moves_per_minute=0)
    return tidy(Engine(PolicyBook(profile(name)), fleet))


def tidy(watched: Engine) -> Engine:
    """After some agents somebody cleans up, and there is another zone to ask."""
    watched.clean_up_after(lambda agent: agent.id != "a")
    watched.has_zones(("b",))
    return watched


def live(
    watched: Engine,
    history: Sequence[tuple[float, s.Signal]],
    *,
    start: float = 1000.0,
    looks: Sequence[float] = (),
) -> list[e.Effect]:
    """Feed a history, looking exactly when the engine asks for it, and besides that at `looks`."""
    effects: list[e.Effect] = []
    now = start
    extra = sorted(looks)

    def look_until(moment: float) -> None:
        while True:
            at = watched.wake_at()
            while extra and extra[0] <= min(at, moment):
                effects.extend(watched.advance(extra.pop(0)))
            if watched.wake_at() > moment:
                return
            effects.extend(watched.advance(max(watched.wake_at(), start)))

    for wait, signal in history:
        now += wait
        look_until(now)
        effects.extend(watched.hear(signal, now))
    look_until(now + 4000)
    return effects


@given(histories, st.sampled_from(PROFILES))
def test_no_history_makes_the_engine_raise_or_set_an_agent_aside(
    history: list[tuple[float, s.Signal]], name: str
) -> None:
    """A sick agent is a value, never an exception, and a poisoned one would be our bug."""
    effects = live(engine(name), history)
    assert [fact for fact in effects if isinstance(fact, e.Poisoned)] == []


@given(histories, st.sampled_from(PROFILES), st.lists(st.floats(1000, 6000), max_size=30))
def test_looking_more_often_changes_no_fact(
    history: list[tuple[float, s.Signal]], name: str, looks: list[float]
) -> None:
    plain = live(engine(name), history)
    curious = live(engine(name), history, looks=looks)
    assert curious == plain


@given(histories)
def test_the_same_history_gives_the_same_effects(history: list[tuple[float, s.Signal]]) -> None:
    assert live(engine(), history) == live(engine(), history)


@given(histories, histories, st.sampled_from(PROFILES))
@example(
    before=[
        (0.0, s.BeatReceived("a", role="standby")),
        (0.0, s.BeatReceived("a")),
        (0.0, s.ToolStarted(call_id="", tool="grep", agent_id="a")),
    ],
    after=[(0.0, s.AgentRegistered(agent_id="a"))],
    name="swarm",
)
def test_a_restored_engine_continues_exactly(
    before: list[tuple[float, s.Signal]], after: list[tuple[float, s.Signal]], name: str
) -> None:
    """Snapshot, store, restore at the same moment: the same effects as if nothing had happened."""
    whole = engine(name)
    live(whole, before)
    now = whole.snapshot().at
    stored = msgspec.msgpack.encode(whole.snapshot())
    beliefs = msgspec.msgpack.decode(stored, type=Beliefs)
    restored = tidy(Engine.restore(beliefs, now, PolicyBook(profile(name)), SELDOM))
    assert live(restored, after, start=now) == live(whole, after, start=now)
    assert without_looks(restored.snapshot()) == without_looks(whole.snapshot())


def without_looks(beliefs: Beliefs) -> Beliefs:
    """Without when it looks next at an agent of which nothing is due: that depends on when it last did, and after a
    restart an engine looks earlier at some."""
    for agent in beliefs.agents.values():
        agent.armed_at = agent.other_at = NEVER
    return beliefs


@given(histories, st.floats(10, 1e6))
def test_downtime_counts_for_nobody(history: list[tuple[float, s.Signal]], down_for: float) -> None:
    """Whoever is not known to be gone is not convicted of silence for what happened while we were away."""
    watched = engine()
    live(watched, history)
    beliefs = watched.snapshot()
    now = beliefs.at + down_for
    restored = Engine.restore(beliefs, now, PolicyBook(profile("swarm")), SELDOM)
    effects = [*restored.advance(now), *restored.advance(now + 0.001)]
    flips = [f for f in effects if isinstance(f, e.Flip)]
    assert flips == []


@given(histories, st.sampled_from(PROFILES))
def test_nothing_is_ordered_twice(history: list[tuple[float, s.Signal]], name: str) -> None:
    """An order id is given once; only a termination that is not confirmed is repeated, under its own id."""
    orders = [order for order in live(engine(name), history) if isinstance(order, e.Order)]
    once = [order.order_id for order in orders if not isinstance(order, e.Terminate)]
    assert len(once) == len(set(once))
    for order in orders:
        if isinstance(order, e.Terminate):
            same = [o for o in orders if o.order_id == order.order_id]
            assert len(same) <= 3
            assert {o.agent_id for o in same} == {order.agent_id}
    respawned = [(o.agent_id, o.order_id) for o in orders if isinstance(o, e.Respawn)]
    assert len(respawned) == len(set(respawned))


@given(histories, st.sampled_from(PROFILES))
def test_every_flip_is_legal_and_follows_the_one_before(
    history: list[tuple[float, s.Signal]], name: str
) -> None:
    health: dict[str, object] = {}
    for fact in live(engine(name), history):
        if isinstance(fact, e.Flip):
            assert fact.now in LEGAL[fact.was]
            assert health.get(fact.agent_id, fact.was) is fact.was
            health[fact.agent_id] = fact.now


@settings(max_examples=20)
@given(histories)
def test_beliefs_stay_bounded(history: list[tuple[float, s.Signal]]) -> None:
    """The same history over and over does not grow what we remember."""
    watched = engine(canary=False)
    sizes = []
    now = 1000.0
    for _ in range(12):
        live(watched, history, start=now)
        now = watched.snapshot().at
        sizes.append(len(msgspec.msgpack.encode(watched.snapshot())))
    assert sizes[-1] <= max(sizes[:6]) * 1.5 + 2000


def test_an_engine_without_agents_wants_nothing() -> None:
    assert engine(canary=False).advance(5.0) == ()
    watched = engine(canary=False)
    watched.advance(5.0)
    assert watched.wake_at() == NEVER


def test_the_property_of_looking_can_fail() -> None:
    """An engine that counts its looks is caught by the comparison above."""

    class Counting(Engine):
        looks = 0

        def advance(self, now: float) -> Sequence[e.Effect]:
            self.looks += 1
            return [*super().advance(now), e.Refusal(now, "x", str(self.looks))]

    history: list[tuple[float, s.Signal]] = [(0.0, s.BeatReceived("a"))]
    assert live(Counting(), history, looks=[1000.5]) != live(Counting(), history)
