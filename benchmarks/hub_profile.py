"""Where the time of a hub's loop goes: the processor's timer looks a thousand times a second which room is at work.

A timer's signal is handled when the interpreter next begins a function. So what the loop and the kernel did before is
seen at the very beginning of the first function they called, and is counted there as theirs.
"""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from types import FrameType

EVERY = 0.001

ROOMS = {
    "lifesigns/wire": "decode",
    "msgspec": "decode",
    "lifesigns/core": "engine",
    "lifesigns/hub/access": "access",
    "lifesigns/hub/token": "access",
    "lifesigns/hub/principals": "access",
    "lifesigns/web/access": "access",
    "lifesigns/web/host_policy": "access",
    "lifesigns/hub/journal": "journal",
    "lifesigns/hub/committer": "commits",
    "lifesigns/hub/memory": "commits",
    "lifesigns/hub/samples": "samples",
    "lifesigns/adapters/store": "commits",
    "lifesigns/hub": "hub: inbox, turns",
    "lifesigns/web/connection": "http server",
    "lifesigns/web/exchange": "http server",
    "lifesigns/web": "app: route, body, answer",
    "lifesigns/views": "views",
    "uvicorn": "http server",
    "lifesigns/adapters/bus": "bus adapter",
    "nats": "bus client",
    "asyncio": "asyncio",
    "benchmarks": "(the bench itself)",
}
LOOP = "loop, sockets, kernel"

_samples: Counter[str] = Counter()


def begin() -> None:
    """Begin to sample."""
    _samples.clear()
    signal.signal(signal.SIGPROF, _look)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)


def end() -> dict[str, float]:
    """Stop. Shares of the loop's time, the largest first."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    total = sum(_samples.values()) or 1
    return {name: count / total for name, count in _samples.most_common()}


def _look(number: int, frame: FrameType | None) -> None:
    if frame is not None and frame.f_back is not None and frame.f_lasti <= 2 and _is_the_loop(frame.f_back):
        _samples[LOOP] += 1
        return
    while frame is not None:
        room = _room(frame.f_code.co_filename)
        if room is not None:
            _samples[room] += 1
            return
        frame = frame.f_back
    _samples[LOOP] += 1


def _is_the_loop(frame: FrameType) -> bool:
    """Whether this frame runs the loop itself, so that the loop called what it called."""
    return frame.f_code.co_name in ("run", "_run") and "asyncio" in Path(frame.f_code.co_filename).parts


_known: dict[str, str | None] = {}


def _room(filename: str) -> str | None:
    if filename not in _known:
        _known[filename] = next((room for part, room in ROOMS.items() if f"/{part}" in filename), None)
    return _known[filename]
