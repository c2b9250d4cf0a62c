"""The ways a life fails. After that only its own end, a nudge, or a new life brings the agent back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.lives import rounds
from lifesigns.simulation.lives.habits import think, turn
from lifesigns.simulation.lives.healthy import be_rate_limited, say_goodbye, wait_for_human
from lifesigns.simulation.simulated_agent import TASK_TOKENS_MAX, Life, SimulatedAgent
from lifesigns.simulation.truth import AT_ONCE, LENIENCY, Illness

FOREVER: Final = 365 * 86_400.0
ENDS_BY_ITSELF: Final = 0.3
CAUGHT: Final = 0.3
"""The share of visible crashes that the process itself catches."""
INSIDE_A_CALL: Final = 0.3
"""The share of loops that are inside a call when they are stopped."""


def crash(agent: SimulatedAgent, *, seen: bool) -> Life:
    """The process ends. Sometimes a supervisor sees it, sometimes only the connection is gone."""
    agent.fall_ill(Illness.CRASH_SEEN if seen else Illness.CRASH)
    life = agent.incarnation
    registered = [said for said in agent.spool if isinstance(said, s.AgentRegistered)]
    agent.stop()
    if seen:  # A supervisor has said itself that this life began.
        after = agent.chance.uniform(0.05, 0.5)
        for report in (*registered, s.ProcessExited(agent_id=agent.id, incarnation=life, status=139)):
            agent.world.tell_by_bus(agent, report, after)
    elif agent.chance.random() < 0.2:
        agent.world.tell_by_bus(agent, s.ConnectionClosed(agent_id=agent.id, incarnation=life), after=0.1)
    yield FOREVER


def catch_and_go_on(agent: SimulatedAgent) -> Life:
    """An error ends its life, and it reports that; but its process catches the error and begins another life."""
    agent.fall_ill(Illness.CRASH_SEEN)
    life = agent.incarnation
    agent.stop()
    agent.goes_on = True
    agent.world.tell_by_bus(
        agent, s.ProcessExited(agent_id=agent.id, incarnation=life, detail="KeyError: 'x'"), after=0.05
    )
    yield agent.chance.uniform(0.1, 5)
    agent.goes_on = False
    agent.start()
    agent.register()
    agent.speak_up()
    agent.come_round()
    yield FOREVER  # Another life has begun: this one takes no more steps.


def freeze(agent: SimulatedAgent) -> Life:
    """The loop stands still; the sender's thread goes on beating and says so."""
    agent.fall_ill(Illness.FREEZE)
    agent.frozen_at = agent.now
    agent.keep_beating()
    yield from _until_it_ends(agent, 20, 5 * MINUTE)


def hang(agent: SimulatedAgent) -> Life:
    """It beats and does nothing, in the middle of its work."""
    agent.fall_ill(Illness.HANG)
    yield FOREVER


def hung_call(agent: SimulatedAgent) -> Life:
    """A declared call that never returns."""
    agent.start_tool("fetch", "")
    agent.fall_ill(Illness.HUNG_CALL)
    yield FOREVER


def loop(agent: SimulatedAgent) -> Life:
    """One to five calls over and over, with the same results; a rate limit does not end it."""
    period = agent.chance.randint(1, 5)
    limits = agent.policy.looping
    enough = limits.same_notice if period == 1 else limits.cycle_notice * period
    failure = agent.fall_ill(Illness.LOOP)
    calls = 0
    while True:
        yield from _ponder(agent, agent.chance.uniform(15, 45))
        step = calls % period
        agent.use_tool(("grep", "read", "bash", "edit", "write")[step], f"again {step}", "the same")
        calls += 1
        if calls == enough:
            failure.due_at = agent.now + LENIENCY
        if calls % 5 == 0:
            agent.think(4000)
        if calls % 30 == 0:
            yield from be_rate_limited(agent)


def loop_inside_a_call(agent: SimulatedAgent) -> Life:
    """It loops and saves, and ends by itself when it is told to: that cancels the call it is in."""
    failure = agent.fall_ill(Illness.LOOP)
    agent.last_words = lambda: rounds.cancel_and_leave(agent)
    calls = 0
    while True:
        yield from turn(agent, "search", "x", "nothing", thought=30.0, takes=25.0)
        agent.save()
        calls += 1
        if calls == agent.policy.looping.same_stuck:
            failure.due_at = agent.now + LENIENCY


