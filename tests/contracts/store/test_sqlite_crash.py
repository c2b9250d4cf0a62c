"""kill -9 of a real hub, fifty times: a page whose commit returned is there, and no page is there in part."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from lifesigns.adapters.store.sqlite import SqliteStore
from tests.contracts.store.crashing import BELIEFS, EVENTS
from tests.contracts.store.ground import all_ids

ROOT = Path(__file__).parents[3]
DEATHS = 50


def one_life(nursery: "subprocess.Popen[bytes]", chance: random.Random) -> int:
    """The number of the last page whose commit returned; 0 if there was none."""
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    nursery.stdin.write(b"live\n")
    nursery.stdin.flush()
    pid, last = int(nursery.stdout.readline()), 0
    for _ in range(chance.randrange(40)):
        last = int(nursery.stdout.readline())
    time.sleep(chance.random() * 0.005)  # The moment is the point: somewhere within a page.
    os.kill(pid, signal.SIGKILL)
    for line in nursery.stdout:
        if line == b"dead\n":
            break
        last = int(line)
    return last


async def test_what_was_committed_outlives_fifty_sudden_deaths(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    chance = random.Random(50)
    command = [sys.executable, "-m", "tests.contracts.store.crashing", str(path)]
    kept = 0
    nursery = subprocess.Popen(  # noqa: ASYNC220 -- nothing else runs here
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with nursery:
        for _ in range(DEATHS):
            last = one_life(nursery, chance) or kept
            store = SqliteStore(path)
            found = await store.open()
            assert found.commit in (last, last + 1), (
                "the last one may have been kept without a chance to say so"
            )
            kept = found.commit
            assert {belief.value for belief in found.beliefs} == (
                {b"%d" % kept + b" " * 700} if kept else set()
            )
            assert len(found.beliefs) == (BELIEFS if kept else 0)
            assert [order.order_id for order in found.orders] == ([f"o-{kept}"] if kept else [])
            assert found.event == kept * EVENTS
            ids = await store.events(after=found.event - 500)
            assert [event.id for event in ids] == list(range(max(1, found.event - 499), found.event + 1))
            await store.close()
    store = SqliteStore(path)
    assert await all_ids(store) == list(range(1, kept * EVENTS + 1))
    await store.close()
    assert kept > DEATHS
