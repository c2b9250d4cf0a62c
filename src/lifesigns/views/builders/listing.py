"""Many agents: filtered, sorted, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from math import inf

from msgspec import Struct

from lifesigns.core.agent import Agent
from lifesigns.core.health import Doing, Health
from lifesigns.views.agents import NEED
from lifesigns.views.builders.agents import need


class AgentFilter(Struct, frozen=True):
    """Selects agents: every given condition must hold."""

    state: tuple[Health, ...] = ()
    doing: tuple[Doing, ...] = ()
    task: str | None = None
    role: str | None = None
    host: str | None = None
    q: str | None = None
    """Part of the id, task, role or host, whatever its case."""

    def matches(self, agent: Agent) -> bool:
        """Whether this agent matches."""
        return (
            (not self.state or agent.health in self.state)
            and (not self.doing or agent.doing in self.doing)
            and (self.task is None or agent.task_id == self.task or self.task in agent.claims)
            and (self.role is None or agent.role == self.role)
            and (self.host is None or agent.host == self.host)
            and (self.q is None or _contains(agent, self.q.lower()))
        )


def order(agent: Agent) -> tuple[int, float, str]:
    """The neediest first; among equals the one that has waited longest."""
    return need(agent), agent.since, agent.id


def page(
    agents: Iterable[Agent], matches: Callable[[Agent], bool], limit: int, after: int
) -> tuple[list[Agent], int | None]:
    """The next agents in the order of their first signal, and where to go on if there are more."""
    shown: list[Agent] = []
    for agent in agents:
        if agent.order > after and matches(agent):
            if len(shown) == limit:
                return shown, shown[-1].order
            shown.append(agent)
    return shown, None


def neediest(agents: Iterable[Agent], matches: Callable[[Agent], bool], limit: int) -> list[Agent]:
    """The agents that need a person most.

    Of 100,000 agents a comparison skips nearly all: a calm agent is healthy, and it matters only if it has been so for
    longer than the last of the best so far.
    """
    best: list[Agent] = []
    calm_until = inf
    for agent in agents:
        if agent.calm and agent.since > calm_until and agent.doing is not Doing.WAITING_FOR_HUMAN:
            continue
        if matches(agent):
            best.append(agent)
            if len(best) >= 2 * limit:
                best = nsmallest(limit, best, key=order)
                calm_until = _calm_until(best[-1])
    return nsmallest(limit, best, key=order)


def _calm_until(last: Agent) -> float:
    """An agent that became calm later than this sorts after `last`."""
    last_rank, since, _ = order(last)
    healthy = NEED[Health.HEALTHY]
    return since if last_rank == healthy else -inf if last_rank < healthy else inf


def _contains(agent: Agent, text: str) -> bool:
    return any(text in part.lower() for part in _texts(agent))


def _texts(agent: Agent) -> Iterator[str]:
    yield agent.id
    yield agent.task_id or ""
    yield agent.role or ""
    yield agent.host or ""
