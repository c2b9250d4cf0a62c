"""Tracing: interventions, flips and looks as OpenTelemetry spans, at the times at which they happened.

An intervention is one trace: its root lasts from the order to the end of it, and each stage is a child that lasts from
the stage before. The ids of trace and root follow from the agent's and the intervention's id (`ids_of`), so that
another hub or the agent itself can add to the same trace without being told of it.

Looks, and flips that need nobody, are sampled; the total is limited, so that tracing does not slow down a hub whose
fleet falls over. Needs the extra `otel`; without it we load nothing of OpenTelemetry.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol

from msgspec import Struct

from lifesigns.core.effects import Flip, Intervention, Rung, Stage
from lifesigns.core.health import UNWELL
from lifesigns.errors import UsageError
from lifesigns.events import fact_of, types_of
from lifesigns.ports import Event

SPANS_PER_SECOND: Final = 200
"""A span costs up to 100 µs of the hub's loop: this is 2 % of it at most. Samples take half of it at most."""

STORIES_MAX: Final = 4096
"""Interventions we remember, so that the next stage knows the time of the one before."""

_TRACED: Final = frozenset(types_of(Flip, Intervention))
_LAST: Final = frozenset({Stage.ANSWERED, Stage.DONE, Stage.FAILED, Stage.DROPPED})
_TEXT_MAX: Final = 500

log: Final = logging.getLogger("lifesigns.observe")

Attributes = Mapping[str, str | int | float | bool]


class Ids(Struct, frozen=True):
    """A trace, and a span in it."""

    trace: int
    span: int


def ids_of(agent_id: str, intervention_id: str) -> Ids:
    """The trace of an intervention and its root: the first 16 and the next 8 bytes of SHA-256 over
    `lifesigns intervention <agent id> <intervention id>`."""
    digest = sha256(f"lifesigns intervention {agent_id} {intervention_id}".encode()).digest()
    return Ids(int.from_bytes(digest[:16]), int.from_bytes(digest[16:24]))


