"""`python -m tools.chaos`: chaos over the simulated world. Every run has its own seed, and the seed draws everything: the
fleet, its policy, its failures, how bad the bus is, how often the hub is killed. The same 500 worlds each time, to compare,
and 100 that nobody has seen, since that is where bugs are found; `python -m tools.chaos 83 1258` runs those two again.

Must hold in every run: no healthy agent ended, nothing ordered twice (no second successor), no order lost, and all the
other laws of `simulation/invariants.py`. Over all runs: more than 95 % of the recoveries succeed. A recovery counts when an agent's life has ended and the engine set out to start another: it
has succeeded when the new life speaks, and failed when it is given up to a person (limits reached, or ill again under close
watch). Prints a line per run, and the seed of what failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Final

from lifesigns.core.policy import HOUR
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.simulation import Faults, Report, SimulationConfig, simulate

KNOWN: Final = range(1, 501)
UNSEEN: Final = range(10_000, 10_000_000)
SUCCESS_MIN: Final = 0.95
PROFILES: Final = ("balanced", "tolerant", "swarm", "swarm", "fast_tasks", "fleet")
SLOW: Final = ("fast_tasks", "fleet")
"""With a beat every five minutes a lost or late one shows an agent as degraded until it answers its ping, as it should.
The law of `downtime` would blame the last outage for that; so here nothing is lost or late."""


def config_of(seed: int) -> SimulationConfig:
    """The world of a seed: the same one, however many runs there are."""
    chance = Random(f"chaos/{seed}")
    name = chance.choice(PROFILES)
    quick = name not in SLOW
    faults = Faults(
        loss=quick * chance.choice((0.0, 0.001, 0.01, 0.05)),
        delay=chance.choice((0.005, 0.02, 0.1)),
        duplicate=chance.choice((0.0, 0.001, 0.01)),
        reorder=quick * chance.choice((0.0, 0.001, 0.01)),
        partition=chance.uniform(0, 6),
        stall=chance.uniform(0, 4),
        restart=chance.uniform(1, 12),
        crash=chance.uniform(4, 48),
        blind=chance.uniform(0, 2),
        host=chance.uniform(0, 2),
        half=chance.choice((0.0, 0.0, 1.0)),
        split=chance.uniform(0, 24),
        zone=chance.uniform(0, 12),
    )
    return SimulationConfig(
        agents=chance.randint(8, 20),
        days=chance.uniform(0.15, 0.35),
        seed=seed,
        policies=PolicyBook(profile(name)),
        faults=faults,
        failure_every=chance.uniform(1, 8) * HOUR,
        quiet_for=2 * HOUR,
        zones=chance.choice((1, 2, 3)),
    )


@dataclass(frozen=True)
class Run:
    """The result of one seed."""

    seed: int
    took: float
    report: Report

    @property
    def wrong(self) -> list[str]:
        """Broken laws, in words."""
        report = self.report
        ended = (
            [f"{report.false_terminations} healthy agents were ended"] if report.false_terminations else []
        )
        return ended + [str(violation) for violation in report.violations]

    def __str__(self) -> str:
        report = self.report
        failures = sum(found.happened for found in report.detections.values())
        return (
            f"seed {self.seed:>5}  {self.took:5.1f} s  {report.agents:>2} agents  {failures:>3} failures  "
            f"{report.nudges:>3} nudges  {report.escalations:>3} escalations  {report.terminations:>3} ends  "
            f"{report.recoveries:>3} recoveries, {report.given_up} given up  "
            f"{report.false_findings or 'no'} false findings  {len(self.wrong) or 'no'} laws broken"
        )


def live(seed: int) -> Run:
    """One run, from its seed."""
    began = time.perf_counter()
    report = simulate(config_of(seed))
    return Run(seed, time.perf_counter() - began, report)


def seeds_to_run(fresh: int) -> list[int]:
    """The known worlds, and so many fresh ones, drawn anew by each call."""
    return [*KNOWN, *SystemRandom().sample(UNSEEN, fresh)]


def runs(seeds: Sequence[int], jobs: int) -> Iterator[Run]:
    """All seeds, `jobs` at a time, in the order in which they end."""
    with ProcessPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(live, seed) for seed in seeds]):
            yield done.result()


def main() -> int:
    """Run, print, sum up."""
    reader = argparse.ArgumentParser(prog="python -m tools.chaos", description=__doc__)
    reader.add_argument("seeds", nargs="*", type=int, metavar="SEED", help="only these worlds")
    reader.add_argument("--fresh", type=int, default=100, help="worlds nobody has seen")
    reader.add_argument("--jobs", type=int, default=2)
    asked = reader.parse_args()
    seeds = asked.seeds or seeds_to_run(asked.fresh)
    done: list[Run] = []
    for run in runs(seeds, asked.jobs):
        done.append(run)
        print(f"{len(done):>4}/{len(seeds)}  {run}", flush=True)
        for text in run.wrong[:5]:
            print(f"    WRONG: {text}", flush=True)
    bad = sorted(run.seed for run in done if run.wrong)
    recovered, given_up = (
        sum(run.report.recoveries for run in done),
        sum(run.report.given_up for run in done),
    )
    success = recovered / max(1, recovered + given_up)
    days = sum(run.report.healthy_agent_days for run in done)
    false = sum(run.report.false_findings for run in done)
    print(
        f"\n{len(done)} runs, {sum(run.report.events for run in done):,} events: "
        f"{sum(run.report.false_terminations for run in done)} healthy agents ended, "
        f"{sum(run.report.terminations for run in done)} ends, {recovered} recoveries, {given_up} given up "
        f"({success:.1%} succeeded, {'>' if success > SUCCESS_MIN else 'NOT >'} {SUCCESS_MIN:.0%} wanted), "
        f"{false} false findings in {days:,.0f} healthy agent-days ({false / max(days, 1):.3%})"
    )
    print("no law broken in any run" if not bad else f"laws broken in seeds {', '.join(map(str, bad))}")
    return 0 if not bad and success > SUCCESS_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
