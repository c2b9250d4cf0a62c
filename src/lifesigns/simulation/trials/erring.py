"""Erring: agents whose calls fail too often, and agents with the usual bad luck."""

from __future__ import annotations

from lifesigns.core import signals as s
from lifesigns.core.effects import Severity
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


def _trip(agent: SimulatedAgent, state: s.BreakerState) -> None:
    tell(agent, s.BreakerReported, name="search", state=state)


def stays_tripped(agent: SimulatedAgent) -> Life:
    """Its breaker opens; each minute it tries once, fails, and waits for the next minute."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.ERRORS)
    _trip(agent, s.BreakerState.OPEN)
    while True:
        yield MINUTE
        _trip(agent, s.BreakerState.HALF_OPEN)
        yield 2.0
        _trip(agent, s.BreakerState.OPEN)
        agent.save()


def tripped_and_refused(agent: SimulatedAgent) -> Life:
    """The same, and it reports every refusal as an error of the world."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.ERRORS)
    _trip(agent, s.BreakerState.OPEN)
    while True:
        yield from turn(agent, "search", error=f"503 at {agent.now:.0f}", error_kind="server_error")
        agent.save()


def trips_again_and_again(agent: SimulatedAgent) -> Life:
    """It never says half-open, only open, of one breaker after the other."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.fall_ill(Illness.ERRORS)
    number = 0
    while True:
        number += 1
        tell(agent, s.BreakerReported, name=f"endpoint-{number % 8}", state=s.BreakerState.OPEN)
        yield 2 * MINUTE
        tell(agent, s.BreakerReported, name=f"endpoint-{number % 8}", state=s.BreakerState.HALF_OPEN)
        agent.save()


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


def trips_and_recovers(agent: SimulatedAgent) -> Life:
    """Open for a minute, half-open, closed: what a breaker is for."""
    yield from begin(agent)
    while True:
        yield from work(agent, 10 * MINUTE)
        for state, pause in ((s.BreakerState.OPEN, MINUTE), (s.BreakerState.HALF_OPEN, 3.0)):
            _trip(agent, state)
            yield pause
        _trip(agent, s.BreakerState.CLOSED)


def does_without_it(agent: SimulatedAgent) -> Life:
    """One endpoint is down for hours; everything else it does goes well."""
    yield from begin(agent)
    while True:
        _trip(agent, s.BreakerState.OPEN)
        yield from work(agent, 4 * MINUTE)
        _trip(agent, s.BreakerState.HALF_OPEN)
        yield from work(agent, 4 * MINUTE)


def tripped_and_done(agent: SimulatedAgent) -> Life:
    """Its breaker is open when it finishes; it waits for work, and its breaker tries now and then."""
    yield from begin(agent, works_for=5 * MINUTE)
    _trip(agent, s.BreakerState.OPEN)
    agent.finish_task()
    agent.do(Doing.IDLE)
    yield FOREVER


TRIALS = (
    sick("erring", "its breaker stays tripped", stays_tripped, severity=Severity.FAILING, hours=0.5),
    sick("erring", "tripped, and each call refused", tripped_and_refused, severity=Severity.FAILING, hours=1),
    sick(
        "erring", "one breaker after the other", trips_again_and_again, severity=Severity.FAILING, hours=0.5
    ),
    healthy("erring", "its breaker trips and recovers", trips_and_recovers, hours=1),
    healthy("erring", "does without what is down", does_without_it, hours=2),
    healthy("erring", "tripped, and done", tripped_and_done, hours=1),
    sick("erring", "fails at everything", fails_at_everything, hours=0.5),
    sick("erring", "fails at every other call", fails_at_every_other, hours=0.5),
    sick("erring", "says that it cannot go on", gives_up, hours=0.5),
    sick("erring", "its beats count more errors each time", its_beats_count_errors, hours=0.5),
    healthy("erring", "one call in ten fails", one_in_ten, hours=1),
    healthy("erring", "a red test and its repair", a_red_test_and_its_repair, hours=1),
    healthy("erring", "waits out a rate limit", waits_out_a_rate_limit, hours=1),
    healthy("erring", "erred long ago", erred_long_ago, hours=1),
)
