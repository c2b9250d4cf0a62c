"""What the programs of all frameworks share: the tools of their agents, and what the test told them by the environment.

A program is run as `PROGRAM.py SCRIPT` in the environment of its framework; its model plays that script.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Coroutine
from typing import Any

SCRIPT = sys.argv[1]
PROMPT = f"play {SCRIPT}"
AGENT = os.environ.get("AGENT", SCRIPT)
MODEL_URL = os.environ.get("MODEL_URL", "")
STAYS = os.environ.get("WAY", "").endswith("stays")
"""Whether the program's loop goes on after the run, as that of a service does."""
WAY = os.environ.get("WAY", "").removesuffix("stays").strip()
"""How the agent is run, if not in the simplest way: "stream", "async", ..."""
OPTIONS = json.loads(os.environ.get("OPTIONS", "{}"))
"""For `watch`."""
HANGS_FOR = 200.0


async def _and_stay(work: Coroutine[Any, Any, Any]) -> None:
    await work
    await asyncio.sleep(HANGS_FOR)


if STAYS:
    _run = asyncio.run
    asyncio.run = lambda work, **_: _run(_and_stay(work))  # type: ignore[assignment]

if os.environ.get("GONE"):
    # As in a version of the framework that has changed: its agent is made of what was imported before.
    *_needed, _gone = os.environ["GONE"].split()
    for _module in _needed:
        importlib.import_module(_module)
    _module, _, _name = _gone.partition(":")
    delattr(importlib.import_module(_module), _name)


def look(path: str) -> str:
    """Look at a file."""
    return f"the lines of {path}"


def broken(path: str) -> str:
    """Fail in the same way each time."""
    raise FileNotFoundError(f"there is no {path}")


def hang(path: str) -> str:
    """Hang until killed; it ends by itself in case nobody does."""
    time.sleep(HANGS_FOR)
    return "too late"


def slow(path: str) -> str:
    """Take a moment."""
    time.sleep(0.25)
    return f"looked at {path}"
