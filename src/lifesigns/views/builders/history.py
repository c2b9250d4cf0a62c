"""Builds the history of an agent: its samples thinned, and what happened in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from lifesigns.core.effects import (
    FindingClosed,
    FindingOpened,
    Flip,
    Intervention,
)
from lifesigns.events import fact_of, types_of
from lifesigns.ports import Event, Sample
from lifesigns.ports.merging import merge_samples
from lifesigns.views.history import FindingPoint, FlipPoint, History, InterventionPoint, Point, SamplePoint
from lifesigns.views.moments import moment

POINTS_MAX: Final = 2000

CHANGES: Final = types_of(Flip, Intervention)
"""Events that become flips and interventions."""
FINDINGS: Final = types_of(FindingOpened, FindingClosed)

_numbers_of: Final = attrgetter(*Sample.__struct_fields__[2:])


def history(
    agent_id: str,
    since: float,
    to: float,
    *,
    changes: Sequence[Event],
    findings: Sequence[Event],
    samples: Sequence[Sample],
    complete: bool = True,
    points_max: int = POINTS_MAX,
) -> History:
    """All of it, within the limit. Every sequence comes oldest first."""
    kept_changes = changes[-points_max:]
    kept_findings = _newest(findings, points_max - len(kept_changes))
    room = points_max - len(kept_changes) - len(kept_findings)
    kept_samples = list(_thinned(samples, room))
    happened = [*kept_changes, *kept_findings]
    read = [(event.at, event.id, point) for event in happened if (point := _happened(event)) is not None]
    timed: list[tuple[float, int, Point]] = [
        *read,
        *((sample.at, 0, _sample(sample)) for sample in kept_samples),
    ]
    timed.sort(key=lambda point: point[:2])
    whole = (len(kept_changes), len(kept_findings), len(kept_samples)) == (
        *(len(changes), len(findings), len(samples)),
    )
    points = tuple(point for _, _, point in timed)
    return History(
        agent_id=agent_id,
        since=moment(since),
        to=moment(to),
        points=points,
        complete=complete and whole,
        unreadable=len(happened) - len(read),
    )


# --- parts --------------------------------------------------------------------------------------------


def _newest(events: Sequence[Event], count: int) -> Sequence[Event]:
    return events[-count:] if count > 0 else ()


def _thinned(samples: Sequence[Sample], room: int) -> Iterator[Sample]:
    """The samples, merged as far as needed to fit."""
    if room <= 0:
        return
    together = -(-len(samples) // room)
    for n in range(0, len(samples), together or 1):
        yield _as_one(samples[n : n + together])


def _as_one(samples: Sequence[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    return Sample(samples[0].agent_id, samples[0].at, *merge_samples(map(_numbers_of, samples)))


def _sample(sample: Sample) -> SamplePoint:
    return SamplePoint(
        moment(sample.at),
        sample.beats,
        sample.late_max,
        sample.load,
        sample.cpu_percent,
        sample.memory_mb,
        sample.tokens,
        sample.cost_usd,
        sample.errors,
    )


def _happened(event: Event) -> Point | None:
    """The point of an event; None if it is unreadable."""
    at, number = moment(event.at), event.id
    match fact_of(event):
        case Flip() as flip:
            return FlipPoint(
                at=at, event_id=number, was=flip.was, to=flip.now, reason=flip.reason, cause=flip.cause
            )
        case Intervention() as step:
            return InterventionPoint(
                at, number, step.id, step.rung, step.stage, step.attempt, step.text, step.by
            )
        case FindingOpened(finding=finding):
            return FindingPoint(
                at, number, finding.kind, True, finding.severity, finding.text, finding.numbers
            )
        case FindingClosed(kind=kind):
            return FindingPoint(at, number, kind, False, None, None, None)
    return None
