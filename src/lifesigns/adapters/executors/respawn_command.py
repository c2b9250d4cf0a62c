"""Agents started anew by a command of yours, on the hub's machine.

The command is a template (`commands.py`). Its facts are in the environment too, as `lifesigns run` has them there, so a
program that uses `lifesigns.Sender` needs no argument at all.

The law: one start per order, whatever crashes in between. Before a command is started its order is written down, and
flushed; after that, its process. An order that comes again finds one of three things:

    nothing                    it was never begun: begin
    a process                  it was started: say so again
    its order and no process   the hub ended in between. If somebody lives with the new incarnation in its environment, that
                               is the one; if not, it has failed, and the engine decides about another try

And one life at a time. An order names the starts before it from which nobody was heard. While the process of one of them
lives it may still come, for some take long: the next order waits for it, and the one after that ends it. What has left the
session it was started in (a service manager has it, a terminal) is waited for in the same way and never ended here: should
it come after all, the engine stops one of the two.

The command finds a token in its environment that is made for this one life, and a key if it has to sign what it says.
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
"""A command that fails within this long has not started anything."""
KEPT_FOR: Final = 30 * 86400.0
"""How long it is remembered what was started; no order is given again after a day."""

WAIT_EVERY: Final = 2.0
"""How often is looked whether a start that is waited for has ended."""
END_FOR: Final = 5.0
"""How long a start that is ended may take before it is forced."""

log: Final = logging.getLogger("lifesigns.executors")


class RespawnCommand:
    """Starts agents by a command. What it started is remembered in `folder`, and so is what they put out."""

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
            )  # Nothing is begun, and nobody ended, for what will be refused.
            await asyncio.to_thread(self._make_room, order)
            if self._credentials is not None:
                credentials = await self._credentials(order)
        # In a thread, as a whole: whoever gives up waiting does not leave it half done.
        await asyncio.to_thread(self._start_once, order, credentials)
        return started(order)

    async def close(self) -> None: ...

    # --- in a thread ----------------------------------------------------------------------------------

    def _record(self, order: Respawn) -> Path:
        return self._folder / f"{_name(sameness(order))}.json"

    def _make_room(self, order: Respawn) -> None:
        """Nobody is started beside a start that may still come."""
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
        """End a start that was waited for; only what is still in the session it was started in."""
        records = (_read(path) or {} for path in self._folder.glob("*.json"))
        sessions = {known.get("pid") for known in records if known.get("incarnation") == life}
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
                known = _read(record)
                if known is None:
                    write_whole(record, json.dumps(begun).encode())
            except OSError as error:
                raise NotExecuted(f"{self._folder} cannot be written: {error.strerror}") from error
            pid: int | None
            if known is None:
                self._forget()
                pid = self._start(order, credentials)
            elif "pid" in known:
                return
            else:
                living = _living(order.new_incarnation)
                if not living:
                    raise AdapterError(
                        "the hub ended while it was started, and nobody lives from it", transient=False
                    )
                pid = living[0].pid
            with suppress(OSError):  # Then it is found by its incarnation, should it be asked for again.
                write_whole(record, json.dumps({**begun, "pid": pid}).encode())

    def _start(self, order: Respawn, credentials: tuple[str, str]) -> int:
        facts = self._facts(order)
        try:
            with commands.output_in(self._folder).open("ab") as output:
                process = subprocess.Popen(  # noqa: S603 -- the command is the user's own, and is what this is for
                    self._command.words(facts),
                    cwd=self._command.cwd,
                    env=self._command.environment(facts, self._told(order, *credentials)),
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
            # Somebody has to hear of its end, or it would stay as a zombie for as long as the hub lives.
            threading.Thread(target=process.wait, name=f"lifesigns wait {process.pid}", daemon=True).start()
        else:
            if status != 0:  # One that ended well has handed over to somebody: a service manager, a terminal.
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

    def _told(self, order: Respawn, token: str, key: str) -> dict[str, str]:
        return {"HUB": self._hub or "", "TOKEN": token, "KEY": key, "ATTEMPT": str(order.attempt + 1)}

    def _forget(self) -> None:
        """What is too old to be asked for again."""
        with suppress(OSError):
            for record in (*self._folder.glob("*.json"), *self._folder.glob("*.waits")):
                if time.time() - record.stat().st_mtime > KEPT_FOR:
                    record.unlink(missing_ok=True)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _living(incarnation: str) -> list[psutil.Process]:
    """The processes that were started as this life and live, the oldest first."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("LIFESIGNS_INCARNATION") == incarnation and process.status() != "zombie":
                found.append(process)
    return sorted(found, key=lambda process: process.create_time())


def _session(process: psutil.Process) -> int | None:
    with suppress(OSError, AttributeError):  # AttributeError: a system without sessions.
        return os.getsid(process.pid)
    return None


def _read(record: Path) -> dict[str, Any] | None:
    try:
        known = json.loads(record.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}  # The disk was full, or lost power: it was begun.
    return known if isinstance(known, dict) else {}
