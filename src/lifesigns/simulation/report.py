"""Report: the result of a simulation, as a value, as JSON, and against the targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, inf
from statistics import mean, stdev
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from lifesigns.core.policy import MINUTE
from lifesigns.simulation.invariants import Violation
from lifesigns.simulation.trials import DETECTORS, Outcome
from lifesigns.simulation.truth import Failure, Illness, bound
from lifesigns.simulation.world import World

FALSE_FINDINGS_MAX: Final = 0.001
"""Per healthy agent-day."""
INTERVENTION_MAX: Final = 10 * MINUTE
RECOVERY_MIN: Final = 0.95


class Detection(Struct, frozen=True):
    """How the engine found one kind of failure."""

    happened: int
    found: int
    missed: int
    """Lasted longer than its bound and was not found in that time."""
    late: int
    brief: int
    """Over before it had to be found, and not found."""
    p50_s: float | None
    p99_s: float | None
    bound_s: float | None
    """From its onset; None where it depends on what the agent does."""


class Pairs(Struct, frozen=True):
    """How one detector distinguished sick from healthy agents."""

    detector: str
    sick: int
    found: int
    slowest_s: float | None
    """The longest it took to find one of them."""
    healthy: int
    spared: int


class Target(Struct, frozen=True):
    """A target of the run."""

    name: str
    wanted: str
    got: str
    met: bool


class Report(Struct, frozen=True):
    """What happened in a simulated world."""

    seed: int
    agents: int
    days: float
    faults: str
    complete: bool
    """False if it was stopped before its end."""
    healthy_agent_days: float
    false_findings: int
    reasoned_findings: int
    """Findings that healthy agents gave reason for, which do not count as false: polls, retries."""
    false_terminations: int
    detections: dict[str, Detection]
    nudges: int
    escalations: int
    terminations: int
    recoveries: int
    given_up: int
    """Recoveries that ended with a person instead of a new life."""
    recovery_success: float | None
    mean_time_to_intervention_s: float | None
    interventions: int
    """How many failures the engine acted on: the size of the sample behind the mean."""
    intervention_error_s: float
    """The standard error of that mean: a kind of failure that is acted on after half an hour, as the policy says, may be drawn
    often in one run and seldom in the next."""
    violations: tuple[Violation, ...]
    events: int
    """Everything that happened, beats included."""
    false_finding_texts: tuple[str, ...]
    unfound_texts: tuple[str, ...]
    """The first few failures that were found too late or not at all."""
    trials: tuple[Outcome, ...] = ()
    """What each detector made of the sick it must find, and of the healthy that look like them."""

    @property
    def ok(self) -> bool:
        """No law was broken."""
        return not self.violations

    @property
    def targets(self) -> tuple[Target, ...]:
        return tuple(_targets(self))

    @property
    def pairs(self) -> tuple[Pairs, ...]:
        """The trials, summed up by detector."""
        return tuple(_pairs(detector, self.trials) for detector in DETECTORS) if self.trials else ()

    def to_json(self) -> dict[str, Any]:
        """The shape that `simulate --json` promises, and a little more."""
        return {name: getattr(self, name) for name in Report.__struct_fields__} | {
            "healthy_agent_days": round(self.healthy_agent_days, 3),
            "detections": {kind: asdict(found) for kind, found in self.detections.items()},
            "violations": [str(violation) for violation in self.violations],
            "pairs": [asdict(pairs) for pairs in self.pairs],
            "trials": [
                {
                    "detector": outcome.trial.detector,
                    "name": outcome.trial.name,
                    "sick": outcome.trial.sick,
                    "ok": outcome.ok,
                    "found_after_s": outcome.found_after_s,
                    "findings": outcome.findings,
                    "done": outcome.done,
                    "wrong": outcome.wrong,
                }
                for outcome in self.trials
            ],
            "targets": [asdict(target) for target in self.targets],
        }


def of(world: World, trials: tuple[Outcome, ...] = (), *, stopped: bool = False) -> Report:
    """The report of a world and its trials, at their end or wherever they were stopped."""
    counts, config = world.counts, world.config
    acted = [f.acted_at - f.since for f in world.scorer.failures if f.acted_at is not None]
    ended = counts.recovered + counts.given_up
    return Report(
        seed=config.seed,
        agents=config.agents,
        days=config.days,
        faults=str(config.faults),
        complete=not stopped and world.now >= world.end + config.quiet_for,
        healthy_agent_days=sum(agent.well_time() for agent in world.agents) / 86_400,
        false_findings=len(counts.false_findings),
        reasoned_findings=counts.reasoned_findings,
        false_terminations=counts.false_terminations,
        detections=dict(_detections(world)),
        nudges=counts.nudges,
        escalations=counts.escalations,
        terminations=counts.terminations,
        recoveries=counts.recovered,
        given_up=counts.given_up,
        recovery_success=round(counts.recovered / ended, 4) if ended else None,
        mean_time_to_intervention_s=round(mean(acted), 1) if acted else None,
        interventions=len(acted),
        intervention_error_s=round(stdev(acted) / len(acted) ** 0.5, 1) if len(acted) > 1 else 0.0,
        violations=tuple(world.invariants.violations),
        events=world.events,
        false_finding_texts=tuple(
            f"{at:.0f} s: {agent_id}: {finding.text}" for at, agent_id, finding in counts.false_findings[:20]
        ),
        unfound_texts=tuple(str(f) for f in world.scorer.failures if f.late or f.missed(world.now))[:20],
        trials=trials,
    )


def _detections(world: World) -> Iterator[tuple[str, Detection]]:
    policy = world.policies.default
    for illness in Illness:
        failures = [f for f in world.scorer.failures if f.illness is illness]
        if failures:
            limit = bound(illness, policy)
            yield str(illness), _detection(failures, world.now, None if limit == inf else limit)


def _detection(failures: list[Failure], now: float, limit: float | None) -> Detection:
    times = sorted(f.found_at - f.since for f in failures if f.found_at is not None)
    missed = sum(f.missed(now) for f in failures)
    return Detection(
        happened=len(failures),
        found=len(times),
        missed=missed,
        late=sum(f.late for f in failures),
        brief=len(failures) - len(times) - missed,
        p50_s=_quantile(times, 0.5),
        p99_s=_quantile(times, 0.99),
        bound_s=limit,
    )


def _pairs(detector: str, trials: tuple[Outcome, ...]) -> Pairs:
    mine = [outcome for outcome in trials if outcome.trial.detector == detector]
    sick, healthy = [o for o in mine if o.trial.sick], [o for o in mine if not o.trial.sick]
    return Pairs(
        detector,
        sick=len(sick),
        found=sum(outcome.ok for outcome in sick),
        slowest_s=max((o.found_after_s for o in sick if o.found_after_s is not None), default=None),
        healthy=len(healthy),
        spared=sum(outcome.ok for outcome in healthy),
    )


def _quantile(values: list[float], share: float) -> float | None:
    """The smallest value that at least this share does not exceed."""
    return round(values[max(0, ceil(share * len(values)) - 1)], 2) if values else None


def _targets(report: Report) -> Iterable[Target]:
    days = report.healthy_agent_days
    rate = report.false_findings / days if days else 0.0
    unfound = sum(d.missed + d.late for d in report.detections.values())
    taken, error = report.mean_time_to_intervention_s, report.intervention_error_s
    success = report.recovery_success
    yield Target("laws broken", "none", str(len(report.violations)), report.ok)
    yield Target(
        "healthy agents ended", "none", str(report.false_terminations), not report.false_terminations
    )
    yield Target(
        "false findings",
        f"< {FALSE_FINDINGS_MAX:.1%} of healthy agent-days",
        f"{report.false_findings} in {days:.1f} ({rate:.2%})",
        rate < FALSE_FINDINGS_MAX,
    )
    yield Target("failures found too late or not at all", "none", str(unfound), not unfound)
    if report.trials:
        failed = [outcome for outcome in report.trials if not outcome.ok]
        share = f"{len(report.trials) - len(failed)} of {len(report.trials)}"
        yield Target("sick and healthy look-alikes told apart", "all", share, not failed)
    yield Target(
        "mean time to intervention",
        f"< {INTERVENTION_MAX / 60:.0f} min",
        "-" if taken is None else f"{taken / 60:.1f} ± {error / 60:.1f} min of {report.interventions}",
        # One run is not over it unless that is more than chance; over many runs it holds as it stands (`make soak`).
        taken is None or taken - 2 * error < INTERVENTION_MAX,
    )
    yield Target(
        "recoveries that succeeded",
        f"> {RECOVERY_MIN:.0%}",
        "-" if success is None else f"{success:.1%} of {report.recoveries}",
        success is None or success > RECOVERY_MIN,
    )
