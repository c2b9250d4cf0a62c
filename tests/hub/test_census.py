"""Everybody is counted once, however little is looked at."""

from __future__ import annotations

from collections import Counter

from lifesigns.core.health import Doing
from lifesigns.core.signals import AgentLeft, BreakerReported, BreakerState, DoingChanged
from lifesigns.views.builders.census import FRESH_FOR, FreshCensus, census
from tests.core.harness import START, Watch


def fleet() -> Watch:
    """Agents in as many states as can be had quickly."""
    watch = Watch()
    watch.live(START + 60, *"abcdefg")
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN))
    watch.beat("b", loop_lag_ms=30_000.0)
    watch.beat("c", loop_lag_ms=30_000.0)
    watch.hear(AgentLeft(agent_id="d", reason="done"))
    watch.hear(BreakerReported(agent_id="a", name="api", state=BreakerState.OPEN))
    watch.hear(BreakerReported(agent_id="b", name="api", state=BreakerState.OPEN))
    watch.live(watch.now + 60, *"abcf")
    return watch


def test_the_counts_are_those_of_looking_at_everybody() -> None:
    watch = fleet()
    counted, agents = census(watch.engine.beliefs), list(watch.engine.agents())
    assert counted.agents == len(agents) == 7
    assert len({agent.health for agent in agents}) >= 3
    assert {k: n for k, n in counted.states.items() if n} == Counter(agent.health for agent in agents)
    assert {k: n for k, n in counted.doing.items() if n} == Counter(agent.doing for agent in agents)
    kinds = Counter(finding.kind for agent in agents for finding in agent.findings)
    assert kinds
    assert {k: n for k, n in counted.findings.items() if n} == kinds
    assert counted.breakers[BreakerState.OPEN] == 2


def test_who_asks_again_within_a_second_gets_the_same_answer() -> None:
    watch, fresh = fleet(), FreshCensus()
    first = fresh.of(watch.engine.beliefs, 100.0)
    watch.beat("new")
    assert fresh.of(watch.engine.beliefs, 100.0 + FRESH_FOR * 0.99) is first
    assert fresh.of(watch.engine.beliefs, 100.0 + FRESH_FOR).agents == first.agents + 1
