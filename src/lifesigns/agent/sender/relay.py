"""Relay: one thread and one connection per process and hub, for all its agents.

The law: no agent ever waits for this. Everything public may be called from any thread, from signal handlers too; what
is done with it happens in `relay_loop.py`, on the relay's own loop.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from lifesigns.agent.probe import LoopProbe
from lifesigns.agent.sender.farewells import Farewells
from lifesigns.agent.sender.quiet_loop import QuietLoop
from lifesigns.agent.sender.relay_loop import RelayLoop
from lifesigns.agent.sender.session import AgentSession
from lifesigns.ports import Link

log: Final = logging.getLogger("lifesigns.sender")


class Relay:
    """Carries the beats and reports of its sessions to one hub. Its thread lives from the first `join` until the last one has left."""

    def __init__(
        self, make_link: Callable[[], Link], name: str = "hub", farewells: Farewells | None = None
    ) -> None:
        self._make_link = make_link
        self.name = name
        self.farewells = farewells or Farewells()
        self._lock = threading.Lock()
        self._sessions: tuple[AgentSession, ...] = ()
        self._thread: threading.Thread | None = None
        self._at_work: tuple[asyncio.AbstractEventLoop, RelayLoop] | None = None
        self._phase = random.random()  # noqa: S311 -- spreads processes over the interval, no secret
        self.rung = False
        """Somebody has rung and was not heard yet: to ring again would be a waste."""

    def join(self, session: AgentSession) -> None:
        """Carry this session, too; its first beat goes out within a window, the very first at once."""
        with self._lock:
            self._sessions = (*self._sessions, session)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lifesigns-relay", daemon=True)
                self._thread.start()
        if not self.rung:
            self.ring()  # Those who start together go out together, a moment later.

    def ring(self) -> None:
        """Words are waiting: send them with the next window."""
        self.rung = True
        self._call(RelayLoop.ring)

    def hurry(self) -> None:
        """Something must not wait for the window."""
        self._call(RelayLoop.hurry)

    def probe(self, loop: asyncio.AbstractEventLoop) -> LoopProbe:
        """The probe of this loop: one, however many agents live on it."""
        probes = (session.probe for session in self._sessions)
        return next((probe for probe in probes if probe is not None and probe.loop is loop), LoopProbe(loop))

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def _call(self, what: Callable[[RelayLoop], None]) -> None:
        at_work = self._at_work
        if at_work is not None:
            loop, rounds = at_work
            with suppress(RuntimeError):  # Just closed. Whoever joins next starts anew and finds everything.
                loop.call_soon_threadsafe(what, rounds)

    # --- the relay's thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=QuietLoop) as runner:
                runner.run(self._live())
        except Exception:
            log.exception("the relay to %s broke: a bug of ours. Its agents go on, unheard", self.name)
            with self._lock:
                sessions, self._sessions, self._thread = self._sessions, (), None
            for session in sessions:
                session.end()

    async def _live(self) -> None:
        rounds = RelayLoop(self._make_link(), self)
        self._at_work = asyncio.get_running_loop(), rounds
        await rounds.live()

    # --- for its rounds, in its thread ----------------------------------------------------------------------------

    @property
    def sessions(self) -> tuple[AgentSession, ...]:
        return self._sessions

    @property
    def phase(self) -> float:
        """Where the grid of its beats lies, 0 to 1."""
        return self._phase

    def dismiss(self, session: AgentSession) -> None:
        """It has said its last."""
        with self._lock:
            self._sessions = tuple(other for other in self._sessions if other is not session)
        session.end()

    def may_end(self) -> bool:
        """Whether nobody is left; then whoever joins next needs a new thread."""
        with self._lock:
            if self._sessions:
                return False
            self._thread = self._at_work = None
            return True
