"""Whether the hub gets to the end of what is sent to it."""

import time

import pytest

from lifesigns.core.signals import BeatReceived
from lifesigns.hub.busyness import BUSY_SHARE, LOOK_EVERY, Busyness, wanted_seconds
from tests.hub.ground import Ground


def test_it_says_which_share_of_the_time_there_was_something_to_do() -> None:
    used = 5.0
    busyness = Busyness(100.0, lambda: used)
    assert busyness.look(100.0 + LOOK_EVERY / 2) is None
    used += 0.25
    assert busyness.look(101.0) == (100.0, 0.25)
    assert busyness.look(102.0) == (101.0, 0.0)


def test_who_waits_has_nothing_to_do_and_who_computes_has() -> None:
    used = wanted_seconds()
    began, used_then = time.monotonic(), used()
    while time.monotonic() < began + 0.3:
        pass
    assert used() - used_then > 0.2
    began, used_then = time.monotonic(), used()
    time.sleep(0.3)
    assert used() - used_then < 0.9 * (time.monotonic() - began)


@pytest.mark.parametrize("busy", [False, True])
async def test_a_hub_that_is_never_idle_convicts_nobody(busy: bool) -> None:
    ground = Ground()
    share = BUSY_SHARE + 0.05 if busy else 0.5
    ground.busyness = lambda now: Busyness(now, lambda: share * ground.now)
    ground.hub = ground.another_hub()
    await ground.start()
    try:
        for agent_id in ("a", "b"):
            ground.hub.hear((BeatReceived(agent_id, seq=1),))
        ground.hub._drain()
        for n in range(400):
            ground.now += 0.5
            if not n % 8:
                ground.hub.hear((BeatReceived("a", seq=n + 2),))
                ground.hub._drain()
            ground.hub.run_due()
        lost = {agent.id for agent in ground.hub.engine.agents() if agent.health == "disconnected"}
        assert lost == (set() if busy else {"b"})
        assert ground.hub.engine.beliefs.awareness.blind is busy
    finally:
        await ground.hub.stop()
