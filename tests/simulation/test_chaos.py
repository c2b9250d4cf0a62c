"""Chaos in small: what `python -m tools.chaos` does six hundred times."""

from dataclasses import replace

import pytest

from lifesigns.simulation import simulate
from lifesigns.simulation.monitor import Monitor
from tests.simulation.test_invariants_bite import a_life_gets_two_successors
from tools.chaos import KNOWN, Run, config_of, seeds_to_run

SEEDS = (1, 2, 3, 4, 5)
HOUR = 3600.0


def live(seed: int) -> Run:
    """A small world with the chances of its seed, and more failures."""
    config = config_of(seed)
    small = replace(config, agents=8, days=0.12, failure_every=1.5 * HOUR, quiet_for=HOUR)
    return Run(seed, 0.0, simulate(small))


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_fails_nobody_healthy_is_ended_nothing_is_done_twice_and_nothing_is_lost(seed: int) -> None:
    run = live(seed)
    assert run.wrong == []
    assert run.report.terminations + run.report.recoveries > 0


def test_a_hub_that_forgets_its_orders_when_it_is_killed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Monitor, "_give_again", lambda self, now: None)
    assert any("[lost]" in text for seed in SEEDS for text in live(seed).wrong)


def test_a_second_successor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    a_life_gets_two_successors(monkeypatch)
    assert any("[twice]" in text for seed in SEEDS for text in live(seed).wrong)


def test_each_session_runs_the_known_worlds_and_others_that_nobody_has_seen() -> None:
    known, once, again = set(KNOWN), set(seeds_to_run(fresh=20)), set(seeds_to_run(fresh=20))
    assert known < once
    assert known < again
    assert len(once - known) == len(again - known) == 20
    assert once != again
