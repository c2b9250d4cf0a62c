"""What a call of an agent costs it, in calls of functions: a count does not change with the load of the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from lifesigns import Sender
from tests.agent.sender.ear import Ear


def calls_of(act: Callable[[], object]) -> int:
    """How many functions of Python and C it calls."""
    counted = -2  # `act` itself, and the end of counting.

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize(("what", "most"), [("status", 6), ("progress", 15), ("tool", 105)])
def test_a_call_of_an_agent_takes_few_calls(ear: Ear, what: str, most: int) -> None:
    """Progress took 17 when it looked for a task and a supervisor that were not there, and a tool call 107."""

    def tool() -> None:
        with life.tool("grep", {"pattern": "x"}) as call:
            call.result("nothing found")

    with Sender("a", ear.url) as life:
        acts = {
            "status": lambda: life.status("busy"),
            "progress": lambda: life.progress("12/40 files"),
            "tool": tool,
        }
        assert min(calls_of(acts[what]) for _ in range(20)) <= most
