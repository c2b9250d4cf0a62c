"""What happened, in sentences a newcomer understands."""

from __future__ import annotations

from typing import Any

import pytest

from lifesigns.core.effects import (
    Brake,
    Ending,
    Fact,
    Finding,
    FindingOpened,
    Flip,
    Intervention,
    Kind,
    NeedsHuman,
    Recovered,
    Recovery,
    Rung,
    Severity,
    Stage,
)
from lifesigns.core.health import Cause, Health
from lifesigns.demo.story import sentence_of
from lifesigns.events import event_of
from lifesigns.views.builders.events import event_view

LOOP = Finding(Kind.LOOPING, 1.0, Severity.STUCK, "search was called 8 times.")
NOTICE = Finding(Kind.LOOPING, 1.0, Severity.NOTICE, "search was called 4 times.")


def sentence(fact: Fact) -> str:
    """The story's sentence for a fact, as it comes out of a hub."""
    return sentence_of(event_view(event_of(1, fact)))


def step(rung: Rung, processes: Stage, text: str = "", by: str = "") -> Intervention:
    kind = Ending if (rung, processes) == (Rung.TERMINATE, Stage.DONE) else Intervention
    return kind(1.0, "a", "1-1", rung, processes, 1, text, by)


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (Flip(1.0, "a", Health.STARTING, Health.HEALTHY, "heard"), "a is there and works."),
        (Flip(1.0, "a", Health.STUCK, Health.HEALTHY, "well again"), "a is well again."),
        (
            Flip(1.0, "a", Health.HEALTHY, Health.STUCK, LOOP.text, None, (LOOP,)),
            "a is stuck: search was called 8 times.",
        ),
        (
            Flip(1.0, "a", Health.HEALTHY, Health.DISCONNECTED, "Signal 9.", Cause.CRASH),
            "a has crashed: Signal 9.",
        ),
        (
            Flip(1.0, "a", Health.HEALTHY, Health.DISCONNECTED, "Still.", Cause.FREEZE),
            "a is frozen: Still.",
        ),
        (
            Flip(1.0, "a", Health.HEALTHY, Health.DISCONNECTED, "Silent.", Cause.UNKNOWN),
            "a is disconnected: Silent.",
        ),
        (FindingOpened(1.0, "a", NOTICE), "a is noticed: search was called 4 times."),
        (step(Rung.NUDGE, Stage.ORDERED, "Facts."), "lifesigns nudges a: Facts."),
        (
            step(Rung.NUDGE, Stage.ORDERED, "Yes.", by="admin"),
            "You answer a (the demo does it for you): Yes.",
        ),
        (step(Rung.NUDGE, Stage.ANSWERED, "progress: on it"), "a answers: progress: on it"),
        (step(Rung.NUDGE, Stage.ANSWERED, "blocked"), "a answers: blocked"),
        (
            step(Rung.ESCALATE, Stage.ORDERED, "Facts."),
            "lifesigns asks people to decide about a. Nobody answers in this demo.",
        ),
        (
            step(Rung.TERMINATE, Stage.ORDERED, "Facts."),
            "lifesigns asks a to save and end, and will make it: Facts.",
        ),
        (
            step(Rung.TERMINATE, Stage.HELD, "limit"),
            "lifesigns waits before it does more about a: limit",
        ),
        (step(Rung.RESPAWN, Stage.FAILED, "no way"), "That did not work for a: no way"),
        (step(Rung.TERMINATE, Stage.DONE, "Facts."), "a has ended."),
        (
            Recovery(1.0, "a", "t", Recovered.INITIATED, 1, "turn-4"),
            "lifesigns starts a anew, from checkpoint turn-4.",
        ),
        (Recovery(1.0, "a", "t", Recovered.INITIATED, 1), "lifesigns starts a anew, from nothing."),
        (
            Recovery(1.0, "a", "t", Recovered.COMPLETED, 1),
            "a lives again, and is watched closely for a while.",
        ),
        (
            Recovery(1.0, "a", "t", Recovered.FAILED, 3, None, "too often"),
            "a is not started anew: too often",
        ),
        (
            NeedsHuman(1.0, "a", "waiting_for_human", "a waits for a human: May I?"),
            "A person is told: a waits for a human: May I?",
        ),
        (
            Brake(1.0, "fleet", True, 6, 7),
            "6 of 7 in fleet are unwell at once: lifesigns does nothing more there and asks people.",
        ),
    ],
)
def test_a_fact_is_told_in_a_sentence(fact: Fact, said: str) -> None:
    assert sentence(fact) == said


@pytest.mark.parametrize(
    "fact",
    [
        Flip(1.0, "a", Health.HEALTHY, Health.TERMINATED, "left: done"),
        Flip(1.0, "a", Health.STUCK, Health.DEGRADED, "half well", None, (NOTICE,)),
        FindingOpened(1.0, "a", LOOP),
        step(Rung.NUDGE, Stage.DELIVERED),
        step(Rung.NUDGE, Stage.SEEN),
        NeedsHuman(1.0, "a", "escalation", "told by the escalation itself"),
        Brake(1.0, "fleet", False, 1, 7),
    ],
)
def test_what_another_sentence_tells_is_not_told_twice(fact: Fact) -> None:
    assert sentence(fact) == ""


def test_what_it_does_not_know_it_does_not_tell() -> None:
    unknown: Any = event_view(event_of(1, NeedsHuman(1.0, "a", "x", "y")))
    assert sentence_of(unknown) == ""
