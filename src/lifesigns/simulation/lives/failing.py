"""The ways a life goes wrong. After that only its own end, a nudge, or a new life brings the agent back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.being import TASK_TOKENS_MAX, Being, Life
from lifesigns.simulation.lives import rounds
from lifesigns.simulation.lives.habits import think, turn
from lifesigns.simulation.lives.healthy import be_rate_limited, say_goodbye, wait_for_human
from lifesigns.simulation.truth import AT_ONCE, LENIENCY, Ill

FOREVER: Final = 365 * 86_400.0
ENDS_BY_ITSELF: Final = 0.3
CAUGHT: Final = 0.3
"""How many crashes that are seen are caught by the process itself."""
INSIDE_A_CALL: Final = 0.3
"""How many loops are inside of a call when they are stopped."""


def crash(being: Being, *, seen: bool) -> Life:
    """The process ends. Sometimes a supervisor sees it, sometimes only the connection is gone."""
    being.fall_ill(Ill.CRASH_SEEN if seen else Ill.CRASH)
    life = being.incarnation
    being.stop()
    if seen:
        being.world.tell_by_bus(
            being,
            s.ProcessExited(agent_id=being.id, incarnation=life, status=139),
            after=being.chance.uniform(0.05, 0.5),
        )
    elif being.chance.random() < 0.2:
        being.world.tell_by_bus(being, s.ConnectionClosed(agent_id=being.id, incarnation=life), after=0.1)
    yield FOREVER


def catch_and_go_on(being: Being) -> Life:
    """An error ends its life, and it says so itself; but its process catches it, and begins another one."""
    being.fall_ill(Ill.CRASH_SEEN)
    life = being.incarnation
    being.stop()
    being.goes_on = True
    being.world.tell_by_bus(
        being, s.ProcessExited(agent_id=being.id, incarnation=life, detail="KeyError: 'x'"), after=0.05
    )
    yield being.chance.uniform(0.1, 5)
    being.goes_on = False
    being.born()
    being.register()
    being.speak_up()
    being.come_round()
    yield FOREVER  # Another life has begun: not one step of this one more.


def freeze(being: Being) -> Life:
    """The loop stands still; the sender's thread goes on beating and says so."""
    being.fall_ill(Ill.FREEZE)
    being.frozen_at = being.now
    being.keep_beating()
    yield from _until_it_ends(being, 20, 5 * MINUTE)


def hang(being: Being) -> Life:
    """It beats and does nothing, in the middle of its work."""
    being.fall_ill(Ill.HANG)
    yield FOREVER


def hung_call(being: Being) -> Life:
    """A call that was announced and never comes back."""
    being.start_tool("fetch", "")
    being.fall_ill(Ill.HUNG_CALL)
    yield FOREVER


def loop(being: Being) -> Life:
    """One to five calls over and over, with the same results; a rate limit does not end it."""
    period = being.chance.randint(1, 5)
    limits = being.policy.looping
    enough = limits.same_notice if period == 1 else limits.cycle_notice * period
    failure = being.fall_ill(Ill.LOOP)
    calls = 0
    while True:
        yield from _ponder(being, being.chance.uniform(15, 45))
        step = calls % period
        being.use_tool(("grep", "read", "bash", "edit", "write")[step], f"again {step}", "the same")
        calls += 1
        if calls == enough:
            failure.due_at = being.now + LENIENCY
        if calls % 5 == 0:
            being.think(4000)
        if calls % 30 == 0:
            yield from be_rate_limited(being)


def loop_inside_a_call(being: Being) -> Life:
    """It loops and saves, and ends by itself when it is told to: that cancels the call it is in."""
    failure = being.fall_ill(Ill.LOOP)
    being.last_words = lambda: rounds.cancel_and_leave(being)
    calls = 0
    while True:
        yield from turn(being, "search", "x", "nothing", thought=30.0, takes=25.0)
        being.save()
        calls += 1
        if calls == being.policy.looping.same_stuck:
            failure.due_at = being.now + LENIENCY


