"""Silence: agents that are gone, and agents that only seem to be."""

from __future__ import annotations

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.lives.habits import FOREVER, begin, on_and_on, tell, work
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness

BUSY_FOR = 8 * MINUTE
PATH_LOST_FOR = 10 * MINUTE

# --- sick -----------------------------------------------------------------------------------------------


def killed(agent: SimulatedAgent) -> Life:
    """Its process is gone, unseen."""
    yield from begin(agent, works_for=20 * MINUTE)
    agent.fall_ill(Illness.CRASH)
    agent.stop()
    yield FOREVER


def killed_and_the_link_closed(agent: SimulatedAgent) -> Life:
    """Its connection closes with it: a reason to ping at once."""
    yield from begin(agent, works_for=20 * MINUTE)
    agent.fall_ill(Illness.CRASH)
    life = agent.incarnation
    agent.stop()
    agent.say(s.ConnectionClosed(agent_id=agent.id, incarnation=life))
    yield FOREVER


def killed_in_a_call(agent: SimulatedAgent) -> Life:
    """Killed in the middle of an announced call."""
    yield from begin(agent, works_for=5 * MINUTE)
    agent.start_tool("build", "all", bound=HOUR)
    yield 10.0
    agent.fall_ill(Illness.CRASH)
    agent.stop()
    yield FOREVER


def killed_and_its_last_beats_straggle(agent: SimulatedAgent) -> Life:
    """Its earlier messages still arrive for half a minute."""
    yield from begin(agent, works_for=20 * MINUTE)
    life = agent.incarnation
    agent.fall_ill(Illness.CRASH)
    agent.stop()
    agent.world.linger(agent, life, 30.0)
    yield FOREVER


def never_heard(agent: SimulatedAgent) -> Life:
    """It was announced, and never beats."""
    agent.start()
    agent.register()
    agent.fall_ill(Illness.NEVER_STARTED)
    yield FOREVER


def says_busy_and_dies(agent: SimulatedAgent) -> Life:
    """It said until when it would be busy, and died before that."""
    yield from begin(agent, works_for=20 * MINUTE)
    agent.do(Doing.BUSY, until=agent.now + BUSY_FOR)
    yield 1.0
    failure = agent.fall_ill(Illness.CRASH)
    failure.due_at += BUSY_FOR
    agent.stop()
    yield FOREVER


def dies_behind_a_lost_path(agent: SimulatedAgent) -> Life:
    """The server between it and the hub dies, and so does it: when the server is back, it is still silent."""
    yield from begin(agent, works_for=20 * MINUTE)
    agent.world.tell(s.PathLost(path=""))
    agent.world.tell(s.PathRestored(path=""), after=PATH_LOST_FOR)
    yield MINUTE
    failure = agent.fall_ill(Illness.CRASH)
    failure.due_at += PATH_LOST_FOR
    agent.stop()
    yield FOREVER


# --- healthy ----------------------------------------------------------------------------------------------


def busy_and_silent(agent: SimulatedAgent) -> Life:
    """A build takes all CPU, its heartbeat's too; it said until when."""
    yield from begin(agent)
    while True:
        yield from work(agent, 20 * MINUTE)
        agent.do(Doing.BUSY, until=agent.now + BUSY_FOR)
        yield 1.0
        agent.speaking = False
        agent.keep_beating()
        yield BUSY_FOR - 30.0
        agent.speaking = True
        agent.keep_beating()
        agent.do(Doing.WORKING)


def idles(agent: SimulatedAgent) -> Life:
    """It has nothing to do, and beats."""
    yield from begin(agent)
    agent.finish_task()
    agent.do(Doing.IDLE)
    yield FOREVER


def starts_slowly(agent: SimulatedAgent) -> Life:
    """It takes nearly all the grace before its first beat."""
    agent.start()
    agent.register()
    yield 0.9 * agent.policy.silence.grace
    agent.speak_up()
    yield FOREVER


def beats_unevenly(agent: SimulatedAgent) -> Life:
    """Its beats come early and late, by a third of an interval."""
    agent.start()
    agent.register()
    yield 2.0
    agent.speaking = True
    slot = 0
    while True:
        agent.send_beat(slot)
        slot += 1
        yield agent.interval * agent.chance.uniform(0.67, 1.33)


def loses_one_beat_in_ten(agent: SimulatedAgent) -> Life:
    """Its link is bad; it answers pings."""
    agent.start()
    agent.register()
    yield 2.0
    agent.speaking = True
    slot = 0
    while True:
        if slot == 0 or agent.chance.random() > 0.1:
            agent.send_beat(slot)
        slot += 1
        yield agent.interval


def its_clock_is_wrong(agent: SimulatedAgent) -> Life:
    """Its clock is wrong by hours, and jumps."""
    agent.skew = -7 * HOUR
    yield from begin(agent, works_for=10 * MINUTE)
    agent.skew = 3 * HOUR
    agent.keep_beating()
    yield from on_and_on(agent)


def lives_behind_a_lost_path(agent: SimulatedAgent) -> Life:
    """The server between it and the hub dies now and then; it goes on all the while."""
    yield from begin(agent)
    while True:
        yield from work(agent, 20 * MINUTE)
        agent.world.tell(s.PathLost(path=""))
        yield 1.0
        agent.speaking = False
        agent.keep_beating()
        yield PATH_LOST_FOR
        agent.speaking = True
        agent.keep_beating()
        agent.world.tell(s.PathRestored(path=""), after=1.0)


def leaves_and_returns(agent: SimulatedAgent) -> Life:
    """It says good-bye, and comes back later."""
    yield from begin(agent)
    agent.finish_task()
    tell(agent, s.AgentLeft, reason="done for today")
    yield 5.0
    agent.stop()
    yield 20 * MINUTE
    yield from begin(agent)
    yield from on_and_on(agent)


TRIALS = (
    sick("silence", "killed unseen", killed, hours=1),
    sick("silence", "killed, and its link closed", killed_and_the_link_closed, hours=1),
    sick("silence", "killed inside a call", killed_in_a_call, hours=1),
    sick("silence", "killed, and its last beats straggle in", killed_and_its_last_beats_straggle, hours=1),
    sick("silence", "announced and never heard", never_heard, hours=1),
    sick("silence", "says until when it is busy, and dies", says_busy_and_dies, hours=1),
    sick("silence", "dies behind a lost path", dies_behind_a_lost_path, hours=1),
    healthy("silence", "idles", idles),
    healthy("silence", "says until when it is busy, and is silent", busy_and_silent),
    healthy("silence", "starts slowly", starts_slowly, hours=1),
    healthy("silence", "beats unevenly", beats_unevenly),
    healthy("silence", "loses one beat in ten, and answers", loses_one_beat_in_ten),
    healthy("silence", "has a wrong clock", its_clock_is_wrong, hours=1),
    healthy("silence", "lives behind a lost path", lives_behind_a_lost_path, hours=2),
    healthy("silence", "leaves and comes back", leaves_and_returns, hours=1),
)
