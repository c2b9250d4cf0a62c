"""Run by itself: for every line it reads it forks a hub that writes pages for ever, to be killed in the middle of it.

A fork, because a new interpreter for each of fifty deaths would take most of the time.
"""

import asyncio
import os
import sys
from pathlib import Path

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.ports import Commit
from tests.contracts.store.ground import believed, event, order

EVENTS = 5
BELIEFS = 40


def page(number: int) -> Commit:
    """Every part of it tells its number."""
    told = b"%d" % number
    return Commit(
        number,
        beliefs=[believed(f"{n}", told + b" " * 700) for n in range(BELIEFS)],
        events=[event(n) for n in range(number * EVENTS - EVENTS + 1, number * EVENTS + 1)],
        orders=[order(f"o-{number}", at=float(number))],
        settled=[f"o-{number - 1}"],
    )


async def write(path: Path) -> None:
    store = SqliteStore(path)
    number = (await store.open()).commit
    while True:
        number += 1
        await store.commit(page(number))
        os.write(1, b"%d\n" % number)


def main(path: Path) -> None:
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            os.write(1, b"%d\n" % os.getpid())
            asyncio.run(write(path))
        os.waitpid(child, 0)
        os.write(1, b"dead\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
