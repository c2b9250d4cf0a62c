"""Freeze: whose loop stands still, and whose is only late, or blocked as it said."""

from __future__ import annotations

from lifesigns.core.policy import MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives.habits import FOREVER, begin, on_and_on, think, work
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Ill


def _freeze(being: Being) -> Life:
    being.fall_ill(Ill.FREEZE)
    being.frozen_at = being.now
    being.keep_beating()
    yield FOREVER


def freezes_at_work(being: Being) -> Life:
    """In the middle of good work."""
    yield from begin(being)
    yield from work(being, 15 * MINUTE)
    yield from _freeze(being)


def freezes_at_once(being: Being) -> Life:
    """With its first beat."""
    yield from begin(being)
    yield from _freeze(being)


def freezes_after_a_call(being: Being) -> Life:
    """The call that excused it is over."""
    yield from begin(being)
    call = being.start_tool("parse", "huge.json")
    yield 5 * MINUTE
    being.use_tool("parse", "huge.json", "ok", call_id=call)
    yield from _freeze(being)


def _lags(being: Being, lag: float) -> None:
    """Its beats say that its loop is this late."""
    being.beat.loop_lag_ms = 1000.0 * lag


def lags_a_little(being: Being) -> Life:
    """All the time, and always just below the line."""
    yield from begin(being)
    while True:
        _lags(being, 0.9 * being.policy.freeze.after)
        yield from work(being, 5 * MINUTE)


def blocks_inside_a_call(being: Being) -> Life:
    """A call that holds its loop, as it had said."""
    yield from begin(being)
    yield from work(being, 5 * MINUTE)
    call = being.start_tool("compress", "archive")
    being.frozen_at = being.now + 1.0
    yield 1.0
    being.keep_beating()
    yield 10 * MINUTE
    being.frozen_at = None
    being.send_beat()
    being.keep_beating()
    yield 1.0
    being.use_tool("compress", "archive", "ok", call_id=call)
    yield from on_and_on(being)


def blocks_inside_a_model_call(being: Being) -> Life:
    """A model in its own process, which holds the loop while it thinks."""
    yield from begin(being)
    for _ in range(4):
        being.save()
        calls = think(being, 6 * MINUTE)
        wait = next(calls)
        yield 1.0
        being.frozen_at = being.now
        being.keep_beating()
        yield wait
        being.frozen_at = None
        being.send_beat()
        being.keep_beating()
        yield 1.0
        for _ in calls:
            pass
        yield from work(being, 2 * MINUTE)


def pauses_now_and_then(being: Being) -> Life:
    """A garbage collection: one beat in twenty shows half the lag that counts."""
    yield from begin(being)
    while True:
        _lags(being, 0.5 * being.policy.freeze.after)
        yield being.interval
        _lags(being, 0.002)
        yield 19 * being.interval


TRIALS = (
    sick("freeze", "freezes at work", freezes_at_work, hours=1.5, ended=True),
    sick("freeze", "frozen from its first beat", freezes_at_once, hours=1),
    sick("freeze", "freezes when a call is over", freezes_after_a_call, hours=1),
    healthy("freeze", "lags, below the line", lags_a_little, hours=1),
    healthy("freeze", "blocks its loop inside a call", blocks_inside_a_call),
    healthy("freeze", "blocks its loop inside model calls", blocks_inside_a_model_call, hours=0.6),
    healthy("freeze", "pauses now and then", pauses_now_and_then, hours=1),
)
