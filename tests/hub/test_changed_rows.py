"""The engine says what changed: every row that a call changed is among the keys it reports, so a crash loses nothing.

Beats are left out on purpose: what they say is not stored, the next one says it again.
"""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lifesigns.core import signals as s
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.changed_keys import ChangedKeys
from lifesigns.core.effects import AskBack
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.hub import memory
from tests.core.test_engine_properties import PROFILES, SELDOM, beats, others, waits

TIMERS = frozenset({"armed_at", "other_at", "calm"})
"""Set anew when beliefs are restored."""


IDS, TASKS, MESSAGES = (st.sampled_from(names) for names in (("a", "b"), ("t-1", "t-2"), ("m-1", "m-2")))
duties = st.one_of(
    st.builds(
        s.TaskAssigned, agent_id=IDS, task_id=TASKS, expected_for=st.sampled_from((None, 10.0, 1000.0))
    ),
    st.builds(s.TaskClaimed, agent_id=IDS, task_id=TASKS),
    st.builds(s.TaskReleased, agent_id=IDS, task_id=TASKS, token=st.integers(1, 3)),
    st.builds(s.TaskDone, agent_id=IDS, task_id=TASKS),
    st.builds(s.ProgressMade, agent_id=IDS),
    st.builds(s.MessageSent, agent_id=IDS, message_id=MESSAGES, to=IDS, priority=st.sampled_from(s.Priority)),
    st.builds(s.MessageAcked, agent_id=IDS, message_id=MESSAGES),
    st.builds(s.MessageWithdrawn, agent_id=IDS, message_id=MESSAGES),
    st.builds(s.AgentLeft, agent_id=IDS),
)
signals = st.one_of(duties, duties, others, beats)
"""Of lives without a name, which are always believed: most of what chance draws otherwise is refused."""


def engine(name: str, changes: ChangedKeys) -> Engine:
    made = Engine(PolicyBook(profile(name)), SELDOM, changes=changes)
    made.clean_up_after(lambda _: True)
    return made


def rows(beliefs: Beliefs) -> dict[tuple[str, str], Any]:
    """What would be stored, without timers. The hub's own row goes with every commit."""
    everything = memory.everything(beliefs)
    return {
        (row.kind, row.key): _without_timers(msgspec.msgpack.decode(row.value or b""))
        for row in everything
        if row.kind != memory.HUB
    }


def _without_timers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_timers(one) for key, one in value.items() if key not in TIMERS}
    return [_without_timers(one) for one in value] if isinstance(value, list) else value


def reported(changes: ChangedKeys) -> set[tuple[str, str]]:
    return {
        *((memory.AGENT, key) for key in changes.agents),
        *((kind, key) for key in changes.tasks for kind in (memory.TASK, memory.CLAIM)),
        *((memory.MESSAGE, key) for key in changes.messages),
    }


@settings(max_examples=150)
@given(st.lists(st.tuples(waits, signals), min_size=20, max_size=40), st.sampled_from(PROFILES))
def test_a_row_that_changed_is_reported(history: list[tuple[float, s.Signal]], name: str) -> None:
    changes = ChangedKeys()
    watching, now = engine(name, changes), 1000.0
    for wait, signal in history:
        now += wait
        before = rows(watching.snapshot())
        changes.clear()
        watching.advance(now)
        if isinstance(signal, s.Report):
            watching.hear(signal, now)
        after = rows(watching.snapshot())
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert changed <= reported(changes), f"{signal}: {changed - reported(changes)}"
        if not isinstance(signal, s.Report):
            watching.hear(signal, now)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(waits, signals, st.booleans()), min_size=20, max_size=40), st.sampled_from(PROFILES)
)
def test_after_a_crash_at_any_commit_everything_but_beats_is_as_it_was(
    history: list[tuple[float, s.Signal, bool]], name: str
) -> None:
    """What was committed is what the engine believed then, whenever the last commit was."""
    changes = ChangedKeys()
    watching, now = engine(name, changes), 1000.0
    store: dict[tuple[str, str], bytes] = {}
    believed = rows(watching.snapshot())
    for wait, signal, commits in history:
        now += wait
        watching.hear(signal, now)
        if commits:
            for row in memory.changed(changes, watching.snapshot()):
                if row.value is None:
                    store.pop((row.kind, row.key), None)
                else:
                    store[row.kind, row.key] = row.value
            changes.clear()
            believed = rows(watching.snapshot())
    stored = {key: value for key, value in store.items() if key[0] != memory.HUB}
    assert stored.keys() == believed.keys()


def test_a_question_for_a_task_is_reported_although_a_beat_led_to_it() -> None:
    """A hub that forgot in a crash that it has asked would ask again."""
    changes = ChangedKeys()
    watching = Engine(PolicyBook(), FleetPolicy(moves_per_minute=10, canary_every=0.0), changes=changes)
    watching.hear(s.BeatReceived(agent_id="idle", capacity_available=1), 1000.0)
    watching.hear(s.BeatReceived(agent_id="sick"), 1000.0)
    for task_id in ("t-1", "t-2"):
        watching.hear(s.TaskClaimed(agent_id="sick", task_id=task_id), 1000.0)
    changes.clear()
    effects = watching.hear(s.BeatReceived(agent_id="sick", task_id="t-1", status="degraded"), 1005.0)
    (asked,) = [effect for effect in effects if isinstance(effect, AskBack)]
    assert (memory.CLAIM, asked.task_id) in reported(changes)
