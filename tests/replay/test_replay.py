"""Replay: what was heard is judged anew, and nothing is claimed that is not known."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.assembly.hub import store_to_read
from lifesigns.config.values import Config
from lifesigns.core.effects import Finding, FindingClosed, FindingOpened, Kind, Severity
from lifesigns.core.signals import (
    BeatReceived,
    CheckpointSaved,
    PathLost,
    PathRestored,
    ProcessExited,
    Signal,
    TaskAssigned,
    TerminationDone,
    ToolFinished,
)
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import Chunk, Commit
from lifesigns.replay import Change, Difference, ReplayResult, replay
from lifesigns.replay.episodes import Episodes, compare
from tests.hub.test_journal import histories
from tests.replay.recording import T0, Recording, beats, config

TIGHTER = {"policy__silence__timeout": 10}
"""Suspected after 6 s instead of 11, disconnected after 10 instead of 15."""
LOOSER = {"policy__silence__timeout": 120, "policy__silence__missed_max": 20}


@pytest.fixture
def store(tmp_path: Path) -> Callable[[], SqliteStore]:
    return lambda: SqliteStore(tmp_path / "hub.db")


async def judged(
    store: Callable[[], SqliteStore],
    other: Config | None = None,
    *,
    since: float = 0.0,
    until: float = 1e6,
    agents: Sequence[str] = (),
    in_force: Config | None = None,
) -> ReplayResult:
    """The replay of a stretch, in seconds after the beginning; without another policy, under the same one twice."""
    reading = store()
    try:
        return await replay(
            reading,
            in_force or config(),
            other or config(),
            since=T0 + since,
            until=T0 + until,
            agents=agents,
        )
    finally:
        await reading.close()


def lines(differences: Sequence[Difference]) -> list[tuple[str, Change, str, float]]:
    return [
        (one.episode.agent_id, one.change, one.episode.what, one.episode.began_at - T0) for one in differences
    ]


async def test_the_same_policy_judges_the_same_and_as_the_hub_did(store: Callable[[], SqliteStore]) -> None:
    """One dies for good, one is cut off for a minute, one exits, one is well."""
    async with Recording(store) as hub:
        lives = {"well": "1", "dead": "1", "cut": "1", "crash": "1"}
        silent = {"dead": [(100.0, 1e9)], "cut": [(200.0, 260.0)], "crash": [(150.0, 1e9)]}
        await beats(hub, 0, 150, lives, silent=silent)
        await hub.hear(150.5, ProcessExited(agent_id="crash", incarnation="1", status=1))
        await beats(hub, 155, 400, lives, silent=silent)
        await hub.stop()
    found = await judged(store)
    assert found.differences == []
    assert (found.survey.signals, found.survey.missed, found.agents) == (hub.heard, 0, 4)
    then = Counter(json.loads(flip.data)["to"] for flip in hub.flips)
    assert found.noted == then
    assert found.in_force.counts["disconnected"] == then["disconnected"] == 3


async def test_a_tighter_timeout_finds_one_more(store: Callable[[], SqliteStore]) -> None:
    """A life that ended and was followed by another twelve seconds later: nobody would have answered for it."""
    async with Recording(store) as hub:
        await beats(hub, 0, 100, {"a": "1", "b": "1"})
        await beats(hub, 100, 107, {"b": "1"})
        await hub.hear(107, BeatReceived("a", 21, "2"))
        await beats(hub, 110, 200, {"a": "2", "b": "1"})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert [(agent, change, what) for agent, change, what, _ in lines(found.differences)] == [
        ("a", Change.MORE, "disconnected"),
        ("a", Change.MORE, "silence (disconnected)"),
    ]
    lost = found.differences[0].episode
    assert lost.began_at - T0 == pytest.approx(105, abs=1)
    assert lost.ended_at == T0 + 107
    assert lost.text.startswith("Nothing heard for")
    assert lost.note == "This life of it was not heard again."
    assert (found.in_force.counts["disconnected"], found.other.counts["disconnected"]) == (0, 1)
    same = await judged(store, config(**TIGHTER), in_force=config(**TIGHTER))
    assert same.differences == []


async def test_who_spoke_again_would_have_answered(store: Callable[[], SqliteStore]) -> None:
    """A late beat of the same life: the tighter policy would have asked, and not been right."""
    async with Recording(store) as hub:
        await beats(hub, 0, 200, {"a": "1", "b": "1"}, silent={"a": [(100.0, 104.0)]})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert found.differences == []
    assert found.in_force.asked == 0
    assert (found.other.asked, found.other.answered) == (1, 1)


async def test_who_did_not_answer_the_hub_would_not_have_answered_earlier(
    store: Callable[[], SqliteStore],
) -> None:
    """Cut off for a minute: the same silence, found sooner by the one and not at all by the other."""
    async with Recording(store) as hub:
        await beats(hub, 0, 300, {"a": "1", "b": "1"}, silent={"a": [(100.0, 160.0)]})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    (flip, finding) = found.differences
    assert (flip.change, flip.episode.what, flip.episode.note) == (Change.EARLIER, "disconnected", "")
    assert flip.by == pytest.approx(5, abs=0.5)
    assert finding.episode.what == "silence (disconnected)"
    found = await judged(store, config(**LOOSER))
    assert [(change, what) for _, change, what, _ in lines(found.differences)] == [
        (Change.LESS, "disconnected"),
        (Change.LESS, "silence (disconnected)"),
    ]


async def test_a_silence_that_reaches_the_end_is_told_as_such(store: Callable[[], SqliteStore]) -> None:
    async with Recording(store) as hub:
        await beats(hub, 0, 107, {"a": "1", "b": "1"}, silent={"a": [(96.0, 1e9)]})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert {one.episode.note for one in found.differences} == {
        "It was not heard again as far as the record goes."
    }


async def test_a_pong_that_was_given_then_counts(store: Callable[[], SqliteStore]) -> None:
    """Asked by the hub itself, and answered: under either policy nobody was lost."""
    async with Recording(store, answers=lambda _, __: True) as hub:
        await beats(hub, 0, 200, {"a": "1", "b": "1"}, silent={"a": [(100.0, 140.0)]})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert found.differences == []
    assert found.other.asked >= found.in_force.asked > 0


# --- findings -----------------------------------------------------------------------------------------


async def working(hub: Recording, until: float) -> None:
    """One agent with a task that calls the same tool for ever and has saved its work once."""
    await hub.hear(0, BeatReceived("a", 0, "1"), TaskAssigned(agent_id="a", incarnation="1", task_id="t"))
    await hub.hear(1, CheckpointSaved(agent_id="a", incarnation="1", checkpoint_id="c", task_id="t"))
    for step in range(1, int(until / 5)):
        said: list[Signal] = [BeatReceived("a", step, "1")]
        if step % 10 == 0:
            said.append(
                ToolFinished(
                    agent_id="a",
                    incarnation="1",
                    call_id=f"c-{step}",
                    tool="grep",
                    args_digest="x",
                    result_digest="y",
                )
            )
        await hub.hear(step * 5, *said)
    await hub.stop()


async def test_findings_of_one_policy_are_told_with_their_sentence(store: Callable[[], SqliteStore]) -> None:
    async with Recording(store) as hub:
        await working(hub, 180)
    other = config(policy__looping__same_notice=3, policy__stall__checkpoint_degraded_after=60)
    found = await judged(store, other)
    told = {one.episode.what: one for one in found.differences}
    assert {one.change for one in told.values()} == {Change.MORE}
    assert "no_checkpoint (degraded)" in told
    assert any(what.startswith("looping") for what in told)
    assert told["no_checkpoint (degraded)"].episode.began_at == T0 + 61
    assert "checkpoint" in told["no_checkpoint (degraded)"].episode.text


async def test_what_began_before_the_time_in_question_is_known_from_the_record_before_it(
    store: Callable[[], SqliteStore],
) -> None:
    """An hour is heard to warm up; its own differences are told only if they last into that time."""
    async with Recording(store) as hub:
        await working(hub, 1500)
    found = await judged(store, config(policy__stall__checkpoint_degraded_after=900), since=1000, until=1200)
    moved = {one.episode.what: one for one in found.differences}["no_checkpoint (degraded)"]
    assert moved.change is Change.LATER
    assert moved.by == pytest.approx(300)
    found = await judged(store, config(policy__stall__checkpoint_degraded_after=900), since=100, until=550)
    assert found.differences == []
    assert found.in_force.counts["no_checkpoint (degraded)"] == 0


async def test_an_agent_that_was_stopped_then_is_not_taken_for_lost(store: Callable[[], SqliteStore]) -> None:
    async with Recording(store) as hub:
        await beats(hub, 0, 100, {"a": "1", "b": "1"})
        await hub.hear(100, TerminationDone(agent_id="a", incarnation="1", order_id="1-7"))
        await beats(hub, 100, 200, {"b": "1"})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert found.differences == []
    assert found.in_force.counts == {"terminated": 1}


# --- the hub's own times ------------------------------------------------------------------------------


async def test_nobody_is_judged_by_the_time_the_hub_was_away(store: Callable[[], SqliteStore]) -> None:
    """It crashes, and what it had not kept is gone. Who was restarted meanwhile is not lost; who died is found, by both."""
    lives = {"a": "1", "b": "1", "c": "1"}
    async with Recording(store) as hub:
        await beats(hub, 0, 107, lives)
        await hub.crash()
        hub.now = T0 + 190
        await hub.start()
        await beats(hub, 195, 300, {"a": "1", "b": "2"})
        await hub.stop()
    assert (await judged(store)).differences == []
    found = await judged(store, config(**TIGHTER))
    assert [
        (one.episode.agent_id, one.change) for one in found.differences if "(" not in one.episode.what
    ] == [("c", Change.EARLIER)]
    ((began, ended),) = found.survey.away
    assert (began - T0, ended - T0) == (100, 190)
    assert found.in_force.counts["disconnected"] == found.other.counts["disconnected"] == 1


async def test_nobody_is_judged_by_the_time_the_hub_slept(store: Callable[[], SqliteStore]) -> None:
    async with Recording(store) as hub:
        await beats(hub, 0, 100, {"a": "1", "b": "1"})
        await hub.sleep(130)
        await beats(hub, 130, 200, {"a": "1", "b": "2"})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert found.differences == []
    assert [round(ended - began) for began, ended in found.survey.slept] == [30]
    assert found.other.counts == {}


async def test_nobody_is_judged_while_the_path_to_it_was_lost_and_the_dead_are_found_after_it(
    store: Callable[[], SqliteStore],
) -> None:
    """`far` and `dead` speak through a server that dies for a minute; only `dead` does not come back with it. The other
    policy is stricter about silence, and judges them no earlier than that."""

    async def speak(hub: Recording, since: int, until: int, *ids: str) -> None:
        for at in range(since, until, 5):
            far = [BeatReceived(agent_id, at // 5, "one", source="ai-maestro") for agent_id in ids]
            await hub.hear(at, BeatReceived("near", at // 5, "one", source="token"), *far)

    async with Recording(store) as hub:
        await speak(hub, 0, 60, "far", "dead")
        await hub.hear(61, PathLost(path="ai-maestro"))
        await speak(hub, 65, 120)
        await hub.hear(121, PathRestored(path="ai-maestro"))
        await speak(hub, 125, 200, "far")
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert found.survey.lost_paths == {"ai-maestro": [(T0 + 61, T0 + 121)]}
    assert found.in_force.counts["disconnected"] == found.other.counts["disconnected"] == 1
    assert {one.episode.agent_id for one in found.differences} == {"dead"}
    assert min(one.episode.began_at for one in found.differences) > T0 + 121


async def test_nobody_is_judged_while_the_hub_was_blind(store: Callable[[], SqliteStore]) -> None:
    """The bus was cut for everybody; then some come back as other lives."""
    lives = {"a": "1", "b": "1", "c": "1"}
    async with Recording(store) as hub:
        await beats(hub, 0, 100, lives)
        hub.blind = True
        await hub.wait(160)
        hub.blind = False
        await beats(hub, 165, 300, {**lives, "a": "2"})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert found.differences == []
    assert len(found.survey.blind) == 1
    assert found.other.counts == {}


async def test_who_was_not_written_down_all_the_time_is_left_out_up_to_then(
    store: Callable[[], SqliteStore],
) -> None:
    """A sample: what is not in it is not silent, only unknown."""
    async with Recording(store, budget=4) as hub:
        await beats(hub, 0, 100, {f"a-{n}": "1" for n in range(5)})
        await beats(hub, 100, 130, {f"a-{n}": "1" for n in range(5)}, every=0.25)
        await beats(hub, 130, 200, {f"a-{n}": "1" for n in range(5)})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert found.survey.missed
    assert found.survey.left_out_until
    assert found.differences == []
    assert found.other.counts == {}


async def test_after_a_restart_who_is_in_another_sample_is_not_silent(
    store: Callable[[], SqliteStore],
) -> None:
    async with Recording(store, budget=1) as hub:
        await beats(hub, 0, 100, {"a": "1", "b": "1"})
        await hub.stop()
        hub.now = T0 + 110
        await hub.start()
        await beats(hub, 115, 300, {"c": "1", **{f"x-{n}": "1" for n in range(6)}, "a": "1", "b": "1"})
        await hub.stop()
    found = await judged(store, config(**TIGHTER))
    assert found.survey.missed
    assert {"a", "b"} <= set(found.survey.left_out_until)
    assert found.other.counts == {}


def test_a_finding_that_becomes_worse_is_another_spell() -> None:
    """And episodes of a kind belong together if they overlap."""
    ours, theirs = Episodes(), Episodes()

    def found(at: float, severity: Severity) -> FindingOpened:
        return FindingOpened(at, "a", Finding(Kind.NO_CHECKPOINT, 0.0, severity, f"since {at}"))

    for episodes, delay in ((ours, 0.0), (theirs, 5.0)):
        episodes.see(found(10 + delay, Severity.DEGRADED))
        episodes.see(found(100, Severity.STUCK))
        episodes.see(FindingClosed(120, "a", Kind.NO_CHECKPOINT, 0.0))
    theirs.see(found(200, Severity.STUCK))
    assert [(one.what, one.began_at, one.ended_at) for one in ours.all] == [
        ("no_checkpoint (degraded)", 10, 100),
        ("no_checkpoint (stuck)", 100, 120),
    ]
    told = [
        (one.change, one.episode.what, one.episode.began_at, one.by) for one in compare(ours.all, theirs.all)
    ]
    assert told == [
        (Change.LATER, "no_checkpoint (degraded)", 15, 5),
        (Change.MORE, "no_checkpoint (stuck)", 200, 0),
    ]
    assert [one.what for one in ours.between(0, 99)] == ["no_checkpoint (degraded)"]


# --- asking -------------------------------------------------------------------------------------------


async def test_one_agent_can_be_asked_about(store: Callable[[], SqliteStore]) -> None:
    async with Recording(store) as hub:
        silent = {"a": [(100.0, 160.0)], "b": [(200.0, 260.0)]}
        await beats(hub, 0, 300, {"a": "1", "b": "1", "c": "1"}, silent=silent)
        await hub.stop()
    found = await judged(store, config(**TIGHTER), agents=["b"])
    assert {one.episode.agent_id for one in found.differences} == {"b"}
    assert found.agents == 1
    assert found.noted["disconnected"] == 1
    with pytest.raises(UsageError, match=r"'nobody' is not in the journal of that time; a, b, c are among"):
        await judged(store, agents=["a", "nobody"])


async def test_a_time_without_a_journal_is_told_with_what_there_is(store: Callable[[], SqliteStore]) -> None:
    async with Recording(store) as hub:
        with pytest.raises(UsageError, match="nor of any other"):
            await judged(store)
        await beats(hub, 0, 30, {"a": "1"})
        await hub.stop()
    for since, until in ((-5000, -1000), (1000, 2000)):
        with pytest.raises(UsageError, match=r"nothing of that time; the oldest it has is of 2026-09-2\d "):
            await judged(store, since=since, until=until)


async def test_a_replay_takes_over_from_nobody(store: Callable[[], SqliteStore]) -> None:
    """The hub goes on writing while its journal is read."""
    async with Recording(store) as hub:
        await beats(hub, 0, 60, {"a": "1"})
        before = await judged(store)
        await beats(hub, 60, 120, {"a": "1"})
        await hub.stop()
    assert (await judged(store)).survey.signals > before.survey.signals


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no database .*nowhere/hub\.db"):
        store_to_read(f"sqlite://{tmp_path}/nowhere/hub.db")
    assert list(tmp_path.iterdir()) == []


async def test_a_damaged_journal_is_told_as_such(store: Callable[[], SqliteStore]) -> None:
    hub = store()
    await hub.open()
    await hub.commit(Commit(1, journal=[Chunk(T0, T0 + 10, 3, b"rubbish")]))
    await hub.close()
    with pytest.raises(AdapterError, match="damaged"):
        await judged(store)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories)
async def test_whatever_was_heard_the_same_policy_judges_the_same(
    history: Sequence[tuple[float, list[Signal], bool]],
) -> None:
    name, at, told = str(uuid.uuid4()), 0.0, 0
    async with Recording(lambda: MemoryStore(name)) as hub:
        for wait, signals, restart in history:
            at += min(wait, 61.0)
            await hub.hear(at, *signals)
            told += sum(hasattr(signal, "agent_id") for signal in signals)
            if restart:
                await hub.stop()
                await hub.start()
        await hub.stop()
    if not told:
        return
    reading = MemoryStore(name)
    found = await replay(reading, config(), config(), since=T0 - 1, until=T0 + at + 100)
    assert found.differences == []
    assert found.in_force == found.other