def never_save(being: Being) -> Life:
    """Calls like no other all day, long ones among them, and no checkpoint any more."""
    being.fall_ill(Ill.STALE)
    while True:
        yield from turn(being, thought=30.0, takes=being.chance.choice((2.0, 2.0, 40.0)))
        yield being.chance.uniform(10, 240)


def only_talk(being: Being) -> Life:
    """Model call after model call and never a deed, for a while."""
    failure = being.fall_ill(Ill.TALK)
    end = being.now + being.chance.uniform(15, 60) * MINUTE
    calls = 0
    while being.now < end:
        yield from think(being, being.chance.uniform(10, 40))
        calls += 1
        if calls == being.policy.looping.talk_notice + 1:
            failure.due_at = being.now + LENIENCY
    being.come_round()
    yield FOREVER  # Another life has begun: not one step of this one more.


def _ponder(being: Being, seconds: float) -> Life:
    """A model call: between the calls of a loop there is nothing else."""
    being.start_model_call(f"p{being.calls}")
    yield seconds
    being.end_model_call()


def err(being: Being) -> Life:
    """Whatever it tries fails; now and then it asks a person, which does not help."""
    failure = being.fall_ill(Ill.ERRORS)
    end = being.now + being.chance.uniform(10, 60) * MINUTE
    ends = being.chance.random() < ENDS_BY_ITSELF
    failures = 0
    while not ends or being.now < end:
        yield being.chance.uniform(20, 60)
        what = f"{being.chance.random():.9f}"
        being.use_tool("bash", what, what, error=f"no such thing: {what}")
        failures += 1
        if failures == being.policy.erring.consecutive_max + 1:
            failure.due_at = being.now + LENIENCY
        if failures % 4 == 0:
            being.think(4000)
        if failures % 20 == 0:
            yield from wait_for_human(being)
    being.come_round()
    yield FOREVER  # Another life has begun: not one step of this one more.


def overspend(being: Being) -> Life:
    """Tokens as if they cost nothing, until the cap of its task."""
    failure = being.fall_ill(Ill.SPENDING)
    used = 0
    while True:
        yield being.chance.uniform(15, 30)
        tokens = being.chance.randint(30_000, 60_000)
        being.say(s.ModelFinished(agent_id=being.id, incarnation=being.incarnation, tokens_in=tokens))
        being.work_a_little()
        used += tokens
        if used >= TASK_TOKENS_MAX > used - tokens:
            failure.due_at = being.now + AT_ONCE


def never_start(being: Being) -> Life:
    """It left properly, is expected back, and is not heard of again."""
    being.finish_task()
    yield from say_goodbye(being)
    yield being.chance.uniform(5, 20) * MINUTE
    being.born()
    being.register()
    being.fall_ill(Ill.NEVER_STARTED)
    yield FOREVER


def _until_it_ends(being: Being, least: float, most: float) -> Life:
    if being.chance.random() < ENDS_BY_ITSELF:
        yield being.chance.uniform(least, most)
        being.come_round()
    yield FOREVER


FAILURES: Final[Mapping[Ill, Callable[[Being], Life]]] = {
    Ill.CRASH_SEEN: lambda being: (
        catch_and_go_on(being) if being.chance.random() < CAUGHT else crash(being, seen=True)
    ),
    Ill.CRASH: lambda being: crash(being, seen=False),
    Ill.FREEZE: freeze,
    Ill.HANG: hang,
    Ill.HUNG_CALL: hung_call,
    Ill.LOOP: lambda being: (
        loop_inside_a_call(being) if being.chance.random() < INSIDE_A_CALL else loop(being)
    ),
    Ill.STALE: never_save,
    Ill.TALK: only_talk,
    Ill.ERRORS: err,
    Ill.SPENDING: overspend,
    Ill.NEVER_STARTED: never_start,
}

AT_ANY_TIME: Final = frozenset({Ill.CRASH_SEEN, Ill.CRASH})
"""What strikes whatever the agent is doing; everything else begins between two chapters."""