def never_save(agent: SimulatedAgent) -> Life:
    """Different calls all day, long ones among them, and no more checkpoints."""
    agent.fall_ill(Illness.STALE)
    while True:
        yield from turn(agent, thought=30.0, takes=agent.chance.choice((2.0, 2.0, 40.0)))
        yield agent.chance.uniform(10, 240)


def only_talk(agent: SimulatedAgent) -> Life:
    """Model call after model call without a tool call, for a while."""
    failure = agent.fall_ill(Illness.TALK)
    end = agent.now + agent.chance.uniform(15, 60) * MINUTE
    calls = 0
    while agent.now < end:
        yield from think(agent, agent.chance.uniform(10, 40))
        calls += 1
        if calls == agent.policy.looping.talk_notice + 1:
            failure.due_at = agent.now + LENIENCY
    agent.come_round()
    yield FOREVER  # Another life has begun: this one takes no more steps.


def _ponder(agent: SimulatedAgent, seconds: float) -> Life:
    """A model call: between the calls of a loop there is nothing else."""
    agent.start_model_call(f"p{agent.calls}")
    yield seconds
    agent.end_model_call()


def err(agent: SimulatedAgent) -> Life:
    """Every call fails; now and then it asks a person, which does not help."""
    failure = agent.fall_ill(Illness.ERRORS)
    end = agent.now + agent.chance.uniform(10, 60) * MINUTE
    ends = agent.chance.random() < ENDS_BY_ITSELF
    failures = 0
    while not ends or agent.now < end:
        yield agent.chance.uniform(20, 60)
        what = f"{agent.chance.random():.9f}"
        agent.use_tool("bash", what, what, error=f"no such thing: {what}")
        failures += 1
        if failures == agent.policy.erring.consecutive_max + 1:
            failure.due_at = agent.now + LENIENCY
        if failures % 4 == 0:
            agent.think(4000)
        if failures % 20 == 0:
            yield from wait_for_human(agent)
    agent.come_round()
    yield FOREVER  # Another life has begun: this one takes no more steps.


def overspend(agent: SimulatedAgent) -> Life:
    """It spends tokens freely, until the cap of its task."""
    failure = agent.fall_ill(Illness.SPENDING)
    used = 0
    while True:
        yield agent.chance.uniform(15, 30)
        tokens = agent.chance.randint(30_000, 60_000)
        agent.say(s.ModelFinished(agent_id=agent.id, incarnation=agent.incarnation, tokens_in=tokens))
        agent.work_a_little()
        used += tokens
        if used >= TASK_TOKENS_MAX > used - tokens:
            failure.due_at = agent.now + AT_ONCE


def never_start(agent: SimulatedAgent) -> Life:
    """It left properly, is expected back, and never returns."""
    agent.finish_task()
    yield from say_goodbye(agent)
    yield agent.chance.uniform(5, 20) * MINUTE
    agent.start()
    agent.register()
    agent.fall_ill(Illness.NEVER_STARTED)
    yield FOREVER


def _until_it_ends(agent: SimulatedAgent, least: float, most: float) -> Life:
    if agent.chance.random() < ENDS_BY_ITSELF:
        yield agent.chance.uniform(least, most)
        agent.come_round()
    yield FOREVER


FAILURES: Final[Mapping[Illness, Callable[[SimulatedAgent], Life]]] = {
    Illness.CRASH_SEEN: lambda agent: (
        catch_and_go_on(agent) if agent.chance.random() < CAUGHT else crash(agent, seen=True)
    ),
    Illness.CRASH: lambda agent: crash(agent, seen=False),
    Illness.FREEZE: freeze,
    Illness.HANG: hang,
    Illness.HUNG_CALL: hung_call,
    Illness.LOOP: lambda agent: (
        loop_inside_a_call(agent) if agent.chance.random() < INSIDE_A_CALL else loop(agent)
    ),
    Illness.STALE: never_save,
    Illness.TALK: only_talk,
    Illness.ERRORS: err,
    Illness.SPENDING: overspend,
    Illness.NEVER_STARTED: never_start,
}

AT_ANY_TIME: Final = frozenset({Illness.CRASH_SEEN, Illness.CRASH})
"""Failures that begin at any time; all others begin between two chapters."""
