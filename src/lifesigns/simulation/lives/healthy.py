"""The chapters of a life that is going well, also where it looks as if it were not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.effects import Kind, Severity
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives import habits, plain, rounds

TASK_MAX: Final = 3 * HOUR
TOKENS: Final = 4000
THINKS_EVERY: Final = 5 * MINUTE


def steady(being: Being) -> Life:
    """Work: a tool call every few minutes, tokens, now and then a checkpoint."""
    yield from _work_until(being, being.now + being.chance.uniform(20, 90) * MINUTE)


def settle_in(being: Being) -> Life:
    """A new life takes up its work."""
    yield being.chance.uniform(5, 20)
    being.work_a_little()
    being.think(TOKENS)
    being.save()


def _work_until(being: Being, end: float) -> Life:
    chance = being.chance
    call_at = being.now + chance.uniform(10, 120)
    save_at = max(being.now + 5, being.checkpoint_at + chance.uniform(4, 8) * MINUTE)
    while being.now < end and being.doom is None:
        yield min(call_at, save_at) - being.now
        if being.now >= save_at:
            being.save()
            save_at = being.now + chance.uniform(4, 8) * MINUTE
        else:
            if chance.random() < 0.1:
                yield from _announced_call(being)
            being.work_a_little()
            if being.now > being.thought_at + THINKS_EVERY:
                being.think(TOKENS)
            call_at = being.now + chance.uniform(120, 360)


def _announced_call(being: Being) -> Life:
    what = f"{being.calls}"
    call = being.start_tool("bash", what)
    yield being.chance.uniform(1, 20)
    being.use_tool("bash", what, what, call_id=call)


def idle(being: Being) -> Life:
    """Nothing to do, for an hour or more: that is healthy."""
    being.finish_task()
    being.do(Doing.IDLE)
    yield being.chance.uniform(5, 100) * MINUTE
    being.do(Doing.WORKING)


def long_model_call(being: Being) -> Life:
    """A model that thinks for almost half an hour, as announced."""
    being.start_model_call(f"m{being.calls}")
    yield being.chance.uniform(20, 28) * MINUTE
    being.end_model_call(tokens_out=TOKENS)
    yield from _work_until(being, being.now + 15 * MINUTE)


def long_tool_call(being: Being) -> Life:
    """A build that takes most of an hour; it says so beforehand."""
    what = f"{being.calls}"
    call = being.start_tool("build", what, bound=HOUR)
    yield being.chance.uniform(5, 55) * MINUTE
    being.use_tool("build", what, what, call_id=call)
    yield from _work_until(being, being.now + 15 * MINUTE)


def wait_for_human(being: Being) -> Life:
    """A question to a person, who takes their time."""
    being.do(Doing.WAITING_FOR_HUMAN, note="which of the two?")
    yield min(being.chance.expovariate(1 / (20 * MINUTE)), 4 * HOUR)
    being.do(Doing.WORKING)


def be_rate_limited(being: Being) -> Life:
    """The provider says: not before then. Afterwards work goes on, if not on the second."""
    wait = being.chance.uniform(5, 60) * MINUTE
    being.do(Doing.RATE_LIMITED, until=being.now + wait)
    yield wait + being.chance.uniform(1, 30)
    being.do(Doing.WORKING)


def poll(being: Being) -> Life:
    """Looking again and again whether something is done, with a tool that says it is for that."""
    yield from settle_in(being)
    end = being.now + being.chance.uniform(15, 50) * MINUTE
    looks = 0
    while being.now < end:
        yield being.chance.uniform(30, 60)
        being.use_tool("check_ci", "build 77", "pending")
        looks += 1
        if looks % 4 == 0:
            being.think(TOKENS / 2)
            note = s.ProgressMade(agent_id=being.id, incarnation=being.incarnation, note="still building")
            being.say(note)
    yield from settle_in(being)


def batch(being: Being) -> Life:
    """The same tool a hundred times, the same "ok" a hundred times, each time for another file."""
    yield from settle_in(being)
    for number in range(being.chance.randint(30, 100)):
        yield being.chance.uniform(10, 30)
        being.use_tool("convert", f"file {being.births}.{being.tasks}.{being.now:.0f}", "ok")
        if number % 12 == 0:
            being.think(TOKENS)
            being.save()


def leave_and_return(being: Being) -> Life:
    """A proper good-bye, and a new life later; some take their time to start."""
    being.finish_task()
    yield from say_goodbye(being)
    yield being.chance.uniform(5, 60) * MINUTE
    being.born()
    being.register()
    slow = being.chance.random() < 0.3
    grace = being.policy.silence.grace
    yield being.chance.uniform(0.5, 0.95) * grace if slow else being.chance.uniform(1, 20)
    being.speak_up()


def say_goodbye(being: Being) -> Life:
    """It does not go before it has said so."""
    being.leaving = True
    being.say(s.AgentLeft(agent_id=being.id, incarnation=being.incarnation, reason="the day is over"))
    yield 5.0
    while being.spool:
        yield 5.0
    being.stop()


def restart(being: Being) -> Life:
    """A deploy: the new life begins while the last words of the old one are still on their way."""
    old, was_heard = being.incarnation, being.heard_life == being.incarnation
    being.stop()
    being.born()
    being.register()
    yield being.chance.uniform(0.5, 10)
    being.speak_up()
    how_long = being.chance.uniform(0, 30)
    if was_heard:  # Who was cut off all its life has nothing on its way.
        being.world.linger(being, old, how_long)
    yield from settle_in(being)


# --- what looks like a loop, and is none --------------------------------------------------------------------------

AT_MOST_DEGRADED: Final = {Kind.LOOPING: Severity.DEGRADED}
ASKED_ABOUT: Final = {
    Kind.ERRORS: Severity.FAILING,
    Kind.LOOPING: Severity.DEGRADED,
    # It waits for a quarter of an hour and does not say so.
    Kind.NO_TOOL_CALL: Severity.STUCK,
    Kind.NO_OUTPUT: Severity.STUCK,
    Kind.NO_TOKENS: Severity.DEGRADED,
    Kind.NO_CHECKPOINT: Severity.DEGRADED,
}


def in_rounds(one: Callable[[Being], Life]) -> Callable[[Being], Life]:
    """A chapter of such rounds."""

    def chapter(being: Being) -> Life:
        yield from settle_in(being)
        end = being.now + being.chance.uniform(15, 60) * MINUTE
        while being.now < end and being.doom is None:
            yield from one(being)
        yield from settle_in(being)

    return chapter


def wait_and_look(being: Being) -> Life:
    """A job, a mailbox, a build: for hours, and always the same answer. People may hear of it, no more."""
    yield from settle_in(being)
    how = being.chance.choice((rounds.SLEEP_AND_CHECK, rounds.EMPTY_MAILBOX, rounds.CI))
    end = being.now + being.chance.uniform(30, 150) * MINUTE
    being.suspicious = AT_MOST_DEGRADED
    while being.now < end and being.doom is None:
        yield from rounds.look(being, *how)
    yield from settle_in(being)
    yield MINUTE
    being.suspicious, being.suspicious_until = {}, being.now


def retry_and_succeed(being: Being) -> Life:
    """Each pause is twice as long as the one before, and in the end it works. Until then it may well be asked about."""
    yield from settle_in(being)
    being.suspicious = ASKED_ABOUT
    yield from rounds.retry(being, being.chance.randint(3, 8))
    yield from habits.call(being, "fetch", "report", "here it is")
    yield from settle_in(being)
    yield MINUTE
    being.suspicious, being.suspicious_until = {}, being.now


def use_long_tools(being: Being) -> Life:
    """Calls of minutes, one after the other, and a checkpoint after each."""
    yield from settle_in(being)
    for _ in range(being.chance.randint(3, 8)):
        yield from habits.turn(being, "train", takes=being.chance.uniform(3, 8) * MINUTE, thought=30.0)
        being.save()


def send_what_a_document_lists(being: Being) -> Life:
    """Beats and nothing else, for good."""
    being.born()
    being.incarnation = None
    being.plain = being.chance.choice((plain.swarm, plain.fleet, plain.worker))
    being.speaking = True
    being.send_beat()
    being.keep_beating()
    yield 365 * 86_400.0
