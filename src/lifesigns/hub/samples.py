"""Samples: once a minute, the numbers of every agent that beats; of workers, who say how many tasks they have room for,
also those of their tasks.

The hub spreads the samples of 100,000 agents over the minute, so that neither the loop nor the disk stands still for
them. Each agent has the same place in every round, a minute after the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lifesigns.core.agent import Agent
from lifesigns.core.signals import Beat
from lifesigns.hub.last_beats import LastBeats
from lifesigns.ports import Sample

MINUTE: Final = 60.0
ROUND_FOR: Final = 50.0
"""How long a round takes; the rest of the minute is for rounds that are late."""
AT_ONCE_MAX: Final = 0.03
"""Share of a round: of 100,000 agents some fifteen milliseconds."""


class LastCount(Struct, gc=False):
    """How many beats of which incarnation were counted the last time.

    Changed in place, and outside of the garbage collector: a hundred thousand new objects every minute would make it
    visit everything.
    """

    beats: int
    born_at: float


class Sampler:
    """Goes round the fleet, and remembers each agent's count of beats."""

    def __init__(self, last_beats: LastBeats) -> None:
        self._last_beats = last_beats
        self._counted: dict[str, LastCount] = {}
        self._round: list[Agent] = []
        self._minute = -1.0
        self._done = 0

    def take(self, agents: Mapping[str, Agent], now: float) -> list[Sample]:
        """The samples that are due by now. Called about once a second."""
        minute = now - now % MINUTE
        if minute != self._minute:
            self._begin(agents, minute)
        due = int(len(self._round) * min(1.0, (now - minute + 1.0) / ROUND_FOR)) + 1
        # A hub that starts late in the minute does not catch up all at once: the rest counts with the next.
        due = min(due, self._done + int(len(self._round) * AT_ONCE_MAX) + 1)
        taken, workers = [], {}
        for agent in islice(self._round, self._done, due):
            sample = self._sample(agent)
            if sample is None:
                continue
            if agent.capacity is not None:
                workers[agent.id] = agent
            taken.append(sample)
        self._done = max(self._done, min(due, len(self._round)))
        if not workers:
            return taken
        beats = {agent_id: received.beat for agent_id, received in self._last_beats.of_all(workers)}
        return [
            _of_worker(sample, workers[sample.agent_id], beats.get(sample.agent_id))
            if sample.agent_id in workers
            else sample
            for sample in taken
        ]

    def _begin(self, agents: Mapping[str, Agent], minute: float) -> None:
        self._minute, self._round, self._done = minute, list(agents.values()), 0
        if not agents.keys() >= self._counted.keys():
            for agent_id in [agent_id for agent_id in self._counted if agent_id not in agents]:
                del self._counted[agent_id]

    def _sample(self, agent: Agent) -> Sample | None:
        """The agent's last minute; None if it was silent."""
        counted = self._counted.get(agent.id)
        if counted is None:
            self._counted[agent.id] = counted = LastCount(0, agent.started_at)
        if counted.born_at != agent.started_at:
            counted.beats, counted.born_at = 0, agent.started_at  # A new incarnation counts from one.
        beats, counted.beats = agent.beats - counted.beats, agent.beats
        if beats <= 0:
            return None
        spent, outcomes = agent.spending, agent.outcomes
        return Sample(
            agent.id,
            self._minute,
            beats,
            round(max(0.0, lateness(agent)), 3),
            agent.load,
            agent.cpu_percent,
            agent.memory_mb,
            spent.tokens if spent is not None else None,
            round(spent.cost, 6) if spent is not None else None,
            outcomes.errors if outcomes is not None else None,
        )


def _of_worker(sample: Sample, agent: Agent, beat: Beat | None) -> Sample:
    metrics = None if beat is None else beat.metrics
    return replace(
        sample,
        status=agent.status,
        tasks=len(tasks_of(agent, beat)),
        capacity=agent.capacity,
        tasks_completed=None if metrics is None else metrics.tasks_completed,
        tasks_failed=None if metrics is None else metrics.tasks_failed,
        uptime_s=None if metrics is None else metrics.uptime_s,
    )


def tasks_of(agent: Agent, beat: Beat | None) -> set[str]:
    """What an agent works on: what it holds, and what it says."""
    return {*agent.claims, *((agent.task_id,) if agent.task_id else ()), *(beat.tasks if beat else ())}


def lateness(agent: Agent) -> float:
    """How long after its prediction the last beat came; negative if it came early."""
    steps = agent.beats - agent.taught_beat - 1
    return agent.heard_at - (agent.expected_at + steps * agent.interval)
