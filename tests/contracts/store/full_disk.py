"""Run by itself in a place that has little room: fills it, makes room, and tells as JSON what became of the pages."""

import asyncio
import json
import resource
import sys
from pathlib import Path

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.errors import AdapterError
from lifesigns.ports import Commit
from tests.contracts.store.ground import all_ids, believed, event


def page(number: int) -> Commit:
    """About 40 kB, most of it new."""
    beliefs = [believed(f"{number}-{n}", b"x" * 1000) for n in range(30)]
    return Commit(number, beliefs=[*beliefs, believed("last", b"%d" % number)], events=[event(number)])


def make_room(ballast: list[Path]) -> None:
    for file in ballast:
        file.unlink()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


async def main(folder: Path) -> None:
    ballast = [folder / f"ballast-{n}" for n in range(5)]
    for file in ballast:
        file.write_bytes(b"x" * 400_000)
    store = SqliteStore(folder / "hub.db")
    await store.open()
    number = 1
    refusals: list[str] = []
    while len(refusals) < 2:
        try:
            await store.commit(page(number))
            number += 1
        except AdapterError as error:
            if not error.transient:
                raise
            refusals.append("full" if "full" in str(error) else "transient")
    before = number - 1
    kept = await all_ids(store)
    make_room(ballast)
    await store.commit(page(number))
    await store.close()
    found = await SqliteStore(folder / "hub.db").open()
    values = {belief.key: belief.value for belief in found.beliefs}
    whole = len(values) == 30 * found.commit + 1 and values["last"] == b"%d" % found.commit
    whole = whole and kept == list(range(1, before + 1)) and found.event == found.commit
    sys.stdout.write(
        json.dumps({"before": before, "pages": found.commit, "refusals": refusals, "whole": whole})
    )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
