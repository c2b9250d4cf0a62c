"""`make soak`: the slow truth. Many weeks of a large fleet, each from its own seed, against the targets.

Every seed runs in a process of its own, on one core; a line per seed as it ends, then the sum of them all. Exits with
1 if a law was broken or a target missed in any of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from lifesigns.simulation.report import INTERVENTION_MAX


@dataclass(frozen=True)
class Week:
    """The result of one seed."""

    seed: int
    took: float
    report: dict[str, Any]

    @property
    def missed(self) -> list[str]:
        return [target["name"] for target in self.report["targets"] if not target["met"]]


def live(seed: int, words: list[str]) -> Week:
    """One run of `lifesigns simulate`."""
    command = [sys.executable, "-m", "lifesigns", "simulate", "--json", "--seed", str(seed), *words]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return Week(seed, time.perf_counter() - began, json.loads(done.stdout))


def weeks(seeds: range, jobs: int, words: list[str]) -> Iterator[Week]:
    """All seeds, `jobs` at a time, in the order in which they end."""
    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(live, seed, words) for seed in seeds]):
            yield done.result()


def line(week: Week) -> str:
    """One seed in one line."""
    report = week.report
    found = report["detections"].values()
    return (
        f"seed {week.seed:>4}  {week.took:5.0f} s  "
        f"{sum(d['found'] for d in found):>5} found {sum(d['missed'] + d['late'] for d in found):>3} missed or late  "
        f"{report['false_findings']:>3} false findings, {report['reasoned_findings']} with reason  {report['false_terminations']:>3} healthy ended  "
        f"{len(report['violations']):>3} laws broken  {', '.join(week.missed) or 'all targets met'}"
    )


def main() -> int:
    """Run, print, sum up."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--faults", default="default")
    asked = parser.parse_args()
    words = ["--agents", str(asked.agents), "--days", str(asked.days), "--faults", asked.faults]
    done: list[Week] = []
    for week in weeks(range(asked.first, asked.first + asked.seeds), asked.jobs, words):
        done.append(week)
        print(line(week), flush=True)
        for text in [*week.report["violations"][:5], *week.report["unfound_texts"][:5]]:
            print(f"    {text}", flush=True)
    days = sum(week.report["healthy_agent_days"] for week in done)
    false = sum(week.report["false_findings"] for week in done)
    ended = sum(week.report["false_terminations"] for week in done)
    bad = [week.seed for week in done if week.missed or week.report["violations"]]
    acted = sum(week.report["interventions"] for week in done)
    taken = sum(
        (week.report["mean_time_to_intervention_s"] or 0.0) * week.report["interventions"] for week in done
    )
    slow = taken >= INTERVENTION_MAX * acted > 0
    print(
        f"\n{len(done)} runs, {days:,.0f} healthy agent-days: {ended} healthy agents ended, {false} false findings "
        f"({false / days:.3%}), longest run {max(week.took for week in done):.0f} s"
    )
    print(f"mean time to intervention {taken / max(1, acted) / 60:.1f} min of {acted}{', too long' * slow}")
    print(
        "all targets met in every run" if not bad else f"missed in seeds {', '.join(map(str, sorted(bad)))}"
    )
    return 1 if bad or slow else 0


if __name__ == "__main__":
    sys.exit(main())
