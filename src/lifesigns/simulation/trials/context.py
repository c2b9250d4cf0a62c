"""Context: agents whose window is full and stays so, and agents that know how to live with one."""

from __future__ import annotations

from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.lives.habits import begin, call, tell
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness

WINDOW: Final = 200_000


def _asks(agent: SimulatedAgent, share: float, *, ok: bool = True) -> Life:
    """A model call that fills this part of its window, and something done after it."""
    agent.calls += 1
    call_id = f"m{agent.calls}"
    tell(agent, s.ModelStarted, call_id=call_id)
    yield 12.0
    tell(
        agent,
        s.ModelFinished,
        call_id=call_id,
        tokens_in=400,
        tokens_out=100,
        ok=ok,
        context_tokens=int(share * WINDOW),
        context_window=WINDOW,
    )
    yield from call(agent, "bash")
    agent.save()


# --- sick -----------------------------------------------------------------------------------------------


def fills_up(agent: SimulatedAgent) -> Life:
    """It grows by a fiftieth with each call, and stays at the brim."""
    yield from begin(agent)
    for number in range(50):
        yield from _asks(agent, number / 50)
    agent.fall_ill(Illness.CONTEXT)
    while True:
        yield from _asks(agent, 0.99)


def is_refused(agent: SimulatedAgent) -> Life:
    """One call asks for more than the window, and so does every other after it, each refused."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.CONTEXT)
    while True:
        yield from _asks(agent, 1.2, ok=False)


def compacts_in_vain(agent: SimulatedAgent) -> Life:
    """It cuts a little off now and then, and never gets below the brim."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.CONTEXT)
    while True:
        yield from _asks(agent, 1.0)
        yield from _asks(agent, 0.985)


# --- healthy ----------------------------------------------------------------------------------------------


def compacts_in_time(agent: SimulatedAgent) -> Life:
    """Up to the brim, for a call or two; then it compacts and begins anew."""
    yield from begin(agent)
    while True:
        for number in range(20):
            yield from _asks(agent, 0.2 + number / 25)
        yield from _asks(agent, 0.99)
        yield from _asks(agent, 1.0)


def lives_at_nine_tenths(agent: SimulatedAgent) -> Life:
    """A large document stays in its window for good, with room beside it."""
    yield from begin(agent)
    while True:
        yield from _asks(agent, 0.95)


def one_huge_reading_at_a_time(agent: SimulatedAgent) -> Life:
    """Every other call reads a whole book."""
    yield from begin(agent)
    while True:
        yield from _asks(agent, 1.0)
        yield from _asks(agent, 0.3)


TRIALS = (
    sick("context", "fills up and stays full", fills_up, hours=1),
    sick("context", "every call is larger than the window", is_refused, hours=0.5),
    sick("context", "compacts in vain", compacts_in_vain, hours=0.5),
    healthy("context", "compacts in time", compacts_in_time, hours=1),
    healthy("context", "lives at nine tenths", lives_at_nine_tenths, hours=1),
    healthy("context", "one huge reading at a time", one_huge_reading_at_a_time, hours=1),
)
