"""The journal: what is read back is judged as what was heard, and it costs what it may cost."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.engine import Engine
from lifesigns.core.health import Doing
from lifesigns.core.signals import BeatReceived, Metrics, Signal
from lifesigns.errors import AdapterError
from lifesigns.hub import journal as journal_module
from lifesigns.hub.journal import WAITING_MAX, WINDOW, Journal, read
from lifesigns.ports import Chunk
from lifesigns.wire import decode_beats, encode_beat
from tests.core.test_engine_properties import beats, engine, others, waits

T0 = 1_790_000_000.0

full_beats = st.builds(
    replace,
    beats,
    tasks=st.just(()) | st.just(("t-1", "t-2")),
    cost_usd=st.none() | st.floats(0, 1e3),
    metrics=st.none() | st.builds(Metrics, st.none() | st.floats(0, 100), st.none() | st.floats(0, 1e5)),
    metadata=st.none() | st.sampled_from(({}, {"x": "y"}, {"provider": ""}, {"provider": "p", "x": "z"})),
    source=st.sampled_from(("", "token-1")),
)
histories = st.lists(st.tuples(waits, st.lists(full_beats | others, max_size=4), st.booleans()), max_size=20)


def beat(agent_id: str = "a", seq: int | None = None, **said: object) -> BeatReceived:
    return replace(BeatReceived(agent_id, seq, "one"), **said)


def heard(chunks: Iterable[Chunk]) -> list[tuple[float, Signal]]:
    return [pair for chunk in chunks for pair in read(chunk)]


def judged(by: Engine, heard: Iterable[tuple[float, Signal]], until: float) -> list[e.Effect]:
    """Everything an engine says that hears this, looked at as a hub does."""
    said = list(by.advance(T0))
    for at, signal in heard:
        while by.wake_at() < at:
            said += by.advance(by.wake_at())
        said += by.hear(signal, at)
    while by.wake_at() < until:
        said += by.advance(by.wake_at())
    return said


@settings(max_examples=80)
@given(history=histories, name=st.sampled_from(("swarm", "balanced")))
def test_an_engine_that_reads_the_journal_says_what_the_one_said_that_heard(
    history: Sequence[tuple[float, list[Signal], bool]], name: str
) -> None:
    """Facts and orders, bit for bit, however the chunks were cut; but for canaries and groups, which are the hub's own, and
    for offers of tasks, because the journal does not know who has room."""
    journal, told, chunks, at = Journal(1, T0), list[tuple[float, Signal]](), list[Chunk](), T0
    for wait, signals, cut in history:
        at += wait
        journal.note(at, signals)
        told += [
            (at, signal)
            for signal in signals
            if hasattr(signal, "agent_id") or isinstance(signal, s.PathLost | s.PathRestored)
        ]
        if cut:
            chunks += journal.take(at)
    chunks += journal.take(at)
    assert sum(chunk.signals for chunk in chunks) == len(told)
    found = heard(chunks)
    assert [one for one, _ in found] == [one for one, _ in told]
    assert [signal for _, signal in found if isinstance(signal, s.Report)] == [
        signal for _, signal in told if isinstance(signal, s.Report)
    ]
    calm = {"name": name, "canary": False, "moves": False}
    assert judged(engine(**calm), found, at + 100) == judged(engine(**calm), told, at + 100)  # type: ignore[arg-type]


@settings(max_examples=30)
@given(said=st.lists(full_beats, min_size=1, max_size=8))
def test_beats_from_the_wire_are_journalled_as_beats_from_elsewhere(said: list[BeatReceived]) -> None:
    raw = b"[" + b",".join(encode_beat(one) for one in said) + b"]"
    read_at_door = decode_beats(raw, "token-1", T0).accepted
    journal = Journal(1, T0)
    journal.note(T0, read_at_door)
    told = [(T0, one) for one in read_at_door]
    assert judged(engine(), heard(journal.take(T0)), T0 + 100) == judged(engine(), told, T0 + 100)


def test_everything_the_engine_judges_by_is_written_and_can_be_taken_back() -> None:
    """Each field alone, and none of it after: what a beat no longer says is not said for it."""
    said: list[dict[str, object]] = [
        {"incarnation": None, "sent_at": 17.25},
        {"incarnation": "two"},
        {"doing": Doing.RATE_LIMITED, "until": T0 + 60},
        {"task_id": "t-1"},
        {"tasks": ("t-2", "t-3")},
        {"token_count": 2**63 - 1, "cost_usd": 0.1 + 0.2},
        {"error_count": 0},
        {"loop_lag_ms": 1e-9},
        {"metrics": Metrics()},
        {"metrics": Metrics(12.5, None)},
        {"host": "h", "role": "standby", "source": "token-1"},
        {"metadata": {}},
        {"metadata": {"provider": "p"}},
    ]
    told = [one for fields in said for one in (beat("a", 3, **fields), beat("a", None))]
    journal = Journal(1, T0)
    journal.note(T0, told)
    assert heard(journal.take(T0)) == [(T0, one) for one in told]


def test_what_the_engine_does_not_judge_is_not_written() -> None:
    journal = Journal(1, T0)
    journal.note(T0, [beat(seq=7, load=0.5, phase="tests", progress="1/2", pid=4711, capacity_available=3)])
    assert heard(journal.take(T0)) == [(T0, beat(seq=7))]


def test_unchanged_fields_are_not_written_again() -> None:
    """A beat that says nothing new takes a few bytes, and a chunk can still be read by itself."""
    journal, long = Journal(1, T0), beat(host="h" * 500, role="standby", task_id="t" * 500)
    said = [replace(long, seq=seq) for seq in range(200)]
    journal.note(T0, said[:1])
    (first,) = journal.take(T0 + 1)
    for one in said[1:]:
        journal.note(T0 + 1 + (one.seq or 0), [one])
    (second,) = journal.take(T0 + 300)
    assert len(zlib.decompress(second.data)) < len(zlib.decompress(first.data)) + 200 * 8
    assert [signal for _, signal in read(second)] == said[1:]


def test_the_same_signals_at_the_same_times_give_the_same_bytes() -> None:
    def written() -> Sequence[Chunk]:
        journal = Journal(3, T0, budget=10)
        for n in range(400):
            journal.note(T0 + n / 8, [beat(f"a-{n % 37}", n)])
        return journal.take(T0 + 60)

    assert written() == written()


# --- the hub's own times ------------------------------------------------------------------------------


def test_chunks_follow_each_other_without_a_gap() -> None:
    journal = Journal(1, T0)
    journal.note(T0 + 3, [beat(seq=1)])
    (first,) = journal.take(T0 + 10)
    journal.note(T0 + 11, [beat(seq=2)])
    (second,) = journal.take(T0 + 20)
    assert (first.from_at, first.to_at, second.from_at, second.to_at) == (T0, T0 + 10, T0 + 10, T0 + 20)
    assert [read(first).number, read(second).number] == [1, 2]
    assert (first.signals, second.signals) == (1, 1)


def test_a_restart_is_seen_by_the_epoch() -> None:
    first, second = Journal(4, T0), Journal(5, T0 + 100)
    first.note(T0, [beat()])
    second.note(T0 + 101, [beat()])
    readings = [read(chunk) for chunk in (*first.take(T0 + 1), *second.take(T0 + 102))]
    assert [(one.epoch, one.number, one.chunk.from_at) for one in readings] == [(4, 1, T0), (5, 1, T0 + 100)]


def test_a_quiet_hub_says_once_a_minute_that_it_was_there() -> None:
    """Else nobody could tell a silent fleet from a hub that was off."""
    journal = Journal(1, T0)
    assert journal.take(T0 + 59.9) == []
    (chunk,) = journal.take(T0 + 60)
    assert (chunk.signals, chunk.from_at, chunk.to_at) == (0, T0, T0 + 60)
    assert list(read(chunk)) == []


def test_times_in_which_the_hub_slept_are_written_down() -> None:
    """And there is room for many, because two become one."""
    journal = Journal(1, T0)
    journal.lapsed(T0 + 1, T0 + 5)
    (chunk,) = journal.take(T0 + 6)
    assert read(chunk).lapses == [(T0 + 1, T0 + 5)]
    for n in range(1000):
        journal.lapsed(T0 + n, T0 + n + 0.5)
    (chunk,) = journal.take(T0 + 2000)
    assert len(read(chunk).lapses) <= 64
    assert read(chunk).lapses[-1][1] == T0 + 999.5


def test_chunks_nobody_takes_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one is closed by itself; what is lost is seen by its number."""
    monkeypatch.setattr(journal_module, "SIGNALS_MAX", 100)
    journal = Journal(1, T0)
    for number in range(WAITING_MAX + 4):
        journal.note(T0 + number, [beat(f"a-{n}", number) for n in range(100)])
    chunks = journal.take(T0 + 20)
    assert len(chunks) == WAITING_MAX
    assert [read(chunk).number for chunk in chunks] == list(range(5, 5 + WAITING_MAX))


