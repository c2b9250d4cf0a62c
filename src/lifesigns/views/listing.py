"""Many agents: which of them, in what order, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from math import inf

from msgspec import Struct

from lifesigns.core.agent import Agent
from lifesigns.core.health import Doing, Health
from lifesigns.views.agents import NEED, AgentHealth, need


class AgentFilter(Struct, frozen=True):
    """Which agents: every condition that is given must hold."""

    state: tuple[Health, ...] = ()
    doing: tuple[Doing, ...] = ()
    task: str | None = None
    role: str | None = None
    host: str | None = None
    q: str | None = None
    """Part of the id, task, role or host, whatever its case."""

    def matches(self, agent: Agent) -> bool:
        """Whether this agent is one of them."""
        return (
            (not self.state or agent.health in self.state)
            and (not self.doing or agent.doing in self.doing)
            and (self.task is None or agent.task_id == self.task or self.task in agent.claims)
            and (self.role is None or agent.role == self.role)
            and (self.host is None or agent.host == self.host)
            and (self.q is None or _contains(agent, self.q.lower()))
        )


class AgentList(Struct, frozen=True):
    """Agents, and how to ask for what comes next: the next page by `cursor`, later changes by `updated`."""

    agents: tuple[AgentHealth, ...]
    updated: str
    cursor: str | None
    complete: bool
    """False if these are only the ones that changed since the token that was given."""
    gone: tuple[str, ...]
    """Agents that were forgotten since then."""


def order(agent: Agent) -> tuple[int, float, str]:
    """The neediest first; among equals the one that has waited longest."""
    return need(agent), agent.since, agent.id


def page(
    agents: Iterable[Agent], matches: Callable[[Agent], bool], limit: int, after: int
) -> tuple[list[Agent], int | None]:
    """The next agents in the order they were first heard of, and where to go on if there are more."""
    found: list[Agent] = []
    for agent in agents:
        if agent.order > after and matches(agent):
            if len(found) == limit:
                return found, found[-1].order
            found.append(agent)
    return found, None


def neediest(agents: Iterable[Agent], matches: Callable[[Agent], bool], limit: int) -> list[Agent]:
    """Those who need somebody most.

    Of 100,000 agents nearly all are passed over by a comparison: who is calm is healthy, and has been for no longer than
    the last of the first who were found so far.
    """
    found: list[Agent] = []
    calm_until = inf
    for agent in agents:
        if agent.calm and agent.since > calm_until and agent.doing is not Doing.WAITING_FOR_HUMAN:
            continue
        if matches(agent):
            found.append(agent)
            if len(found) >= 2 * limit:
                found = nsmallest(limit, found, key=order)
                calm_until = _calm_until(found[-1])
    return nsmallest(limit, found, key=order)


def _calm_until(last: Agent) -> float:
    """Who has been calm since later than this comes after that one."""
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
