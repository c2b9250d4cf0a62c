"""Cleans up after agents by a command of yours, on the hub's machine: `rm -rf -- /work/{agent_slug}/{incarnation}`.

It succeeds if it ends with status 0 in time; otherwise it runs again, a little later each time. After a crash of the
hub it may run once more: removing what is gone must be no error. Giving up ends it, with all its children: another
agent may already use what was to be cleaned up. It gets no token, because nothing speaks for an ended life.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from lifesigns.adapters.executors import commands
from lifesigns.adapters.executors.commands import Command
from lifesigns.core.commands import slug
from lifesigns.core.effects import CleanUp, Order
from lifesigns.core.signals import CleanedUp, Signal
from lifesigns.errors import AdapterError
from lifesigns.ports import NotExecuted

log: Final = logging.getLogger("lifesigns.executors")


class CleanupCommand:
    """Cleans up by a command, and writes its output into `folder`."""

    def __init__(self, command: Command, folder: Path, *, hub: str | None = None) -> None:
        self._command = command
        self._folder = folder
        self._hub = hub

    async def carry_out(self, order: Order) -> Signal | None:
        """Run the cleanup."""
        assert isinstance(order, CleanUp)
        process = await self._started(order)
        try:
            status = await process.wait()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if status != 0:
            raise NotExecuted(f"the command ended {commands.how_ended(status)}")
        return CleanedUp(agent_id=order.agent_id, order_id=order.order_id)

    async def close(self) -> None: ...

    async def _started(self, order: CleanUp) -> asyncio.subprocess.Process:
        facts = _facts(order)
        words = self._command.words(facts)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            output = commands.output_in(self._folder).open("ab")
        except OSError as error:
            raise NotExecuted(f"{self._folder} cannot be written: {error.strerror}") from error
        with output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    cwd=self._command.cwd,
                    env=self._command.environment(facts, {"HUB": self._hub or ""}),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                raise AdapterError(f"the command cannot be started: {why}", transient=False) from error
        log.info(
            "cleaning up after %s, as process %d",
            order.agent_id,
            process.pid,
            extra={"action": "cleanup_command"},
        )
        return process


def _facts(order: CleanUp) -> dict[str, str]:
    return {
        "agent_id": order.agent_id,
        "agent_slug": slug(order.agent_id),
        "incarnation": order.incarnation or "",
        "task_id": order.task_id or "",
        "checkpoint_id": order.checkpoint_id or "",
        "reason": order.reason,
    }
