"""Erring: agents whose calls fail too often, and agents with the usual bad luck."""

from __future__ import annotations

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.lives.habits import FOREVER, begin, on_and_on, tell, turn, work
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness

# --- sick -----------------------------------------------------------------------------------------------


def fails_at_everything(agent: SimulatedAgent) -> Life:
    """Every call fails, and it tries something else each time."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.ERRORS)
    while True:
        yield from turn(agent, error=f"no such file {agent.now:.0f}")
        agent.save()


def fails_at_every_other(agent: SimulatedAgent) -> Life:
    """Half of its calls fail."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.ERRORS)
    while True:
        yield from turn(agent, error=f"refused {agent.now:.0f}")
        yield from turn(agent)
        agent.save()


def gives_up(agent: SimulatedAgent) -> Life:
    """It reports itself that it cannot continue."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.ERRORS)
    tell(agent, s.ErrorReported, message="the repository is gone", recoverable=False)
    yield FOREVER


def its_beats_count_errors(agent: SimulatedAgent) -> Life:
    """It reports no calls; its beats carry a count that grows with each of them."""
    yield from begin(agent)
    agent.beat.error_count = 0
    yield 5 * MINUTE
    agent.fall_ill(Illness.ERRORS)
    while True:
        agent.beat.error_count += 1
        yield agent.interval


# --- healthy ----------------------------------------------------------------------------------------------


def one_in_ten(agent: SimulatedAgent) -> Life:
    """One call in ten fails, and it continues."""
    yield from begin(agent)
    number = 0
    while True:
        number += 1
        error = f"not found {number}" if number % 10 == 0 else None
        yield from turn(agent, error=error)
        if number % 12 == 0:
            agent.save()


def a_red_test_and_its_repair(agent: SimulatedAgent) -> Life:
    """Edit, red, edit, red, edit, green; and many other calls between."""
    yield from begin(agent)
    while True:
        for number in range(2):
            yield from turn(agent, "edit")
            yield from turn(agent, "pytest", "all", error=f"{number + 1} failed {agent.now}")
        yield from turn(agent, "edit")
        yield from turn(agent, "pytest", "all", f"passed {agent.now}")
        agent.save()
        yield from work(agent, 5 * MINUTE)


def waits_out_a_rate_limit(agent: SimulatedAgent) -> Life:
    """A refusal, the requested pause, and on."""
    yield from begin(agent)
    while True:
        yield from work(agent, 10 * MINUTE)
        agent.use_tool("search", f"{agent.now}", "", error="429", error_kind="rate_limit")
        agent.do(Doing.RATE_LIMITED, until=agent.now + 5 * MINUTE)
        yield 5 * MINUTE + 3.0
        agent.do(Doing.WORKING)


def erred_long_ago(agent: SimulatedAgent) -> Life:
    """Three failures in a row early in its task; since then, none."""
    yield from begin(agent, works_for=12 * MINUTE)
    for number in range(agent.policy.erring.consecutive_max):
        yield from turn(agent, error=f"not installed {number}")
    yield from on_and_on(agent)


TRIALS = (
    sick("erring", "fails at everything", fails_at_everything, hours=0.5),
    sick("erring", "fails at every other call", fails_at_every_other, hours=0.5),
    sick("erring", "says that it cannot go on", gives_up, hours=0.5),
    sick("erring", "its beats count more errors each time", its_beats_count_errors, hours=0.5),
    healthy("erring", "one call in ten fails", one_in_ten, hours=1),
    healthy("erring", "a red test and its repair", a_red_test_and_its_repair, hours=1),
    healthy("erring", "waits out a rate limit", waits_out_a_rate_limit, hours=1),
    healthy("erring", "erred long ago", erred_long_ago, hours=1),
)