# --- the budget ---------------------------------------------------------------------------------------


def test_within_its_budget_everybody_is_written_down() -> None:
    journal, given_ = Journal(1, T0, budget=100), 0
    for n in range(3000):
        journal.note(T0 + n * 0.0201, [beat(f"a-{n % 50}", n)])
        given_ += 1
    chunks = journal.take(T0 + 100)
    assert sum(chunk.signals for chunk in chunks) == given_
    assert [(read(chunk).missed, read(chunk).gone) for chunk in chunks] == [(0, [])]


def spoken(journal: Journal, agents: int, every: float, lasts: float, at: float = T0) -> list[Chunk]:
    """A fleet that beats evenly for a while."""
    chunks: list[Chunk] = []
    steps = int(lasts / every)
    for step in range(steps):
        for n in range(agents):
            journal.note(at + step * every + n * every / agents, [beat(f"a-{n}", step)])
        if step % 4 == 3:
            chunks += journal.take(at + (step + 1) * every)
    return chunks


def test_a_fleet_that_says_too_much_is_written_down_in_part_and_that_is_said() -> None:
    """A fixed sample, which nearly fills the budget; what is missing is counted."""
    journal = Journal(1, T0, budget=20)
    readings = [read(chunk) for chunk in spoken(journal, 100, 1.0, 120)]
    assert sum(len(list(one)) + one.missed for one in readings) == 100 * 120
    late = [one for one in readings if one.chunk.from_at >= T0 + 60]
    samples = {frozenset(signal.agent_id for _, signal in one) for one in late}  # type: ignore[union-attr]
    assert len(samples) == 1
    assert 10 <= len(samples.pop()) <= 20
    assert not any(one.gone for one in late)
    assert all(one.missed for one in late)


