"""The chapters of a healthy life, including those that look unhealthy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.effects import Kind, Severity
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.lives import habits, plain, rounds
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent

TASK_MAX: Final = 3 * HOUR
TOKENS: Final = 4000
THINKS_EVERY: Final = 5 * MINUTE


def steady(agent: SimulatedAgent) -> Life:
    """Work: a tool call every few minutes, tokens, now and then a checkpoint."""
    yield from _work_until(agent, agent.now + agent.chance.uniform(20, 90) * MINUTE)


def settle_in(agent: SimulatedAgent) -> Life:
    """A new life continues its work."""
    yield agent.chance.uniform(5, 20)
    agent.work_a_little()
    agent.think(TOKENS)
    agent.save()


def _work_until(agent: SimulatedAgent, end: float) -> Life:
    chance = agent.chance
    call_at = agent.now + chance.uniform(10, 120)
    save_at = max(agent.now + 5, agent.checkpoint_at + chance.uniform(4, 8) * MINUTE)
    while agent.now < end and agent.doom is None:
        yield min(call_at, save_at) - agent.now
        if agent.now >= save_at:
            agent.save()
            save_at = agent.now + chance.uniform(4, 8) * MINUTE
        else:
            if chance.random() < 0.1:
                yield from _announced_call(agent)
            agent.work_a_little()
            if agent.now > agent.thought_at + THINKS_EVERY:
                agent.think(TOKENS)
            call_at = agent.now + chance.uniform(120, 360)


def _announced_call(agent: SimulatedAgent) -> Life:
    what = f"{agent.calls}"
    call = agent.start_tool("bash", what)
    yield agent.chance.uniform(1, 20)
    agent.use_tool("bash", what, what, call_id=call)


def idle(agent: SimulatedAgent) -> Life:
    """Nothing to do, for an hour or more: that is healthy."""
    agent.finish_task()
    agent.do(Doing.IDLE)
    yield agent.chance.uniform(5, 100) * MINUTE
    agent.do(Doing.WORKING)


def long_model_call(agent: SimulatedAgent) -> Life:
    """A model that thinks for almost half an hour, as declared."""
    agent.start_model_call(f"m{agent.calls}")
    yield agent.chance.uniform(20, 28) * MINUTE
    agent.end_model_call(tokens_out=TOKENS)
    yield from _work_until(agent, agent.now + 15 * MINUTE)


def long_tool_call(agent: SimulatedAgent) -> Life:
    """A build that takes most of an hour, as declared."""
    what = f"{agent.calls}"
    call = agent.start_tool("build", what, bound=HOUR)
    yield agent.chance.uniform(5, 55) * MINUTE
    agent.use_tool("build", what, what, call_id=call)
    yield from _work_until(agent, agent.now + 15 * MINUTE)


def wait_for_human(agent: SimulatedAgent) -> Life:
    """A question to a person, who takes their time."""
    agent.do(Doing.WAITING_FOR_HUMAN, note="which of the two?")
    yield min(agent.chance.expovariate(1 / (20 * MINUTE)), 4 * HOUR)
    agent.do(Doing.WORKING)


def be_rate_limited(agent: SimulatedAgent) -> Life:
    """The provider says until when to wait. Afterwards work goes on, if not to the second."""
    wait = agent.chance.uniform(5, 60) * MINUTE
    agent.do(Doing.RATE_LIMITED, until=agent.now + wait)
    yield wait + agent.chance.uniform(1, 30)
    agent.do(Doing.WORKING)


def poll(agent: SimulatedAgent) -> Life:
    """It polls whether something is done, with a declared polling tool."""
    yield from settle_in(agent)
    end = agent.now + agent.chance.uniform(15, 50) * MINUTE
    looks = 0
    while agent.now < end:
        yield agent.chance.uniform(30, 60)
        agent.use_tool("check_ci", "build 77", "pending")
        looks += 1
        if looks % 4 == 0:
            agent.think(TOKENS / 2)
            note = s.ProgressMade(agent_id=agent.id, incarnation=agent.incarnation, note="still building")
            agent.say(note)
    yield from settle_in(agent)


def batch(agent: SimulatedAgent) -> Life:
    """The same tool a hundred times, the same "ok" a hundred times, each time for another file."""
    yield from settle_in(agent)
    for number in range(agent.chance.randint(30, 100)):
        yield agent.chance.uniform(10, 30)
        agent.use_tool("convert", f"file {agent.births}.{agent.tasks}.{agent.now:.0f}", "ok")
        if number % 12 == 0:
            agent.think(TOKENS)
            agent.save()


def leave_and_return(agent: SimulatedAgent) -> Life:
    """A proper good-bye, and a new life later; some start slowly."""
    agent.finish_task()
    yield from say_goodbye(agent)
    yield agent.chance.uniform(5, 60) * MINUTE
    agent.start()
    agent.register()
    slow = agent.chance.random() < 0.3
    grace = agent.policy.silence.grace
    yield agent.chance.uniform(0.5, 0.95) * grace if slow else agent.chance.uniform(1, 20)
    agent.speak_up()


def say_goodbye(agent: SimulatedAgent) -> Life:
    """It does not go before its good-bye has left."""
    agent.leaving = True
    agent.say(s.AgentLeft(agent_id=agent.id, incarnation=agent.incarnation, reason="the day is over"))
    yield 5.0
    while agent.spool:
        yield 5.0
    agent.stop()


def restart(agent: SimulatedAgent) -> Life:
    """A deploy: the new life begins while the last messages of the old one are still on their way."""
    old, was_heard = agent.incarnation, agent.heard_life == agent.incarnation
    agent.stop()
    agent.start()
    agent.register()
    yield agent.chance.uniform(0.5, 10)
    agent.speak_up()
    how_long = agent.chance.uniform(0, 30)
    if was_heard:  # An agent that was cut off all its life has nothing on its way.
        agent.world.linger(agent, old, how_long)
    yield from settle_in(agent)


# --- what looks like a loop, and is none --------------------------------------------------------------------------

AT_MOST_DEGRADED: Final = {Kind.LOOPING: Severity.DEGRADED}
ASKED_ABOUT: Final = {
    Kind.ERRORS: Severity.FAILING,
    Kind.LOOPING: Severity.DEGRADED,
    # It waits for a quarter of an hour without declaring it.
    Kind.NO_TOOL_CALL: Severity.STUCK,
    Kind.NO_OUTPUT: Severity.STUCK,
    Kind.NO_TOKENS: Severity.STUCK,
    Kind.NO_CHECKPOINT: Severity.DEGRADED,
}


def in_rounds(one: Callable[[SimulatedAgent], Life]) -> Callable[[SimulatedAgent], Life]:
    """A chapter of such rounds."""

    def chapter(agent: SimulatedAgent) -> Life:
        yield from settle_in(agent)
        end = agent.now + agent.chance.uniform(15, 60) * MINUTE
        while agent.now < end and agent.doom is None:
            yield from one(agent)
        yield from settle_in(agent)

    return chapter


def wait_and_look(agent: SimulatedAgent) -> Life:
    """A job, a mailbox, a build: for hours the same answer. The engine may tell people, no more."""
    yield from settle_in(agent)
    how = agent.chance.choice((rounds.SLEEP_AND_CHECK, rounds.EMPTY_MAILBOX, rounds.CI))
    end = agent.now + agent.chance.uniform(30, 150) * MINUTE
    agent.suspicious = AT_MOST_DEGRADED
    while agent.now < end and agent.doom is None:
        yield from rounds.look(agent, *how)
    yield from settle_in(agent)
    yield MINUTE
    agent.suspicious, agent.suspicious_until = {}, agent.now


def retry_and_succeed(agent: SimulatedAgent) -> Life:
    """Each pause is twice as long as the one before, and in the end the call works. Until then the engine may escalate it."""
    yield from settle_in(agent)
    agent.suspicious = ASKED_ABOUT
    yield from rounds.retry(agent, agent.chance.randint(3, 8))
    yield from habits.call(agent, "fetch", "report", "here it is")
    yield from settle_in(agent)
    yield MINUTE
    agent.suspicious, agent.suspicious_until = {}, agent.now


def use_long_tools(agent: SimulatedAgent) -> Life:
    """Calls of minutes, one after the other, and a checkpoint after each."""
    yield from settle_in(agent)
    for _ in range(agent.chance.randint(3, 8)):
        yield from habits.turn(agent, "train", takes=agent.chance.uniform(3, 8) * MINUTE, thought=30.0)
        agent.save()


def send_what_a_document_lists(agent: SimulatedAgent) -> Life:
    """Beats and nothing else, for good."""
    agent.start()
    agent.incarnation = None
    agent.capped = False  # It never registers, so the monitor knows of no budget; nor for its successors.
    agent.plain = agent.chance.choice((plain.swarm, plain.fleet, plain.worker))
    agent.speaking = True
    agent.send_beat()
    agent.keep_beating()
    yield 365 * 86_400.0
