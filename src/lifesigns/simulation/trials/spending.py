"""Spending: agents over their budget or running away, and agents that are only expensive."""

from __future__ import annotations

from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.lives.habits import begin, call, tell, think, work
from lifesigns.simulation.lives.rounds import CI, look, talk_and_act, talk_with_a_person
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness

BUDGET: Final = {"spending": {"task_tokens_max": 200_000}}

# --- sick -----------------------------------------------------------------------------------------------


def over_its_budget(agent: SimulatedAgent) -> Life:
    """Its calls report their usage, until it is too much."""
    yield from begin(agent, BUDGET)
    agent.fall_ill(Illness.SPENDING)
    while True:
        yield from think(agent, 20.0, 20_000)
        yield from call(agent, "read")
        agent.save()


def over_its_budget_by_its_beats(agent: SimulatedAgent) -> Life:
    """Its beats carry the total."""
    yield from begin(agent, BUDGET)
    agent.fall_ill(Illness.SPENDING)
    agent.beat.token_count = 0
    while True:
        agent.beat.token_count += 10_000
        yield from call(agent, "read")
        agent.save()
        yield 30.0


def its_first_beat_says_all(agent: SimulatedAgent) -> Life:
    """It had used all of it before its first beat."""
    agent.start()
    agent.say(s.AgentRegistered(agent_id=agent.id, incarnation=agent.incarnation, policy=MONEY))
    yield 2.0
    agent.beat.token_count, agent.beat.cost_usd = 5000, 5.0
    agent.fall_ill(Illness.SPENDING)
    failure = agent.failure
    agent.speaking = True
    agent.keep_beating()
    assert failure is not None
    while True:
        yield MINUTE


MONEY: Final = {"spending": {"cost_max": 1.0}}


def runs_away(agent: SimulatedAgent) -> Life:
    """No cap; but ten times its usual consumption, for good."""
    yield from begin(agent)
    end = agent.now + 40 * MINUTE
    while agent.now < end:
        yield from think(agent, 20.0, 1500)
        yield from call(agent, "read")
        agent.save()
        yield 20.0
    agent.fall_ill(Illness.SPENDING)
    while True:
        yield from think(agent, 20.0, 30_000)
        yield from call(agent, "read")
        agent.save()
        yield 20.0


def runs_away_by_its_beats(agent: SimulatedAgent) -> Life:
    """The same, visible only in the total of its beats: no call explains it."""
    yield from begin(agent)
    agent.beat.token_count = 0
    while True:
        yield 30.0
        if agent.failure is None and agent.now > 40 * MINUTE:
            agent.fall_ill(Illness.SPENDING)
        agent.beat.token_count += 500 if agent.failure is None else 8000
        tell(agent, s.ProgressMade, note="going on")


def thinks_more_than_it_does(agent: SimulatedAgent) -> Life:
    """As many tool calls as before, with eight model calls before each instead of one."""
    yield from begin(agent)
    while True:
        if agent.failure is None and agent.now > 40 * MINUTE:
            agent.fall_ill(Illness.SPENDING)
        for _ in range(1 if agent.failure is None else 8):
            yield from think(agent, 3.0, 1500)
        yield from call(agent, "read")
        agent.save()
        yield 40.0 if agent.failure is None else 19.0


def runs_away_after_a_wait(agent: SimulatedAgent) -> Life:
    """It worked, it waited for a job; then ten times what its work used to take, for good."""
    yield from begin(agent, works_for=40 * MINUTE)
    end = agent.now + 40 * MINUTE
    while agent.now < end:
        yield from look(agent, *CI)
    agent.fall_ill(Illness.SPENDING)
    while True:
        yield from think(agent, 12.0, 8000)
        yield from call(agent, "read")
        agent.save()
        yield 20.0


# --- healthy ----------------------------------------------------------------------------------------------


def within_its_budget(agent: SimulatedAgent) -> Life:
    """Half of its task's budget, in two hours."""
    yield from begin(agent, BUDGET)
    while True:
        yield from think(agent, 20.0, 600)
        yield from call(agent, "read")
        agent.save()
        yield MINUTE


