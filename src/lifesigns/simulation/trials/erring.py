"""Erring: whose calls fail too often, and who has the usual bad luck."""

from __future__ import annotations

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives.habits import FOREVER, begin, on_and_on, tell, turn, work
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Ill

# --- sick -----------------------------------------------------------------------------------------------


def fails_at_everything(being: Being) -> Life:
    """Whatever it tries, and it tries something else each time."""
    yield from begin(being)
    yield from work(being, 5 * MINUTE)
    being.fall_ill(Ill.ERRORS)
    while True:
        yield from turn(being, error=f"no such file {being.now:.0f}")
        being.save()


def fails_at_every_other(being: Being) -> Life:
    """Half of its calls."""
    yield from begin(being)
    yield from work(being, 5 * MINUTE)
    being.fall_ill(Ill.ERRORS)
    while True:
        yield from turn(being, error=f"refused {being.now:.0f}")
        yield from turn(being)
        being.save()


def gives_up(being: Being) -> Life:
    """It says itself that it cannot go on."""
    yield from begin(being)
    yield from work(being, 5 * MINUTE)
    being.fall_ill(Ill.ERRORS)
    tell(being, s.ErrorReported, message="the repository is gone", recoverable=False)
    yield FOREVER


def its_beats_count_errors(being: Being) -> Life:
    """It reports no calls; its beats carry a count that grows with each of them."""
    yield from begin(being)
    being.beat.error_count = 0
    yield 5 * MINUTE
    being.fall_ill(Ill.ERRORS)
    while True:
        being.beat.error_count += 1
        yield being.interval


# --- healthy ----------------------------------------------------------------------------------------------


def one_in_ten(being: Being) -> Life:
    """One call in ten fails, and it goes on."""
    yield from begin(being)
    number = 0
    while True:
        number += 1
        error = f"not found {number}" if number % 10 == 0 else None
        yield from turn(being, error=error)
        if number % 12 == 0:
            being.save()


def a_red_test_and_its_repair(being: Being) -> Life:
    """Edit, red, edit, red, edit, green; and many other calls between."""
    yield from begin(being)
    while True:
        for number in range(2):
            yield from turn(being, "edit")
            yield from turn(being, "pytest", "all", error=f"{number + 1} failed {being.now}")
        yield from turn(being, "edit")
        yield from turn(being, "pytest", "all", f"passed {being.now}")
        being.save()
        yield from work(being, 5 * MINUTE)


def waits_out_a_rate_limit(being: Being) -> Life:
    """A refusal, a pause as it was told, and on."""
    yield from begin(being)
    while True:
        yield from work(being, 10 * MINUTE)
        being.use_tool("search", f"{being.now}", "", error="429", error_kind="rate_limit")
        being.do(Doing.RATE_LIMITED, until=being.now + 5 * MINUTE)
        yield 5 * MINUTE + 3.0
        being.do(Doing.WORKING)


def erred_long_ago(being: Being) -> Life:
    """Three failures in a row early in its task; since then, none."""
    yield from begin(being)
    yield from work(being, 12 * MINUTE)
    for number in range(being.policy.erring.consecutive_max):
        yield from turn(being, error=f"not installed {number}")
    yield from on_and_on(being)


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