@settings(max_examples=60, deadline=None)
@given(
    bursts=st.lists(
        st.tuples(
            st.sampled_from((0.0, 0.1, 1.0, 4.0, 11.0, 30.0)),
            st.lists(st.integers(0, 30), max_size=30),
            st.booleans(),
        ),
        max_size=40,
    ),
    budget=st.sampled_from((0.3, 1.0, 3.0)),
)
def test_of_an_agent_everything_is_written_or_it_is_named(
    bursts: list[tuple[float, list[int], bool]], budget: float
) -> None:
    """From its first written signal until it is named as gone, none is missing: its silence is its own."""
    journal, at, seq = Journal(1, T0, budget=budget), T0, 0
    given_, chunks = dict[str, list[tuple[float, int | None]]](), list[Chunk]()
    for wait, agents, cut in bursts:
        at += wait
        batch = []
        for n in agents:
            seq += 1
            batch.append(beat(f"a-{n}", seq))
            given_.setdefault(f"a-{n}", []).append((at, seq))
        journal.note(at, batch)
        if cut:
            chunks += journal.take(at)
    chunks += journal.take(at)
    following: dict[str, int | None] = {}
    for reading in map(read, chunks):
        for _, signal in reading:
            assert isinstance(signal, BeatReceived)
            told = [number for _, number in given_[signal.agent_id]]
            if signal.agent_id in following and signal.agent_id not in reading.gone:
                before = following[signal.agent_id]
                assert told.index(signal.seq) == told.index(before) + 1
            following[signal.agent_id] = signal.seq
        for agent_id in reading.gone:
            following.pop(agent_id, None)
    for agent_id, last in following.items():
        assert given_[agent_id][-1][1] == last


