"""Beats of calm agents go a short way, and go it together. The law: it changes no fact, and no belief but how soon an agent
is looked at again."""

from __future__ import annotations

from dataclasses import fields
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lifesigns.core.agent import Agent
from lifesigns.core.effects import Effect, Refusal
from lifesigns.core.engine import Engine
from lifesigns.core.health import Doing
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import BeatReceived, CheckpointSaved, Metrics, ModelFinished, Signal
from tests.core.harness import START, Watch

Round = tuple[float, list[BeatReceived]]

CAPPED = {"spending": {"tokens_max": 3000, "hour_cost_max": 2.0, "spike_min_samples": 2, "spike_limit": 2.0}}
LAZY = frozenset({"armed_at", "other_at", "margin", "refit_at"})
"""When an agent is looked at again, and what is reckoned anew then: later at the latest when it matters."""


def new_engine(changes: dict[str, Any]) -> Engine:
    swift = {"silence": {"interval": 2.0, "timeout": 8.0, "ping_wait": 0.5}}
    return Engine(PolicyBook(Policy().with_changes({**swift, **changes})), FleetPolicy(canary_every=0))


def a_life(chance: Random, agent_id: str, rounds: int) -> list[BeatReceived]:
    """The beats of one agent: mostly the same again and again, and now and then something new."""
    life, tokens, cost, errors = chance.choice((None, "one")), 0, 0.0, 0
    tells = chance.sample(("tokens", "cost", "errors", "gauges", "lag", "metadata"), chance.randrange(5))
    doing, task = chance.choice((None, Doing.WORKING)), chance.choice((None, "t"))
    beats = []
    for seq in range(1, rounds + 1):
        rare = chance.random() < 0.05
        tokens += chance.choice((0, 5, 40))
        cost += chance.choice((0.0, 0.01))
        errors += rare
        beats.append(
            BeatReceived(
                agent_id,
                seq if not rare else max(1, seq - 2),
                life,
                doing=Doing.IDLE if rare and chance.random() < 0.3 else doing,
                task_id="other" if rare and chance.random() < 0.2 else task,
                load=0.5,
                token_count=tokens if "tokens" in tells else None,
                cost_usd=cost if "cost" in tells else None,
                error_count=errors if "errors" in tells else None,
                loop_lag_ms=60_000.0 if rare else 2.0 if "lag" in tells else None,
                metrics=Metrics(cpu_percent=95.0 if rare else 5.0) if "gauges" in tells else None,
                metadata={"provider": "q" if rare else "p"} if "metadata" in tells else None,
            )
        )
    return beats


def a_day(seed: int, rounds: int = 120) -> list[Round]:
    chance = Random(seed)
    lives = [a_life(chance, f"agent-{n}", rounds) for n in range(5)]
    now, day = START, list[Round]()
    for beats in zip(*lives, strict=True):
        now += chance.choice((0.0, 0.5, 2.0, 2.0, 7.0, 20.0 if chance.random() < 0.1 else 2.0))
        day.append((now, [beat for beat in beats if chance.random() < 0.9]))
    return day


def words_at(number: int) -> list[Signal]:
    """Words in between: who reports its calls, and who saves."""
    if number % 17 == 3:
        return [ModelFinished(agent_id="agent-0", tokens_in=7, tokens_out=9)]
    return [CheckpointSaved(agent_id="agent-1", checkpoint_id="c")] if number % 23 == 5 else []


def belief(agent: Agent) -> dict[str, Any]:
    return {field.name: getattr(agent, field.name) for field in fields(agent) if field.name not in LAZY}


def lived(
    day: list[Round], changes: dict[str, Any], *, together: bool = False
) -> tuple[Engine, list[Effect]]:
    engine, effects = new_engine(changes), list[Effect]()
    for number, (now, beats) in enumerate(day):
        if together:
            effects += engine.hear_beats(beats, now)
        else:
            for beat in beats:
                effects += engine.hear(beat, now)
        for word in words_at(number):
            effects += engine.hear(word, now)
    return engine, effects


def lived_closely(day: list[Round], changes: dict[str, Any]) -> tuple[Engine, list[Effect]]:
    """The same day without the short way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lifesigns.core.engine.receive_calm", lambda beats, *_: next(iter(beats), None))
        return lived(day, changes)


@pytest.mark.parametrize("changes", [{}, CAPPED], ids=["plain", "capped"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_beats_heard_together_are_heard_one_after_the_other(changes: dict[str, Any], seed: int) -> None:
    day = a_day(seed)
    one, effects = lived(day, changes)
    other, same = lived(day, changes, together=True)
    assert same == effects
    assert other.beliefs.agents == one.beliefs.agents
    assert other.beliefs.awareness == one.beliefs.awareness


@pytest.mark.parametrize("changes", [{}, CAPPED], ids=["plain", "capped"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_the_short_way_leads_to_where_the_long_one_does(changes: dict[str, Any], seed: int) -> None:
    """Totals, errors, gauges, providers: what a calm agent's beat says is counted as if it had been looked at closely."""
    day = a_day(seed)
    short, effects = lived(day, changes, together=True)
    long, same = lived_closely(day, changes)
    assert same == effects
    for agent_id, agent in short.beliefs.agents.items():
        assert belief(agent) == belief(long.beliefs.agents[agent_id])


def test_of_strays_only_those_in_a_row_are_a_restart() -> None:
    """A bus that repeats an old beat now and then must not make us count from there."""
    watch = Watch()
    for seq in range(1, 10):
        watch.beat(seq=seq)
        watch.beat(seq=1)
        watch.run_until(watch.now + 1.0)
    assert watch.agent().seq == 9
    assert watch.facts(Refusal)
    for _ in range(3):
        watch.beat(seq=1)
    assert watch.agent().seq == 1


def test_a_beat_that_cannot_be_noted_sets_its_agent_aside_and_the_others_are_heard() -> None:
    watch = Watch()
    watch.may_poison = True
    for agent_id in ("a", "b", "c"):
        watch.beat(agent_id)
    watch.agent("b").seq = "our bug"  # type: ignore[assignment]
    beats = [replace(BeatReceived(agent_id), seq=2) for agent_id in ("a", "b", "c")]
    watch.engine.hear_beats(beats, watch.now)
    assert [watch.agent(agent_id).past.poisoned for agent_id in ("a", "b", "c")] == [False, True, False]
    assert (watch.agent("a").seq, watch.agent("c").seq) == (2, 2)
