"""Trials: for every detector, the sick agents it must find and the similar healthy ones it must spare.

    run_all(policies, seed)        every pair, in ten seconds or more   ALL         the table of them
    trial.py                       one life before the real engine                  (of `lives/habits.py` and `lives/rounds.py`)
    silence.py freeze.py ...       one file per detector                seeds.py    agents that send what a document says

To add one: write the life beside similar ones (a generator, as in `lives/`) and a line into the `TRIALS` of its file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lifesigns.core.profiles import PolicyBook
from lifesigns.simulation.trials import (
    context,
    erring,
    forecast,
    freeze,
    looping,
    overload,
    saying,
    seeds,
    silence,
    spending,
    stall,
)
from lifesigns.simulation.trials.trial import DETECTORS, Outcome, Trial, run

ALL: Final[tuple[Trial, ...]] = (
    *silence.TRIALS,
    *freeze.TRIALS,
    *stall.TRIALS,
    *looping.TRIALS,
    *erring.TRIALS,
    *context.TRIALS,
    *spending.TRIALS,
    *overload.TRIALS,
    *forecast.TRIALS,
    *saying.TRIALS,
    *seeds.TRIALS,
)

__all__ = ["ALL", "DETECTORS", "Outcome", "Trial", "run", "run_all"]


def run_all(policies: PolicyBook | None = None, seed: int = 0) -> Iterator[tuple[float, Outcome]]:
    """Every trial, each in a world of its own, and which part of them is done."""
    for number, trial in enumerate(ALL, 1):
        yield number / len(ALL), run(trial, policies or PolicyBook(), seed)
