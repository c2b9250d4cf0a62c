"""An agent as a user would write it: it saves two checkpoints and then blocks its event loop for ever.

Whoever follows it writes down what it was given to go on from, and works. Run by `lifesigns run`; its argument is the
file that remembers its lives, a line of JSON for each.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import lifesigns

LIVES = Path(sys.argv[1])


def begin(life: lifesigns.Sender) -> int:
    """Write this life down. The how-manieth it is."""
    note = {
        "pid": os.getpid(),
        "incarnation": life.incarnation,
        "checkpoint": life.resume_from,
        "handoff": life.handoff,
    }
    with LIVES.open("a") as file:
        file.write(json.dumps(note) + "\n")
    return len(LIVES.read_text().splitlines())


async def main() -> None:
    async with lifesigns.Sender(interval=0.5) as life:
        if begin(life) == 1:
            life.checkpoint("cp-1", state={"by": life.agent_id, "done": 1})
            life.checkpoint("cp-2", parent="cp-1", state={"by": life.agent_id, "done": 2})
            time.sleep(3600)  # noqa: ASYNC251 -- this is the mistake that is found
        await life.stopping


asyncio.run(main())
