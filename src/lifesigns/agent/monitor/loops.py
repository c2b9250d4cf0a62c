"""Loops: an event loop and its agents. We ask it once a tick, however many they are.

The law: only time in which we looked counts. When we wake late, a question may be open because nothing ran: the
machine slept, the process was stopped, a thread held the interpreter's lock. So a look adds no more to a loop's lag
than the planned wait, and before a verdict we soon look again.

A declared blocking call (`watched.busy`) excuses the loop as long as the task that declared it runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from math import inf
from typing import Any, Final

from lifesigns.agent.monitor.emitters import EmitterAttachment
from lifesigns.agent.monitor.watched import DeclaredCall, WatchedAgent
from lifesigns.agent.probe import LoopProbe
from lifesigns.agent.standstill import full_stack_of, place_of

LOOK_AGAIN_AFTER: Final = 0.25
"""How soon we look again at a loop that owes an answer: a few looks within the shortest `freeze.after` in use."""

SOON: Final = 0.02


class LoopWatch:
    """One loop. Everything but `excuse` belongs to the monitor's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.probe = LoopProbe(loop)
        self.carried: dict[str, WatchedAgent] = {}
        """The agents for which the loop answers."""
        self.own: dict[str, WatchedAgent] = {}
        """The agents that beat by themselves; a freeze of the loop freezes them too."""
        self.owes = 0.0
        """How long it has owed an answer, in time that counts."""
        self.excused = False
        """Whether an agent on it has declared that it will not answer."""
        self.owed_before = 0.0
        """What it owed when its agents last beat."""
        self.missed = 0
        self.answered = 0
        self._counted_at: float | None = None
        self._will_tell = False
        self._evidence: tuple[str, str | None] | None = None
        self._thread_id: int | None = None
        self._declared: list[DeclaredCall] = []

    @property
    def members(self) -> list[WatchedAgent]:
        return [*self.carried.values(), *self.own.values()]

    def look(self, now: float, counts: float) -> None:
        """See whether the question was answered. `counts` is how much of the time since the last look counts."""
        asked_at, self._evidence = self.probe.asked_at, None
        self.excused = self._is_excused(now)
        if asked_at is None:
            self.owes, self.missed, self._will_tell = 0.0, 0, False
        elif self.excused or not self.loop.is_running():
            self.owes = 0.0  # A loop that does not run, or is excused, owes nothing.
        else:
            self.owes = min(self.owes + counts, now - asked_at)

    def ask(self, now: float) -> bool:
        """Ask the loop, and the emitters that answer for themselves. False if the loop is closed."""
        if self.probe.asked_at is not None:
            self.missed += 1
        elif self.probe.answered_at != self._counted_at:
            self._counted_at = self.probe.answered_at
            self.answered += 1
        if not self.probe.ask(now):
            return False
        if (self._thread_id is None or self.own) and not self.missed:
            self._call(self._introduce)
        return True

    @property
    def is_new(self) -> bool:
        """Whether we never asked it."""
        return self.probe.asked_at is None and self.probe.answered_at is None

    def ping(self, watched: WatchedAgent) -> None:
        """Ask one emitter, on its own loop."""
        if isinstance(watched.attachment, EmitterAttachment):
            self._call(watched.attachment.ping)

    def tell_when_it_turns(self, tell: Callable[[], None]) -> None:
        """Call this once on the loop, as soon as it turns again."""
        if not self._will_tell:
            self._will_tell = True
            self._call(tell)

    def look_again_after(self) -> float:
        """How soon to look again; never, if there is nothing more to learn now."""
        if not self.owes:
            return inf
        rest = min(
            (w.freeze_after - self.owes for w in self.members if w.freeze_after > self.owes), default=inf
        )
        return inf if rest == inf else max(SOON, min(LOOK_AGAIN_AFTER, rest + SOON))

    def thread_id(self) -> int | None:
        """The thread it runs in. asyncio's own loop knows; others are asked when they first answer."""
        known: int | None = getattr(self.loop, "_thread_id", None)
        return known or self._thread_id

    def evidence(self) -> tuple[str, str | None]:
        """What holds the loop up, and where: one result per look for all its agents."""
        if self._evidence is None:
            place = place_of(self.thread_id())
            task = asyncio.current_task(self.loop)
            who = "A callback" if task is None else self._name_of(task)
            said = f"{who} holds it up{f' at {place}' if place else ''}."
            self._evidence = said, full_stack_of(self.thread_id())
        return self._evidence

    def excuse(self, declared: DeclaredCall) -> None:
        """An agent declared a blocking call; from any thread."""
        self._declared.append(declared)

    def excuse_no_more(self, declared: DeclaredCall) -> None:
        self._declared.remove(declared)

    def _is_excused(self, now: float) -> bool:
        if not self._declared:
            return False
        running = asyncio.current_task(self.loop)
        return any(d.task is running and now < d.until for d in tuple(self._declared))

    def _name_of(self, task: asyncio.Task[Any]) -> str:
        for watched in self.members:
            if watched.what is task:
                return watched.name
        return f"Task {task.get_name()!r}"

    def _introduce(self) -> None:
        """On the loop itself, in the same round as its answer."""
        self._thread_id = threading.get_ident()
        for watched in tuple(self.own.values()):
            if isinstance(watched.attachment, EmitterAttachment):
                self.loop.call_soon(
                    watched.attachment.ping
                )  # Each by itself: an error in one does not stop the others.

    def _call(self, what: Callable[[], None]) -> None:
        try:
            self.loop.call_soon_threadsafe(what)
        except RuntimeError:
            return  # Closed since we asked; the next tick notices.
