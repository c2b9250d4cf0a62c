"""Agents: some are real processes, of others the hub has only heard. Everybody is reaped."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.agent.supervise.running import environ
from tests.browser.hub import Hub

WITHIN: Final = 30.0
PROGRAM: Final = Path(__file__).with_name("agent.py")


@dataclass
class LivingAgent:
    """A process with a sender in it."""

    id: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text()

    def says(self, text: str) -> None:
        """Wait until it has printed this."""
        until = time.monotonic() + WITHIN
        while text not in self.said:
            running = self.process.poll() is None
            assert running, f"{self.id} has ended with {self.process.returncode}: {self.said}"
            assert time.monotonic() < until, f"{self.id} did not say {text!r}, but {self.said!r}"
            time.sleep(0.05)

    def ends(self) -> int:
        return self.process.wait(WITHIN)


@contextmanager
def living(hub: Hub, agent_id: str, folder: Path) -> Iterator[LivingAgent]:
    """An agent that lives while the block lasts, or until somebody ends it."""
    log = folder / f"{agent_id}.log"
    token = (hub.state / "admin.token").read_text().strip()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), agent_id, hub.url, token], stdout=out, stderr=out, env=environ()
        )
    with process:
        try:
            agent = LivingAgent(agent_id, process, log)
            agent.says("lives")
            yield agent
        finally:
            process.kill()