def a_new_task_a_new_budget(agent: SimulatedAgent) -> Life:
    """Much in all, but little for each of its tasks."""
    yield from begin(agent, BUDGET)
    while True:
        for _ in range(5):
            yield from think(agent, 20.0, 20_000)
            yield from call(agent, "read")
            agent.save()
        agent.finish_task()
        agent.take_task()


def expensive_from_the_start(agent: SimulatedAgent) -> Life:
    """It always uses a lot: that is its habit."""
    yield from begin(agent)
    while True:
        yield from think(agent, 20.0, 40_000)
        yield from call(agent, "read")
        agent.save()


def one_large_call(agent: SimulatedAgent) -> Life:
    """Now and then it reads the whole repository at once."""
    yield from begin(agent)
    while True:
        yield from work(agent, 30 * MINUTE)
        yield from think(agent, 40.0, 60_000)


def changes_its_pace(agent: SimulatedAgent) -> Life:
    """It checks a job now and then; when that is done, it works: ten times the tokens, and ten times the calls."""
    yield from begin(agent)
    end = agent.now + 40 * MINUTE
    while agent.now < end:
        yield from think(agent, 4.0, 1500)
        yield from call(agent, "read")
        agent.save()
        yield 54.0
    while True:
        yield from think(agent, 4.0, 1500)
        yield from call(agent, "edit")
        agent.save()


def a_larger_task(agent: SimulatedAgent) -> Life:
    """Questions, and then a task with a large repository in each prompt."""
    yield from begin(agent)
    for size in (1500, 30_000):
        end = agent.now + 40 * MINUTE
        while agent.now < end:
            yield from think(agent, 20.0, size)
            yield from call(agent, "read")
            agent.save()
            yield 20.0
        agent.finish_task()
        agent.take_task()
    yield HOUR


def from_talk_to_work(agent: SimulatedAgent) -> Life:
    """It talks with a person about what to do, then it does it."""
    yield from begin(agent)
    end = agent.now + 40 * MINUTE
    while agent.now < end:
        yield from talk_with_a_person(agent)
    while True:
        yield from think(agent, 6.0, 1000)
        yield from call(agent, "edit")
        agent.save()


def from_waiting_to_work(agent: SimulatedAgent) -> Life:
    """It looks each minute whether the build is done, then it thinks about every step: more calls, and more for each."""
    yield from begin(agent)
    end = agent.now + 58 * MINUTE
    while agent.now < end:
        yield from look(agent, *CI)
    while True:
        yield from talk_and_act(agent)


def a_new_life_begins_at_zero(agent: SimulatedAgent) -> Life:
    """Its totals are those of its life: the next one begins at zero."""
    yield from begin(agent, BUDGET)
    for _ in range(4):
        agent.beat.token_count = 0
        for _ in range(20):
            agent.beat.token_count += 1000
            yield from call(agent, "read")
            agent.save()
            yield 30.0
        agent.finish_task()
        tell(agent, s.AgentLeft, reason="done")
        yield 5.0
        agent.stop()
        yield 30.0
        yield from begin(agent, BUDGET)
    yield HOUR


TRIALS = (
    sick("spending", "over its budget, call by call", over_its_budget, hours=0.5),
    sick("spending", "over its budget, by the total in its beats", over_its_budget_by_its_beats, hours=1),
    sick("spending", "over its budget with its first beat", its_first_beat_says_all, hours=0.5),
    sick("spending", "ten times its own habit", runs_away, hours=1.5),
    sick("spending", "sixteen times its own habit, by its beats", runs_away_by_its_beats, hours=1.5),
    sick("spending", "thinks far more than it does", thinks_more_than_it_does, hours=1.5),
    sick("spending", "runs away after it waited", runs_away_after_a_wait, hours=2),
    healthy("spending", "from waiting to work", from_waiting_to_work, hours=2),
    healthy("spending", "a quicker pace", changes_its_pace, hours=1.5),
    healthy("spending", "a larger task", a_larger_task, hours=1.5),
    healthy("spending", "from talk to work", from_talk_to_work, hours=1.5),
    healthy("spending", "within its budget", within_its_budget),
    healthy("spending", "a new budget with each task", a_new_task_a_new_budget),
    healthy("spending", "expensive from the start", expensive_from_the_start),
    healthy("spending", "one large call", one_large_call),
    healthy("spending", "a new life begins at zero", a_new_life_begins_at_zero, hours=1),
)
