"""Interventions: each step of the ladder that was taken, and how far it came."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from lifesigns.core.effects import Intervention, Rung, Stage
from lifesigns.events import fact_of, types_of
from lifesigns.ports import Event
from lifesigns.views.moments import Moment, moment

TYPES: Final = types_of(Intervention)
"""The events that tell of interventions."""

ENDED: Final = frozenset({Stage.ANSWERED, Stage.DONE, Stage.FAILED, Stage.DROPPED})
REMEMBERED_MAX: Final = 10_000
STAGES_MAX: Final = 50


class StageReached(Struct, frozen=True):
    """An intervention came so far at this moment."""

    at: Moment
    stage: Stage
    attempt: int
    text: str
    by: str


class InterventionRecord(Struct):
    """One intervention from its order to its outcome."""

    id: str
    agent_id: str
    rung: Rung
    stage: Stage
    attempt: int
    reason: str
    by: str
    """Who ordered it; empty if it was the policy."""
    ordered_at: Moment
    open: bool
    stages: list[StageReached]


class InterventionList(Struct):
    """The newest first."""

    interventions: list[InterventionRecord]


Request = tuple[Rung, str, str]
"""What a person asked for: the rung, who asked, and the key of the request."""

_BODY: Final = " #"
"""Before the digest of a request's body, behind its key."""


class KeyReused(Exception):
    """The key of an earlier request came with another body."""


def keyed(key: str, body_digest: str) -> str:
    """The key of a request as it is kept: with its body's digest, so that another request under the same key is seen."""
    return f"{key}{_BODY}{body_digest}"


def _taken_apart(key: str) -> tuple[str, str]:
    """The key as it was given, and the digest of the body it came with; empty for keys that were kept without one."""
    given, separator, body_digest = key.rpartition(_BODY)
    return (given, body_digest) if separator else (key, "")


class Interventions:
    """The newest ones, made of the events that tell of them."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, InterventionRecord] = OrderedDict()
        self._by_request: dict[Request, dict[str, str]] = {}
        self._requests: dict[str, Request] = {}
        self._bodies: dict[str, str] = {}

    def note(self, events: Iterable[Event]) -> None:
        """These happened, in this order."""
        for event in events:
            step = fact_of(event) if event.type in TYPES else None
            if isinstance(step, Intervention):
                self._note(step)

    def find(self, intervention_id: str) -> InterventionRecord | None:
        return self._records.get(intervention_id)

    def asked_for(self, rung: Rung, by: str, key: str) -> Mapping[str, InterventionRecord]:
        """By agent, what this request of a person became. Raises `KeyReused` if its key was that of another."""
        given, body_digest = _taken_apart(key)
        became = self._by_request.get((rung, by, given), {})
        if any(self._bodies.get(its_id, "") not in ("", body_digest) for its_id in became.values()):
            raise KeyReused
        return {agent_id: self._records[its_id] for agent_id, its_id in became.items()}

    def newest(
        self, limit: int, *, agent_id: str | None = None, rung: Sequence[Rung] = (), only_open: bool = False
    ) -> list[InterventionRecord]:
        """The newest first."""
        found: list[InterventionRecord] = []
        for record in self._wanted(agent_id, rung, only_open):
            found.append(record)
            if len(found) == limit:
                break
        return found

    def _wanted(
        self, agent_id: str | None, rung: Sequence[Rung], only_open: bool
    ) -> Iterator[InterventionRecord]:
        for record in reversed(self._records.values()):
            if (
                (agent_id is None or record.agent_id == agent_id)
                and (not rung or record.rung in rung)
                and (record.open or not only_open)
            ):
                yield record

    def _note(self, step: Intervention) -> None:
        if not step.id:
            return  # It is held back, and nothing was ordered yet: there is nothing to follow or to decide.
        reached = StageReached(moment(step.at), step.stage, step.attempt, step.text, step.by)
        record = self._records.get(step.id)
        if record is None:
            record = self._records[step.id] = InterventionRecord(
                step.id,
                step.agent_id,
                step.rung,
                step.stage,
                step.attempt,
                step.text,
                step.by,
                reached.at,
                True,
                [],
            )
            if step.key:
                self._note_request(step)
            if len(self._records) > REMEMBERED_MAX:
                self._forget_oldest()
        record.stage, record.attempt, record.open = step.stage, step.attempt, step.stage not in ENDED
        record.stages.append(reached)
        del record.stages[:-STAGES_MAX]

    def _note_request(self, step: Intervention) -> None:
        """Where a request led to several steps with one agent, it is the first of them."""
        given, body_digest = _taken_apart(step.key)
        request = (step.rung, step.by, given)
        if self._by_request.setdefault(request, {}).setdefault(step.agent_id, step.id) == step.id:
            self._requests[step.id] = request
            self._bodies[step.id] = body_digest

    def _forget_oldest(self) -> None:
        oldest, record = self._records.popitem(last=False)
        request = self._requests.pop(oldest, None)
        self._bodies.pop(oldest, None)
        if request is not None:
            del self._by_request[request][record.agent_id]
            if not self._by_request[request]:
                del self._by_request[request]
