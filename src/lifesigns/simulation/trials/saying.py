"""Own word: who says that something is wrong with it, and who says that it is busy, idle or something of its own."""

from __future__ import annotations

from collections.abc import Callable

from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives.habits import FOREVER, begin, tell, work
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Ill


def _says(*words: str, ill: Ill | None = None) -> Callable[[Being], Life]:
    """Good work, and beats that say one of these words after the other; the last one for good."""

    def life(being: Being) -> Life:
        yield from begin(being)
        being.beat.status = "healthy"
        yield from work(being, 5 * MINUTE)
        if ill is not None:
            being.fall_ill(ill)
        for word in words:
            being.beat.status = word
            yield from work(being, 5 * MINUTE)
        while True:
            yield from work(being, 5 * MINUTE)

    return life


def says_so_when_asked(being: Being) -> Life:
    """Its beats say nothing; an answer does."""
    yield from begin(being)
    yield from work(being, 5 * MINUTE)
    being.fall_ill(Ill.SELF_REPORTED)
    tell(being, s.PongReceived, seq=1, status="degraded")
    yield FOREVER


TRIALS = (
    sick("own word", "says that it is degraded", _says("degraded", ill=Ill.SELF_REPORTED), hours=0.5),
    sick("own word", "busy, then unhealthy", _says("busy", "unhealthy", ill=Ill.SELF_REPORTED), hours=0.5),
    sick("own word", "says so when it is asked", says_so_when_asked, hours=0.3),
    healthy("own word", "busy and healthy by turns", _says("busy", "healthy", "busy"), hours=1),
    healthy("own word", "says that it idles", _says("idle"), hours=1),
    healthy("own word", "a word of its own", _says("indexing"), hours=1),
)