def test_no_window_holds_more_than_its_budget_and_one_delivery() -> None:
    journal, at = Journal(1, T0, budget=10), T0
    written: list[float] = []
    for n in range(400):
        at += 0.05
        journal.note(at, [beat(f"a-{i}", n) for i in range(40)])
    for moment, _ in heard(journal.take(at)):
        written.append(moment)
    late = [moment for moment in written if moment > T0 + 2]
    assert len(late) <= 10 * WINDOW * 2 + 40


def test_when_the_fleet_falls_quiet_others_may_join() -> None:
    journal = Journal(1, T0, budget=20)
    spoken(journal, 100, 1.0, 60)
    chunks = spoken(journal, 100, 10.0, 120, at=T0 + 60)
    last = list(read(chunks[-1]))
    assert len({signal.agent_id for _, signal in last}) == 100  # type: ignore[union-attr]
    assert read(chunks[-1]).missed == 0


def test_a_long_word_takes_as_much_of_the_budget_as_many_short_ones() -> None:
    journal = Journal(1, T0, budget=10)
    errors = [s.ErrorReported(agent_id=f"a-{n}", message="x" * 10_000) for n in range(20)]
    for n, word in enumerate(errors):
        journal.note(T0 + n * 0.01, [word])
    assert sum(chunk.signals for chunk in journal.take(T0 + 1)) < 10


def test_the_hubs_own_canaries_are_neither_written_nor_missed() -> None:
    journal = Journal(1, T0, budget=1)
    for n in range(40):
        journal.note(T0 + n, [s.CanaryReturned(seq=n)])
        journal.note(T0 + n, [beat(f"a-{n}"), s.GroupReleased(group="fleet"), beat(f"b-{n}")])
    readings = [read(chunk) for chunk in journal.take(T0 + 50)]
    assert sum(len(list(one)) + one.missed for one in readings) == 80
    assert not any(isinstance(signal, s.CanaryReturned) for one in readings for _, signal in one)


# --- what cannot be written or read -------------------------------------------------------------------


def test_a_word_that_cannot_be_packed_is_left_out_and_counted() -> None:
    journal = Journal(1, T0)
    bad = s.CheckpointSaved(agent_id="a", checkpoint_id="c", size=2**80)
    journal.note(T0, [beat(seq=1), bad, beat(seq=2)])
    (chunk,) = journal.take(T0 + 1)
    assert [signal.seq for _, signal in read(chunk)] == [1, 2]  # type: ignore[union-attr]
    assert read(chunk).missed == 1


def test_a_beat_that_cannot_be_packed_loses_one_chunk_and_no_more() -> None:
    journal = Journal(1, T0)
    journal.note(T0, [beat(seq=1, token_count=2**80)])
    assert journal.take(T0 + 1) == []
    journal.note(T0 + 2, [beat(seq=2)])
    (chunk,) = journal.take(T0 + 3)
    assert read(chunk).number == 2


@pytest.mark.parametrize(
    "data",
    [b"", b"no zlib", zlib.compress(b""), zlib.compress(b"\xc1"), zlib.compress(msgspec.msgpack.encode([1]))],
)
def test_a_damaged_chunk_is_told_as_such(data: bytes) -> None:
    with pytest.raises(AdapterError, match="damaged") as told:
        read(Chunk(0.0, 1.0, 1, data))
    assert not told.value.transient


def test_the_journal_of_another_lifesigns_is_told_as_such() -> None:
    with pytest.raises(AdapterError, match=r"another lifesigns \(its version is 99"):
        read(Chunk(0.0, 1.0, 1, zlib.compress(msgspec.msgpack.encode([99, {"any": "thing"}]))))
