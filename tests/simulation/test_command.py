"""`lifesigns simulate`, from the outside."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from lifesigns.cli import main
from lifesigns.simulation import Faults, SimulationConfig, simulate, trials
from lifesigns.simulation.faults import MILD, NONE
from lifesigns.simulation.trials import DETECTORS

SMALL = ["simulate", "--agents", "6", "--days", "0.1", "--seed", "3", "--no-trials"]


def test_json_is_what_the_contract_promises() -> None:
    done = CliRunner().invoke(main, [*SMALL, "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["seed"] == 3


def test_the_table_ends_with_the_command_that_replays_it() -> None:
    done = CliRunner().invoke(main, [*SMALL, "--faults", "loss=0.01,stall"])
    assert done.exit_code == 0
    last = done.stdout.strip().splitlines()[-1].strip()
    said = "lifesigns simulate --agents 6 --days 0.1 --seed 3 --faults loss=0.01,stall=1 --no-trials"
    assert last == said


def test_the_report_shows_each_detector_with_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest trial of each, for the time it takes, and for the table the healthy; `test_trials.py` has them all."""
    longest_first = sorted(trials.ALL, key=lambda trial: -trial.hours)
    few = {(trial.detector, trial.sick): trial for trial in longest_first}
    monkeypatch.setattr(trials, "ALL", tuple(trial for trial in few.values() if not trial.sick))
    table = CliRunner().invoke(main, [*SMALL[:-1], "--days", "0.01"])
    assert table.exit_code == 0
    assert "healthy spared" in table.stdout
    for detector in DETECTORS:
        assert detector in table.stdout
    monkeypatch.setattr(trials, "ALL", tuple(few.values()))
    written = json.loads(CliRunner().invoke(main, [*SMALL[:-1], "--days", "0.01", "--json"]).stdout)
    assert [pairs["detector"] for pairs in written["pairs"]] == list(DETECTORS)
    assert len(written["trials"]) == len(few)
    (told,) = (t for t in written["targets"] if t["name"] == "sick and healthy look-alikes told apart")
    assert told["got"].endswith(f" of {len(few)}")


def test_the_trials_are_a_part_of_the_way_and_are_interrupted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar stood at its end while they ran."""
    monkeypatch.setattr(trials, "ALL", tuple(sorted(trials.ALL, key=lambda trial: trial.hours)[:3]))
    parts: list[float] = []
    small = SimulationConfig(agents=6, days=0.01, seed=3, trials=True, on_progress=parts.append)
    report = simulate(small)
    assert report.complete
    assert parts == sorted(parts)
    assert parts[-4] < 0.01  # Six agents for minutes are nothing beside the trials.
    assert parts[-3:] == pytest.approx([1 / 3, 2 / 3, 1.0], abs=0.01)

    def interrupt(part: float) -> None:
        if part > 0.5:
            raise KeyboardInterrupt

    stopped = simulate(replace(small, on_progress=interrupt))
    assert not stopped.complete
    assert len(stopped.trials) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--faults", "gremlins"], "'gremlins' is unknown"),
        (["--faults", "loss=much"], "'much' is not a number"),
        (["--faults", "loss=0.9"], "is not between 0 and 0.5"),
        (["--profile", "brisk"], "'brisk' is unknown"),
        (["--config", "nowhere.yaml"], "does not exist"),
    ],
)
def test_wrong_usage_is_told_in_a_line(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, [*SMALL, *words])
    assert done.exit_code == 2
    assert said in done.stderr


def test_faults_are_read_as_they_are_written() -> None:
    assert Faults.parse("none") == NONE
    assert Faults.parse("default") == MILD
    assert Faults.parse(str(MILD)) == MILD
    assert Faults.parse("default,clock=2").clock == 2.0
