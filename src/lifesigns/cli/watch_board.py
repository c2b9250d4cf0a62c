"""The board: the data of `watch`, and when to draw it again. No I/O."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from lifesigns.cli.output import seconds
from lifesigns.core.effects import Flip
from lifesigns.core.health import Health
from lifesigns.events import CATALOGUE, fact_told
from lifesigns.views import AgentHealth, EventView, FleetView
from lifesigns.views.agents import NEED

RATE_OVER: Final = 60.0
RATE_FROM: Final = 4.0
"""Seconds of data before we show a rate: over less it would be chance."""
EVENTS_MAX: Final = 50


class Rate(NamedTuple):
    """An agent's consumption."""

    tokens_per_minute: float
    cost_per_hour: float


class _Spent(NamedTuple):
    at: float
    tokens: int
    cost: float


class Board:
    """The last answer, the events since, and since when the hub is away."""

    def __init__(self, hub: str) -> None:
        self.hub = hub
        self.agents: Sequence[AgentHealth] = ()
        self.fleet: FleetView | None = None
        self.seen_at: float | None = None
        self.away_since: float | None = None
        self.trouble = ""
        self.events: deque[EventView] = deque(maxlen=EVENTS_MAX)
        self.happened = asyncio.Event()
        """There is a reason to fetch."""
        self.changed = asyncio.Event()
        """There is a reason to draw."""
        self._spent: dict[str, deque[_Spent]] = {}

    def saw(self, agents: Sequence[AgentHealth], fleet: FleetView, now: float) -> None:
        """The hub has answered."""
        self.agents, self.fleet, self.seen_at = agents, fleet, now
        self.away_since, self.trouble = None, ""
        self._spent = {agent.agent_id: self._noted(agent, now) for agent in agents}
        self.changed.set()

    def lost(self, trouble: str, now: float) -> None:
        """The hub has not answered."""
        if self.away_since is None:
            self.away_since = now
        self.trouble = trouble
        self.changed.set()

    def heard(self, event: EventView) -> None:
        """An event came."""
        self.events.append(event)
        self.happened.set()

    def rate(self, agent_id: str) -> Rate | None:
        """An agent's consumption over the last minute; None without enough data."""
        spent = self._spent.get(agent_id)
        if not spent:
            return None
        first, last = spent[0], spent[-1]
        passed = last.at - first.at
        if passed < RATE_FROM:
            return None
        return Rate((last.tokens - first.tokens) / passed * 60, (last.cost - first.cost) / passed * 3600)

    def _noted(self, agent: AgentHealth, now: float) -> deque[_Spent]:
        spent = self._spent.get(agent.agent_id, deque())
        tokens, cost = agent.metrics.token_count, agent.metrics.cost_usd
        if spent and tokens < spent[-1].tokens:
            spent.clear()  # Another life, which counts from zero.
        spent.append(_Spent(now, tokens, cost))
        while spent[0].at < now - RATE_OVER:
            spent.popleft()
        return spent


def counts(states: Mapping[Health, int]) -> Iterable[tuple[Health, int]]:
    """The agents' states and counts, the neediest first."""
    return ((state, states[state]) for state in sorted(NEED, key=NEED.__getitem__) if states.get(state))


def sentence_of(event: EventView) -> str:
    """An event as a sentence; empty if people need not read it."""
    row = CATALOGUE.get(event.type)
    if row is None or row.sentence is None:
        return ""
    fact = fact_told(event.type, seconds(event.at), event.agent_id, event.data)
    if fact is None:
        return f"{event.type} {event.agent_id}"  # A hub of another version has other fields.
    if isinstance(fact, Flip):
        cause = f" ({fact.cause})" if fact.cause else ""
        return f"{fact.agent_id}: {fact.was} → {fact.now}{cause}: {fact.reason}"
    quiet = row.level is not None and row.level(fact) is None
    return "" if quiet else row.sentence(fact)
