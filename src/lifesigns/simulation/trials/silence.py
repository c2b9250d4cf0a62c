"""Silence: who is gone, and who only seems to be."""

from __future__ import annotations

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives.habits import FOREVER, begin, on_and_on, tell, work
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Ill

BUSY_FOR = 8 * MINUTE

# --- sick -----------------------------------------------------------------------------------------------


def killed(being: Being) -> Life:
    """Its process is gone, and nobody saw it go."""
    yield from begin(being)
    yield from work(being, 20 * MINUTE)
    being.fall_ill(Ill.CRASH)
    being.stop()
    yield FOREVER


def killed_and_the_link_closed(being: Being) -> Life:
    """Its connection is closed with it: a reason to ask at once."""
    yield from begin(being)
    yield from work(being, 20 * MINUTE)
    being.fall_ill(Ill.CRASH)
    life = being.incarnation
    being.stop()
    being.say(s.ConnectionClosed(agent_id=being.id, incarnation=life))
    yield FOREVER


def killed_in_a_call(being: Being) -> Life:
    """In the middle of a call that it had announced."""
    yield from begin(being)
    yield from work(being, 5 * MINUTE)
    being.start_tool("build", "all", bound=HOUR)
    yield 10.0
    being.fall_ill(Ill.CRASH)
    being.stop()
    yield FOREVER


def killed_and_its_last_beats_straggle(being: Being) -> Life:
    """What it had sent before still comes in for half a minute."""
    yield from begin(being)
    yield from work(being, 20 * MINUTE)
    life = being.incarnation
    being.fall_ill(Ill.CRASH)
    being.stop()
    being.world.linger(being, life, 30.0)
    yield FOREVER


def never_heard(being: Being) -> Life:
    """It was announced, and never speaks."""
    being.born()
    being.register()
    being.fall_ill(Ill.NEVER_STARTED)
    yield FOREVER


def says_busy_and_dies(being: Being) -> Life:
    """It said until when it would be busy, and did not live to see it."""
    yield from begin(being)
    yield from work(being, 20 * MINUTE)
    being.do(Doing.BUSY, until=being.now + BUSY_FOR)
    yield 1.0
    failure = being.fall_ill(Ill.CRASH)
    failure.due_at += BUSY_FOR
    being.stop()
    yield FOREVER


# --- healthy ----------------------------------------------------------------------------------------------


def busy_and_silent(being: Being) -> Life:
    """A build takes all it has, its heartbeat too; it said until when."""
    yield from begin(being)
    while True:
        yield from work(being, 20 * MINUTE)
        being.do(Doing.BUSY, until=being.now + BUSY_FOR)
        yield 1.0
        being.speaking = False
        being.keep_beating()
        yield BUSY_FOR - 30.0
        being.speaking = True
        being.keep_beating()
        being.do(Doing.WORKING)


def idles(being: Being) -> Life:
    """It has nothing to do, and beats."""
    yield from begin(being)
    being.finish_task()
    being.do(Doing.IDLE)
    yield FOREVER


def starts_slowly(being: Being) -> Life:
    """It takes nearly all the time it has for its first word."""
    being.born()
    being.register()
    yield 0.9 * being.policy.silence.grace
    being.speak_up()
    yield FOREVER


def beats_unevenly(being: Being) -> Life:
    """Its beats come early and late, by a third of an interval."""
    being.born()
    being.register()
    yield 2.0
    being.speaking = True
    slot = 0
    while True:
        being.send_beat(slot)
        slot += 1
        yield being.interval * being.chance.uniform(0.67, 1.33)


def loses_one_beat_in_ten(being: Being) -> Life:
    """Its link is bad; it answers when it is asked."""
    being.born()
    being.register()
    yield 2.0
    being.speaking = True
    slot = 0
    while True:
        if slot == 0 or being.chance.random() > 0.1:
            being.send_beat(slot)
        slot += 1
        yield being.interval


def its_clock_is_wrong(being: Being) -> Life:
    """By hours, and it jumps."""
    being.skew = -7 * HOUR
    yield from begin(being)
    yield from work(being, 10 * MINUTE)
    being.skew = 3 * HOUR
    being.keep_beating()
    yield from on_and_on(being)


def leaves_and_returns(being: Being) -> Life:
    """It says good-bye, and comes back later."""
    yield from begin(being)
    being.finish_task()
    tell(being, s.AgentLeft, reason="done for today")
    yield 5.0
    being.stop()
    yield 20 * MINUTE
    yield from begin(being)
    yield from on_and_on(being)


TRIALS = (
    sick("silence", "killed unseen", killed, hours=1),
    sick("silence", "killed, and its link closed", killed_and_the_link_closed, hours=1),
    sick("silence", "killed inside a call", killed_in_a_call, hours=1),
    sick("silence", "killed, and its last beats straggle in", killed_and_its_last_beats_straggle, hours=1),
    sick("silence", "announced and never heard", never_heard, hours=1),
    sick("silence", "says until when it is busy, and dies", says_busy_and_dies, hours=1),
    healthy("silence", "idles", idles),
    healthy("silence", "says until when it is busy, and is silent", busy_and_silent),
    healthy("silence", "starts slowly", starts_slowly, hours=1),
    healthy("silence", "beats unevenly", beats_unevenly),
    healthy("silence", "loses one beat in ten, and answers", loses_one_beat_in_ten),
    healthy("silence", "has a wrong clock", its_clock_is_wrong, hours=1),
    healthy("silence", "leaves and comes back", leaves_and_returns, hours=1),
)
