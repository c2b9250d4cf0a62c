"""With a hub that is reached by HTTP: it hears of the life and of its end, and its word is obeyed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from lifesigns.core.effects import Terminate
from lifesigns.core.signals import AgentRegistered, ProcessExited, TerminationDone
from tests.agent.sender.http_hub import HttpHub


@pytest.fixture
def hub() -> Iterator[HttpHub]:
    with HttpHub() as hub:
        yield hub


def run(hub: HttpHub, *command: str) -> subprocess.Popen[str]:
    words = ["run", "--id", "coder-7", "--hub", hub.url, "--profile", "swift", "--", *command]
    return subprocess.Popen([sys.executable, "-m", "lifesigns", *words], stderr=subprocess.PIPE, text=True)


def test_a_failing_child_is_reported_with_its_status(hub: HttpHub) -> None:
    child = run(hub, "sh", "-c", "exit 3")
    _, said = child.communicate(timeout=30)
    assert child.returncode == 3
    assert "coder-7 failed: status 3" in said
    assert hub.of(AgentRegistered)
    (exited,) = hub.of(ProcessExited)
    assert exited.status == 3


def test_a_stop_ends_the_child_and_is_answered(hub: HttpHub) -> None:
    child = run(hub, "sleep", "60")
    hub.until(lambda: hub.beats)
    life = hub.beats[0].incarnation
    hub.offer(Terminate(time.time(), "1-9", 1, "coder-7", life, "too slow", 5.0, (), 0, "me"))
    _, said = child.communicate(timeout=30)
    assert child.returncode == -signal.SIGTERM
    assert "too slow" in said
    (stopped,) = hub.of(TerminationDone)
    assert (stopped.order_id, stopped.forced) == ("1-9", False)
