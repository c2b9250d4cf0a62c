"""Every detector is shown the sick it must find and the healthy that look like them; and a judge that errs is caught."""

from __future__ import annotations

import pytest

from lifesigns.core.detectors import looping
from lifesigns.core.effects import Kind, Severity
from lifesigns.core.profiles import PolicyBook
from lifesigns.simulation.trials import ALL, DETECTORS, Trial, run
from lifesigns.simulation.trials.trial import healthy, sick


def name(trial: Trial) -> str:
    return f"{trial.detector}: {trial.name}"


@pytest.mark.parametrize("trial", ALL, ids=name)
def test_the_sick_are_found_and_the_healthy_spared(trial: Trial) -> None:
    outcome = run(trial, PolicyBook(), seed=1)
    assert outcome.wrong == "", f"{outcome.findings} {outcome.done}"


@pytest.mark.parametrize("detector", DETECTORS)
def test_every_detector_has_three_sick_and_three_healthy(detector: str) -> None:
    mine = [trial for trial in ALL if trial.detector == detector]
    assert sum(trial.sick for trial in mine) >= 3
    assert sum(not trial.sick for trial in mine) >= 3


def test_every_finding_there_is_belongs_to_a_detector_here() -> None:
    """A new kind of finding needs its pairs, too."""
    assert frozenset().union(*DETECTORS.values()) == set(Kind)


def test_no_two_trials_have_one_name() -> None:
    assert len({name(trial) for trial in ALL}) == len(ALL)


def test_a_trial_is_replayed_from_its_seed() -> None:
    trial = next(trial for trial in ALL if name(trial) == "silence: loses one beat in ten, and answers")
    assert run(trial, PolicyBook(), 7) == run(trial, PolicyBook(), 7)


def test_a_sick_agent_that_nobody_finds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looping, "holding", lambda call_history, policy: None)
    trial = next(trial for trial in ALL if name(trial) == "looping: cycle: two calls, over and over")
    assert run(trial, PolicyBook(), 1).wrong == "it was not found"


def test_what_is_found_and_forgotten_again_is_told() -> None:
    """A worker that says it idles every other minute is found stuck in between: that is not to be found."""
    idles = next(trial for trial in ALL if name(trial) == "overload: busy moments")
    found = next(trial for trial in ALL if name(trial) == "overload: leaks 100 MB a minute")
    flapping = sick("overload", "one beat too many", idles.life, severity=Severity.NOTICE)
    assert run(flapping, PolicyBook(), 1).wrong == "it was not found"
    assert run(healthy("overload", "leaks", found.life), PolicyBook(), 1).wrong.startswith(
        "degraded: High load"
    )
