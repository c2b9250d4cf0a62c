"""After a takeover, a large fleet does not fall due at one moment: that would stop the hub's loop."""

from __future__ import annotations

from collections import Counter

from lifesigns.core.effects import Flip, SendCanary
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.signals import BeatReceived, CanaryReturned

AGENTS = 1000
INTERVAL = 5.0


def restored(now: float = 1030.0) -> Engine:
    """A fleet that beat every five seconds until 1,020 s, restored later."""
    engine = Engine()
    for beat in range(5):
        for number in range(AGENTS):
            engine.hear(
                BeatReceived(agent_id=f"a-{number}"), 1000.0 + INTERVAL * beat + INTERVAL * number / AGENTS
            )
    return Engine.restore(engine.snapshot(), now)


def test_the_first_look_has_nobody_to_look_at() -> None:
    """Their stored deadlines have all passed, but silence starts from zero: restoring says so, not the first look."""
    now = 1030.0
    assert min(agent.armed_at for agent in restored(now).agents()) > now


def test_they_come_up_in_small_numbers() -> None:
    by_second = Counter(int(agent.armed_at) for agent in restored().agents())
    assert max(by_second.values()) <= AGENTS / 4


def test_who_stays_silent_is_found_at_one_moment() -> None:
    """A look that comes earlier changes no verdict: the first and the last of the fleet are judged alike."""
    engine, silent, found = (
        restored(),
        {f"a-{n}" for n in (0, 1, AGENTS // 2, AGENTS - 1)},
        dict[str, float](),
    )
    for step in range(100):
        now = 1030.0 + step
        effects = [*engine.advance(now)]
        for canary in [effect for effect in effects if isinstance(effect, SendCanary)]:
            effects += engine.hear(CanaryReturned(seq=canary.seq), now)
        for number in range(AGENTS):
            if (name := f"a-{number}") not in silent:
                effects += engine.hear(BeatReceived(agent_id=name), now)
        found |= {
            fact.agent_id: fact.at
            for fact in effects
            if isinstance(fact, Flip) and fact.now is Health.DISCONNECTED
        }
    assert found.keys() == silent
    assert len(set(found.values())) == 1
