"""Nudges typed into a tmux pane, at a moment that disturbs nobody.

The law: never into a running call, never into a shell. A pane is idle if it is not in a mode (copy, view), its
foreground program reads typed text (`idle_commands`), its screen has not changed for `quiet_for`, and the hub knows of
no open call of its agent. Otherwise we look again later.

The text goes in as one line, as a bracketed paste where the program supports it, then Enter. It begins with a letter or
a digit: agents take `!` or `/` at the beginning of a line for a command, and a nudge may quote an agent. The pane
itself remembers the last typed nudge, in an option: a hub that crashed in between does not type it twice.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from lifesigns.adapters.executors.commands import inherited
from lifesigns.core import templates
from lifesigns.core.effects import Order, SendNudge
from lifesigns.core.signals import NudgeDelivered, Signal
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import NotExecuted, sameness

FACTS: Final = ("agent_id",)
TEXT_MAX: Final = 4000
QUIET_FOR: Final = 3.0
ENTER_AFTER: Final = 0.3
"""Programs take an Enter that comes with a paste for a part of it."""
LOOK_AGAIN_AFTER: Final = 5.0
ANSWER_FOR: Final = 5.0
TYPED: Final = "@lifesigns_nudge"
SEPARATORS: Final = frozenset(".:")
"""tmux separates session, window and pane of a target by these; no session name has them."""
SERVER: Final = ("TMUX", "TMUX_TMPDIR")
"""tmux finds its server by these."""


class _Pane(Struct, frozen=True):
    id: str
    mode: str
    dead: str
    typed: str
    command: str
    screen: str


class TmuxNudge:
    """Types nudges into an agent's pane `target` (`agents:{agent_id}`), in tmux's syntax. `socket` is the server's
    (`tmux -L`); `is_busy` says whether the hub knows of an open call."""

    def __init__(
        self,
        target: str,
        idle_commands: Sequence[str],
        is_busy: Callable[[str], bool],
        *,
        quiet_for: float = QUIET_FOR,
        socket: str | None = None,
    ) -> None:
        if wrong := templates.fault(target, FACTS):
            raise UsageError(f"the pane {wrong}")
        self._target = target
        self._idle_commands = frozenset(idle_commands)
        self._is_busy = is_busy
        self._quiet_for = quiet_for
        self._tmux = ("tmux", *(("-L", socket) if socket else ()))

    async def carry_out(self, order: Order) -> Signal | None:
        """Type it, if the pane is idle."""
        assert isinstance(order, SendNudge)
        if not SEPARATORS.isdisjoint(order.agent_id):
            raise AdapterError(
                f"{order.agent_id} has . or :, after which tmux would read a window or pane, maybe of another agent",
                transient=False,
            )
        target, key = templates.filled(self._target, {"agent_id": order.agent_id}), sameness(order)
        pane = await self._look(target)
        if pane.typed != key:
            await self._until_quiet(order, pane)
            await self._type(pane.id, key, one_line(order.text))
        return NudgeDelivered(agent_id=order.agent_id, order_id=order.order_id)

    async def close(self) -> None: ...

    async def _until_quiet(self, order: SendNudge, pane: _Pane) -> None:
        """Return if it is idle and stays so; otherwise raise, for a later retry."""
        self._check(order, pane)
        await asyncio.sleep(self._quiet_for)
        later = await self._look(pane.id)
        if later.screen != pane.screen:
            raise _later("it puts something out")
        self._check(order, later)

    def _check(self, order: SendNudge, pane: _Pane) -> None:
        if pane.dead == "1":
            raise AdapterError(f"the program in pane {pane.id} has ended", transient=False)
        if pane.mode != "0":
            raise _later("somebody scrolls in it")
        if pane.command not in self._idle_commands:
            raise _later(f"{pane.command} runs in it, which is none of its idle commands")
        if self._is_busy(order.agent_id):
            raise _later("a call of its agent is open")

    async def _type(self, pane: str, key: str, text: str) -> None:
        buffer = "lifesigns"
        # One message to the server: it marks and types, or does neither.
        await self._run(
            *("set-option", "-p", "-t", pane, TYPED, key, ";"),
            *("set-buffer", "-b", buffer, "--", _quoted(text), ";"),
            *("paste-buffer", "-p", "-d", "-b", buffer, "-t", pane),
        )
        await asyncio.sleep(ENTER_AFTER)
        await self._run("send-keys", "-t", pane, "Enter")

    async def _look(self, target: str) -> _Pane:
        facts = f"#{{pane_id}}|#{{pane_in_mode}}|#{{pane_dead}}|#{{{TYPED}}}|#{{pane_current_command}}"
        # `display-message` shows another pane if none has this name; `capture-pane` fails, and nothing follows.
        output = await self._run(
            "capture-pane", "-p", "-t", target, ";", "display-message", "-p", "-t", target, facts
        )
        screen, _, last = output.rstrip("\n").rpartition("\n")
        if last.count("|") < facts.count("|"):
            raise NotExecuted(f"tmux says {last[:100]!r} about {target}", retry_after=LOOK_AGAIN_AFTER)
        id_, mode, dead, typed, command = last.split("|", 4)
        return _Pane(id_, mode, dead, typed, command, screen)

    async def _run(self, *arguments: str) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._tmux, *arguments, env=inherited(SERVER), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
            )
        except FileNotFoundError:
            raise AdapterError("there is no tmux on this machine", transient=False) from None
        try:
            async with asyncio.timeout(ANSWER_FOR):
                output, complaint = await process.communicate()
        except BaseException as error:
            if process.returncode is None:
                process.kill()
                await process.wait()
            if isinstance(error, TimeoutError):
                raise NotExecuted(f"tmux did not answer within {ANSWER_FOR:g} s") from None
            raise
        if process.returncode:
            # A missing pane may be there soon: its agent was just respawned.
            raise NotExecuted(
                f"tmux: {complaint.decode(errors='replace').strip()[:200]}", retry_after=LOOK_AGAIN_AFTER
            )
        return output.decode(errors="replace")


def one_line(text: str) -> str:
    """A text safe to type: one line, without anything that a terminal or its program would obey."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:TEXT_MAX]
    return line if not line or line[0].isalnum() else f"Note: {line}"


def _quoted(text: str) -> str:
    """tmux takes a `;` at the end of an argument for the end of a command."""
    return f"{text[:-1]}\\;" if text.endswith(";") else text


def _later(why: str) -> NotExecuted:
    return NotExecuted(f"this is no moment for a nudge: {why}", retry_after=LOOK_AGAIN_AFTER)
