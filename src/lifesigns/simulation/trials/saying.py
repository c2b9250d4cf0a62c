"""Self-reports: agents that report a trouble, and agents that report busy, idle or something of their own."""

from __future__ import annotations

from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.lives.habits import FOREVER, begin, on_and_on, tell, work
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness


def _says(agent: SimulatedAgent, illness: Illness | None, *words: str) -> Life:
    """Good work, and beats with one of these words after the other; the last one for good."""
    yield from begin(agent)
    agent.beat.status = "healthy"
    yield from work(agent, 5 * MINUTE)
    if illness is not None:
        agent.fall_ill(illness)
    for word in words:
        agent.beat.status = word
        yield from work(agent, 5 * MINUTE)
    yield from on_and_on(agent)


def says_so_when_asked(agent: SimulatedAgent) -> Life:
    """Its beats say nothing; an answer does."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.SELF_REPORTED)
    tell(agent, s.PongReceived, seq=1, status="degraded")
    yield FOREVER


TRIALS = (
    sick("own word", "says that it is degraded", _says, Illness.SELF_REPORTED, "degraded", hours=0.5),
    sick(
        "own word",
        "busy, then unhealthy",
        _says,
        Illness.SELF_REPORTED,
        "busy",
        "unhealthy",
        hours=0.5,
    ),
    sick("own word", "says so when it is asked", says_so_when_asked, hours=0.3),
    healthy("own word", "busy and healthy by turns", _says, None, "busy", "healthy", "busy", hours=1),
    healthy("own word", "says that it idles", _says, None, "idle", hours=1),
    healthy("own word", "a word of its own", _says, None, "indexing", hours=1),
)
