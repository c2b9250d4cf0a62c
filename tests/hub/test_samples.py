"""Once a minute every agent that beats, in numbers; spread over the minute."""

from __future__ import annotations

from lifesigns.core.agent import Agent
from lifesigns.core.engine import Engine
from lifesigns.core.signals import BeatReceived, Metrics
from lifesigns.hub.last_beats import LastBeats, SingleBeat
from lifesigns.hub.samples import MINUTE, Sampler
from lifesigns.ports import Sample


def agent(name: str, beats: int = 0) -> Agent:
    made = Agent(name, 1, since=0.0)
    made.beats = beats
    made.started_at = 1.0
    return made


def minute_of(sampler: Sampler, agents: dict[str, Agent], begins_at: float) -> list[Sample]:
    """All that is taken in a minute, looked at once a second."""
    return [sample for second in range(60) for sample in sampler.take(agents, begins_at + second + 0.5)]


def test_a_sample_counts_the_beats_since_the_one_before() -> None:
    sampler, one = Sampler(LastBeats()), agent("a", 7)
    assert [(s.at, s.beats) for s in minute_of(sampler, {"a": one}, 600.0)] == [(600.0, 7)]
    one.beats = 19
    assert [(s.at, s.beats) for s in minute_of(sampler, {"a": one}, 660.0)] == [(660.0, 12)]


def test_who_was_silent_for_a_minute_has_no_sample_of_it() -> None:
    sampler, one = Sampler(LastBeats()), agent("a", 7)
    minute_of(sampler, {"a": one}, 600.0)
    assert minute_of(sampler, {"a": one}, 660.0) == []


def test_another_life_counts_from_one() -> None:
    sampler, one = Sampler(LastBeats()), agent("a", 700)
    minute_of(sampler, {"a": one}, 600.0)
    one.beats, one.started_at = 5, 650.0
    assert [s.beats for s in minute_of(sampler, {"a": one}, 660.0)] == [5]


def test_everybody_gets_one_sample_and_no_second_has_many() -> None:
    sampler = Sampler(LastBeats())
    agents = {f"{n}": agent(f"{n}", 3) for n in range(1000)}
    sizes = [len(sampler.take(agents, 600.0 + second + 0.5)) for second in range(60)]
    assert sum(sizes) == 1000
    assert max(sizes) <= 1000 / 50 * 2 + 1


def test_a_round_that_was_not_finished_does_not_delay_the_next() -> None:
    sampler, one = Sampler(LastBeats()), agent("a", 3)
    sampler.take({"a": one}, 600.0)
    one.beats = 5
    assert [s.beats for s in minute_of(sampler, {"a": one}, 600.0 + 5 * MINUTE)][-1:] == [2]


def test_gauges_are_those_of_the_last_beat() -> None:
    engine = Engine()
    engine.hear(BeatReceived("a", 1, metrics=Metrics(cpu_percent=90.0, memory_mb=99.0)), 600.0)
    engine.hear(BeatReceived("a", 2, metrics=Metrics(cpu_percent=12.5, memory_mb=310.0)), 600.1)
    (sample,) = Sampler(LastBeats()).take(engine.beliefs.agents, 600.5)
    assert (sample.cpu_percent, sample.memory_mb) == (12.5, 310.0)


def test_those_who_are_gone_are_not_remembered() -> None:
    sampler = Sampler(LastBeats())
    minute_of(sampler, {f"{n}": agent(f"{n}", 1) for n in range(100)}, 600.0)
    minute_of(sampler, {"a": agent("a", 1)}, 660.0)
    assert set(sampler._counted) == {"a"}


def test_of_a_worker_it_has_its_tasks_its_room_and_what_it_says_of_itself() -> None:
    """A worker says how many more tasks it can take; of an agent that does not, nothing is decoded or stored."""
    engine, last_beats = Engine(), LastBeats()
    counts = Metrics(cpu_percent=45.2, memory_mb=2048.0, tasks_completed=42, tasks_failed=2, uptime_s=7200.0)
    worker = BeatReceived(
        "w", 1, "one", status="degraded", tasks=("t-1", "t-2"), capacity_available=3, metrics=counts
    )
    for beat in (worker, BeatReceived("other", 1, "one", status="busy", metrics=counts)):
        engine.hear(beat, 600.0)
        last_beats[beat.agent_id] = SingleBeat(beat, 600.0)
    by_agent = {
        sample.agent_id: sample for sample in minute_of(Sampler(last_beats), engine.beliefs.agents, 600.0)
    }
    told, other = by_agent["w"], by_agent["other"]
    assert (told.status, told.tasks, told.capacity) == ("degraded", 2, 3)
    assert (told.tasks_completed, told.tasks_failed, told.uptime_s) == (42, 2, 7200.0)
    assert (other.cpu_percent, other.status, other.tasks_completed) == (45.2, None, None)
