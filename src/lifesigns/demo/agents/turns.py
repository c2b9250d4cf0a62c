"""A turn of ordinary work, which every agent of the demo does when nothing is wrong with it."""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from typing import Final

import lifesigns

TURN: Final = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
"""Seconds."""


def sender() -> lifesigns.Sender:
    """A beat a second, and patience on a busy machine. `lifesigns run` passes everything else."""
    return lifesigns.Sender(profile="tolerant", interval=1.0)


def done_before(life: lifesigns.Sender) -> int:
    """How many turns the earlier lives have saved."""
    return int(life.resume_from.removeprefix("turn-")) if life.resume_from else 0


async def turn(life: lifesigns.Sender, number: int) -> None:
    """Think, use a tool, make progress, save."""
    with life.model() as call:
        await asyncio.sleep(TURN / 2)
        call.tokens(800 + number, 120, cost=0.002)
    with life.tool("edit", {"file": f"part_{number}.py"}) as call:
        await asyncio.sleep(TURN / 2)
        call.result(f"{number + 3} lines changed")
    life.progress(f"{number} files")
    parent = f"turn-{number - 1}" if number > 1 else None
    life.checkpoint(f"turn-{number}", parent=parent, state={"files": number})


async def work_on(life: lifesigns.Sender, after: int) -> None:
    """Turn after turn, until somebody ends it."""
    for number in count(after + 1):
        await turn(life, number)