class Spans(Protocol):
    """Where spans go."""

    def add(
        self,
        name: str,
        began_at: float,
        ended_at: float,
        attributes: Attributes,
        *,
        own: Ids | None = None,
        parent: Ids | None = None,
        failed: str | None = None,
    ) -> None:
        """Add an ended span: a root with its `own` ids, the child of a `parent`, or a trace of its own."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class _Story:
    """One intervention, as far as it has come."""

    ids: Ids
    rung: str
    began_at: float
    last_at: float
    attributes: dict[str, str | int | float | bool]
    root_sent: bool = False
    """Its root is sent: later spans are only children."""


class Tracing:
    """Makes spans of stored events and of looks. Traces `ratio` of the looks and of the harmless flips."""

    def __init__(self, ratio: float = 0.01, spans: Spans | None = None) -> None:
        if not 0.0 <= ratio <= 1.0:
            raise UsageError(f"the ratio of traced looks is {ratio:g}, but is from 0 to 1")
        self._ratio = ratio
        self._spans = spans or _otlp()
        self._looks = self._flips = 0.5
        self._stories: dict[str, _Story] = {}
        self._of_agent: dict[str, str] = {}
        """The last ordered intervention, by agent."""
        self._room = float(SPANS_PER_SECOND)
        self._room_at = time.monotonic()
        self._closed = False

    def looked(self, due_at: float, began_at: float, ended_at: float, effects: int) -> None:
        """The hub looked at due deadlines: `BeatRhythm.witness`."""
        self._looks += self._ratio
        if self._looks >= 1.0 and not self._closed:
            self._looks -= 1.0
            late = max(0.0, began_at - due_at)
            self._add(
                "lifesigns.health_check",
                began_at,
                ended_at,
                {"lifesigns.late_s": late, "lifesigns.effects": effects},
                sample=True,
            )

    def tell(self, events: Sequence[Event]) -> None:
        """Trace stored events. Never fails: tracing must not harm the hub."""
        for event in () if self._closed else events:
            try:
                fact = fact_of(event) if event.type in _TRACED else None
                if isinstance(fact, Intervention):
                    self._step(fact)
                elif isinstance(fact, Flip) and self._has_room(1.0):
                    self._flip(event.id, fact)
            except Exception:  # a bug of ours costs one span
                log.exception("%s is not traced", event.type, extra={"action": "span_failed"})

    async def close(self) -> None:
        """Send what is pending, for a few seconds at most; trace nothing more."""
        self._closed = True
        await self._spans.close()

    # --- interventions ----------------------------------------------------------------------------------

    def _step(self, step: Intervention) -> None:
        if not step.id:
            return  # Held before it was ordered: there is nothing to trace yet.
        story = self._stories.get(step.id)
        if story is None:
            story = self._open(step)
        self._stage(story, step)
        # A failed termination is tried again under the same id.
        if step.stage in _LAST and not (step.stage is Stage.FAILED and step.rung is Rung.TERMINATE):
            self._end(story, step.at, step.stage, step.text)

    def _open(self, step: Intervention) -> _Story:
        former = self._stories.get(self._of_agent.get(step.agent_id, ""))
        if former is not None:
            self._end(former, step.at, "unanswered")
        while len(self._stories) >= STORIES_MAX:
            oldest = next(iter(self._stories))
            del self._stories[oldest]
        story = _Story(
            ids_of(step.agent_id, step.id),
            step.rung,
            step.at,
            step.at,
            {
                "lifesigns.agent_id": step.agent_id,
                "lifesigns.intervention_id": step.id,
                "lifesigns.rung": str(step.rung),
            },
        )
        self._stories[step.id] = story
        self._of_agent[step.agent_id] = step.id
        if len(self._of_agent) > STORIES_MAX:
            del self._of_agent[next(iter(self._of_agent))]
        return story

    def _stage(self, story: _Story, step: Intervention) -> None:
        text = step.text[:_TEXT_MAX]
        attributes = {
            **story.attributes,
            "lifesigns.stage": str(step.stage),
            "lifesigns.attempt": step.attempt,
        }
        if step.by:
            attributes["lifesigns.by"] = step.by
        if text:
            attributes["lifesigns.text"] = text
        self._add(
            f"lifesigns.{story.rung}.{step.stage}",
            story.last_at,
            step.at,
            attributes,
            parent=story.ids,
            failed=text if step.stage is Stage.FAILED else None,
        )
        story.last_at = step.at

    def _end(self, story: _Story, at: float, outcome: str, text: str = "") -> None:
        if story.root_sent:
            return
        story.root_sent = True
        attributes = {**story.attributes, "lifesigns.outcome": str(outcome)}
        failed = text[:_TEXT_MAX] if outcome == Stage.FAILED else None
        self._add(f"lifesigns.{story.rung}", story.began_at, at, attributes, own=story.ids, failed=failed)

    # --- flips ------------------------------------------------------------------------------------------

    def _flip(self, event_id: int, flip: Flip) -> None:
        """From the oldest evidence to the verdict; part of the agent's intervention, if there is one."""
        harmless = flip.now not in UNWELL
        if harmless:
            self._flips += self._ratio
            if self._flips < 1.0:
                return
            self._flips -= 1.0
        since = min((finding.since for finding in flip.evidence), default=flip.at)
        attributes: dict[str, str | int | float | bool] = {
            "lifesigns.agent_id": flip.agent_id,
            "lifesigns.from": str(flip.was),
            "lifesigns.to": str(flip.now),
            "lifesigns.text": flip.reason[:_TEXT_MAX],
            "lifesigns.event_id": event_id,
        }
        if flip.cause:
            attributes["lifesigns.cause"] = str(flip.cause)
        story = self._stories.get(self._of_agent.get(flip.agent_id, ""))
        parent = story.ids if story is not None and not story.root_sent else None
        self._add("lifesigns.flip", min(since, flip.at), flip.at, attributes, parent=parent, sample=harmless)

    # --- parts ------------------------------------------------------------------------------------------

    def _add(
        self,
        name: str,
        began_at: float,
        ended_at: float,
        attributes: Attributes,
        *,
        own: Ids | None = None,
        parent: Ids | None = None,
        failed: str | None = None,
        sample: bool = False,
    ) -> None:
        if self._has_room(SPANS_PER_SECOND / 2 if sample else 1.0):
            self._room -= 1.0
            self._spans.add(name, began_at, ended_at, attributes, own=own, parent=parent, failed=failed)

    def _has_room(self, at_least: float) -> bool:
        now = time.monotonic()
        self._room = min(SPANS_PER_SECOND, self._room + (now - self._room_at) * SPANS_PER_SECOND)
        self._room_at = now
        return self._room >= at_least


def _otlp() -> Spans:
    try:
        from lifesigns.adapters.observe.otlp_spans import OtlpSpans
    except ModuleNotFoundError as error:
        raise UsageError("tracing needs OpenTelemetry: pip install 'lifesigns[otel]'") from error
    return OtlpSpans()
