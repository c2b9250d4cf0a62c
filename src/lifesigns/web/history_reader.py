"""Interventions that a running hub remembers, made of their events, and which request asked for which. It reads the store
once, and then follows the feed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from lifesigns.core.effects import Intervention, Rung, Stage
from lifesigns.events import fact_of, types_of
from lifesigns.hub.feed import Feed
from lifesigns.hub.http_receiver import NotLeader
from lifesigns.hub.hub import Hub
from lifesigns.ports import Event
from lifesigns.views.interventions import InterventionRecord, StageReached
from lifesigns.views.moments import moment

TYPES: Final = types_of(Intervention)
"""The events about interventions."""

ENDED: Final = frozenset({Stage.ANSWERED, Stage.DONE, Stage.FAILED, Stage.DROPPED})
REMEMBERED_MAX: Final = 10_000
STAGES_MAX: Final = 50


Request = tuple[Rung, str, str]
"""A person's request: the rung, the person, and the key of the request."""

_BODY: Final = " #"
"""Separates a request's key from the digest of its body."""


class KeyReused(Exception):
    """The key of an earlier request came with another body."""


def keyed(key: str, body_digest: str) -> str:
    """The stored key of a request: with its body's digest, so that another request under the same key is noticed."""
    return f"{key}{_BODY}{body_digest}"


def _split(key: str) -> tuple[str, str]:
    """The given key, and the digest of its body; empty for keys stored without one."""
    given, separator, body_digest = key.rpartition(_BODY)
    return (given, body_digest) if separator else (key, "")


class Interventions:
    """The newest interventions, made of their events."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, InterventionRecord] = OrderedDict()
        self._by_request: dict[Request, dict[str, str]] = {}
        self._requests: dict[str, Request] = {}
        self._bodies: dict[str, str] = {}

    def note(self, events: Iterable[Event]) -> None:
        """Add events, in their order."""
        for event in events:
            step = fact_of(event) if event.type in TYPES else None
            if isinstance(step, Intervention):
                self._note(step)

    def find(self, intervention_id: str) -> InterventionRecord | None:
        return self._records.get(intervention_id)

    def asked_for(self, rung: Rung, by: str, key: str) -> Mapping[str, InterventionRecord]:
        """The interventions of a person's request, by agent. Raises `KeyReused` if its key was that of another request."""
        given, body_digest = _split(key)
        became = self._by_request.get((rung, by, given), {})
        if any(self._bodies.get(its_id, "") not in ("", body_digest) for its_id in became.values()):
            raise KeyReused
        return {agent_id: self._records[its_id] for agent_id, its_id in became.items()}

    def newest(
        self, limit: int, *, agent_id: str | None = None, rung: Sequence[Rung] = (), only_open: bool = False
    ) -> list[InterventionRecord]:
        """The newest first."""
        newest: list[InterventionRecord] = []
        for record in self._matching(agent_id, rung, only_open):
            newest.append(record)
            if len(newest) == limit:
                break
        return newest

    def _matching(
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
            return  # It is held back, and not ordered yet: there is nothing to follow or to decide.
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
                step.failure_class,
            )
            if step.key:
                self._note_request(step)
            if len(self._records) > REMEMBERED_MAX:
                self._forget_oldest()
        record.stage, record.attempt, record.open = step.stage, step.attempt, step.stage not in ENDED
        record.stages.append(reached)
        del record.stages[:-STAGES_MAX]

    def _note_request(self, step: Intervention) -> None:
        """Of several steps with one agent, the first one is the request's."""
        given, body_digest = _split(step.key)
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


class HistoryReader:
    """What happened lately."""

    def __init__(self, hub: Hub, feed: Feed) -> None:
        self._hub = hub
        self._interventions = Interventions()
        self._read = False
        self._reading = asyncio.Lock()
        self._told: list[Event] = []
        """The events since reading began."""
        feed.observe(self._note)

    async def interventions(self) -> Interventions:
        """The newest interventions, with everything stored by now. Raises `NotLeader` if another hub stores them: our
        feed does not have those."""
        if self._hub.committer.deposed:
            raise NotLeader
        if not self._read:
            async with self._reading:
                if not self._read:
                    await self._read_all()
        return self._interventions

    async def _read_all(self) -> None:
        self._told.clear()
        events = await self._hub.store.events(types=TYPES, newest_first=True, limit=REMEMBERED_MAX)
        read_until = events[0].id if events else 0
        self._interventions.note(reversed(events))
        self._interventions.note(event for event in self._told if event.id > read_until)
        self._read = True
        self._told.clear()

    def _note(self, events: Sequence[Event]) -> None:
        if self._read:
            self._interventions.note(events)
        elif self._reading.locked():
            self._told.extend(events)
