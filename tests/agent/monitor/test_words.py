"""What agents say of their work: the same engine finds the same trouble in-process."""

from __future__ import annotations

import pytest

from lifesigns.agent.monitor import Monitor
from tests.agent.monitor.heard import QUICK, Heard, until


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


async def test_the_same_call_with_the_same_result_over_and_over_is_a_loop() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        watched = monitor.watch(Named("coder"))
        for _ in range(8):
            with watched.tool("grep", {"pattern": "x"}) as call:
                call.result("nothing found")
        event = await heard.comes("agent-stuck", "coder")
        assert "grep" in event.reason
        assert event.type is None
        assert event.code == "looping"
        assert event.idle_time is not None
        healthy = heard.find("agent-healthy", "coder")
        assert healthy is None or (healthy.code, healthy.idle_time) == ("recovered", None)


async def test_the_same_call_with_new_results_is_work() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        watched = monitor.watch(Named("coder"))
        for n in range(8):
            with watched.tool("grep", {"pattern": "x"}) as call:
                call.result(f"found {'a' * n}")
        watched.error("the last word")
        await heard.comes("agent-healthy", "coder")
        assert heard.of("coder") == ["agent-healthy"]


async def test_tools_that_fail_in_a_row_are_a_failing_agent() -> None:
    """An exception inside `tool` is a failed call, and goes on its way."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        watched = monitor.watch(Named("coder"))
        for n in range(5):
            with pytest.raises(OSError, match="refused"), watched.tool("fetch", {"n": n}):
                raise OSError(f"refused {n}")
        assert "fetch" in (await heard.comes("agent-failing", "coder")).reason


async def test_an_unrecoverable_error_is_a_failing_agent() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        monitor.watch(Named("coder")).error("out of credit", recoverable=False)
        assert "out of credit" in (await heard.comes("agent-failing", "coder")).reason


async def test_a_spending_cap_is_watched() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        watched = monitor.watch(Named("coder"), policy={"spending": {"tokens_max": 1000}})
        watched.tokens(tokens_out=400)
        with watched.model() as call:
            call.tokens(500, 200)
        assert (await heard.comes("agent-failing", "coder")).metrics.status == "failing"


async def test_a_stall_is_found_and_progress_ends_it() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        stall = {"checkpoint_degraded_after": 0.5, "checkpoint_stuck_after": 60.0}
        watched = monitor.watch(Named("coder"), policy={"stall": stall})
        with watched.task("t-19"):
            watched.checkpoint("cp-1")
            event = await heard.comes("agent-degraded", "coder")
            assert "No checkpoint" in event.reason
            assert event.code == "inactivity"
            watched.progress("12/40 files", percent=30)
        until(lambda: monitor.health("coder") == "healthy")
        assert "agent-reconnected" not in heard.of("coder")


async def test_who_says_good_bye_has_left() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        watched = monitor.watch(Named("coder"))
        watched.leave("done for today")
        assert (await heard.comes("agent-left", "coder")).reason == "done for today"
        watched.progress("a word after the end is not believed, and harms nobody")
        assert monitor.health("coder") == "terminated"
