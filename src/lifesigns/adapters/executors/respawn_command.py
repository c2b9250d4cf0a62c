"""Respawns agents by a command of yours, on the hub's machine.

The command is a template (`commands.py`). Its facts are in the environment too, as with `lifesigns run`, so a program
that uses `lifesigns.Sender` needs no argument at all.

The law: one start per order, whatever crashes in between. We write the order down, and flush it, before we start the
command; then its process. A repeated order finds one of three things:

    nothing                    it was never begun: begin
    a process                  it was started: report that again
    its order and no process   the hub ended in between. If a process has the new incarnation in its environment, that is
                               the one; if not, the start failed, and the engine decides about another try

And one life at a time. An order names the earlier starts that never beat. While the process of one of them lives, it
may still begin to beat, because some take long: the next order waits for it, and the one after that ends it. We wait in
the same way for a process that left its session (to a service manager, a terminal) but never end it: if it beats after
all, the engine stops one of the two.

The command gets a token for this one life in its environment, and a key if the agent has to sign.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from lifesigns.adapters.executors import commands
from lifesigns.adapters.executors.commands import Command
from lifesigns.adapters.executors.order_webhook import started
from lifesigns.core.commands import slug
from lifesigns.core.effects import Order, Respawn
from lifesigns.core.signals import Signal
from lifesigns.errors import AdapterError
from lifesigns.files import write_whole
from lifesigns.ports import NotExecuted, sameness

SETTLE_FOR: Final = 0.5
"""A command that fails within this time has not started anything."""
KEPT_FOR: Final = 30 * 86400.0
"""How long we remember starts; no order is repeated after a day."""

WAIT_EVERY: Final = 2.0
"""How often an order checks whether an earlier start has ended."""
END_FOR: Final = 5.0
"""How long an ended start may take before we force it."""

log: Final = logging.getLogger("lifesigns.executors")


class RespawnCommand:
    """Starts agents by a command. `folder` has the records of its starts, and their output."""

    def __init__(
        self,
        command: Command,
        folder: Path,
        checkpoint_url: Callable[[Respawn], str | None],
        *,
        hub: str | None = None,
        credentials: Callable[[Respawn], Awaitable[tuple[str, str]]] | None = None,
    ) -> None:
        self._command = command
        self._folder = folder
        self._checkpoint_url = checkpoint_url
        self._hub = hub
        self._credentials = credentials
        self._turn = threading.Lock()

    async def carry_out(self, order: Order) -> Signal | None:
        """Start it, once."""
        assert isinstance(order, Respawn)
        credentials = "", ""
        if not await asyncio.to_thread(self._record(order).exists):
            self._command.words(
                self._facts(order)
            )  # An order that will be refused must begin nothing and end nothing.
            await asyncio.to_thread(self._make_room, order)
            if self._credentials is not None:
                credentials = await self._credentials(order)
        # All of it in one thread, so that a cancelled wait does not leave it half done.
        await asyncio.to_thread(self._start_once, order, credentials)
        return started(order)

    async def close(self) -> None: ...

    # --- in a thread ----------------------------------------------------------------------------------

    def _record(self, order: Respawn) -> Path:
        return self._folder / f"{_name(sameness(order))}.json"

    def _make_room(self, order: Respawn) -> None:
        """Start nothing beside an earlier start that may still begin to beat."""
        for life in order.instead_of:
            living = _living(life)
            if not living:
                continue
            waits = self._folder / f"{_name(life)}.waits"
            try:
                first = not waits.exists()
                if first:
                    waits.write_text(sameness(order))
                if first or waits.read_text() == sameness(order):
                    raise NotExecuted(
                        f"the start before it still runs as process {living[0].pid}, and may still come",
                        retry_after=WAIT_EVERY,
                    )
            except OSError as error:
                raise NotExecuted(f"{self._folder} cannot be written: {error.strerror}") from error
            self._end(order, life, living)

    def _end(self, order: Respawn, life: str, living: list[psutil.Process]) -> None:
        """End an earlier start, but only processes still in the session it was started in."""
        records = (_read(path) or {} for path in self._folder.glob("*.json"))
        sessions = {record.get("pid") for record in records if record.get("incarnation") == life}
        ours = [process for process in living if _session(process) in sessions]
        log.warning(
            "%s: nothing was heard of %s; processes %s are ended before it is started again",
            order.agent_id,
            life,
            [process.pid for process in ours],
            extra={"action": "respawn_ended"},
        )
        for process in ours:
            with suppress(psutil.Error):
                process.terminate()
        _, stay = psutil.wait_procs(ours, timeout=END_FOR)
        for process in stay:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(stay, timeout=END_FOR)

    def _start_once(self, order: Respawn, credentials: tuple[str, str]) -> None:
        with self._turn:
            record, begun = (
                self._record(order),
                {"order": sameness(order), "incarnation": order.new_incarnation},
            )
            try:
                earlier = _read(record)
                if earlier is None:
                    write_whole(record, json.dumps(begun).encode())
            except OSError as error:
                raise NotExecuted(f"{self._folder} cannot be written: {error.strerror}") from error
            pid: int | None
            if earlier is None:
                self._forget()
                pid = self._start(order, credentials)
            elif "pid" in earlier:
                return
            else:
                living = _living(order.new_incarnation)
                if not living:
                    raise AdapterError(
                        "the hub ended while it was started, and nobody lives from it", transient=False
                    )
                pid = living[0].pid
            with suppress(OSError):  # Without the pid, a repetition finds it by its incarnation.
                write_whole(record, json.dumps({**begun, "pid": pid}).encode())

    def _start(self, order: Respawn, credentials: tuple[str, str]) -> int:
        facts = self._facts(order)
        try:
            with commands.output_in(self._folder).open("ab") as output:
                process = subprocess.Popen(  # noqa: S603 -- the command is the user's own, and is what this is for
                    self._command.words(facts),
                    cwd=self._command.cwd,
                    env=self._command.environment(facts, self._extra(order, *credentials)),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # It outlives the hub.
                )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise AdapterError(f"the command cannot be started: {why}", transient=False) from error
        log.info(
            "%s is started anew as process %d",
            order.agent_id,
            process.pid,
            extra={"action": "respawn_command"},
        )
        try:
            status = process.wait(SETTLE_FOR)
        except subprocess.TimeoutExpired:
            # Reap it when it ends, or it stays a zombie as long as the hub lives.
            threading.Thread(target=process.wait, name=f"lifesigns wait {process.pid}", daemon=True).start()
        else:
            if status != 0:  # One that ended well has handed over to a service manager or a terminal.
                how = commands.how_ended(status)
                raise AdapterError(f"the command ended at once, {how}", transient=False)
        return process.pid

    def _facts(self, order: Respawn) -> dict[str, str]:
        return {
            "agent_id": order.agent_id,
            "agent_slug": slug(order.agent_id),
            "attempt": str(order.attempt),
            "checkpoint_id": order.checkpoint_id or "",
            "checkpoint_url": self._checkpoint_url(order) or "",
            "handoff": order.handoff,
            "new_incarnation": order.new_incarnation,
            "task_id": order.task_id or "",
        }

    def _extra(self, order: Respawn, token: str, key: str) -> dict[str, str]:
        return {"HUB": self._hub or "", "TOKEN": token, "KEY": key, "ATTEMPT": str(order.attempt + 1)}

    def _forget(self) -> None:
        """Drop records that are too old to be needed again."""
        with suppress(OSError):
            for record in (*self._folder.glob("*.json"), *self._folder.glob("*.waits")):
                if time.time() - record.stat().st_mtime > KEPT_FOR:
                    record.unlink(missing_ok=True)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _living(incarnation: str) -> list[psutil.Process]:
    """The live processes of this incarnation, the oldest first."""
    processes: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("LIFESIGNS_INCARNATION") == incarnation and process.status() != "zombie":
                processes.append(process)
    return sorted(processes, key=lambda process: process.create_time())


def _session(process: psutil.Process) -> int | None:
    with suppress(OSError, AttributeError):  # AttributeError: a system without sessions.
        return os.getsid(process.pid)
    return None


def _read(record: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(record.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}  # The disk was full or lost power: it was begun.
    return content if isinstance(content, dict) else {}
