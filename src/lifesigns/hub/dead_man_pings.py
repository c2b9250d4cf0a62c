"""Dead-man pings: while this hub watches well, it pings somebody outside who raises an alarm when no ping comes.

Nobody else can tell people that all hubs, or the whole site, are gone. So there is no ping while the hub cannot do its
work: the alarm outside is then the one that still reaches people. Only the hub that judges pings. A ping has a task of
its own and a bounded time; nothing waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from lifesigns.errors import AdapterError
from lifesigns.ports import DeadManSwitch

LOOK_EVERY: Final = 1.0
PING_FOR: Final = 10.0
"""Seconds a ping may take."""
RETRY_AFTER: Final = 5.0
"""After a ping that failed, unless the next one is due sooner."""
FAILING_AFTER: Final = 30.0
"""How long pings may fail before people get an alert from here. The alarm outside may be quicker, and that is fine."""

log: Final = logging.getLogger("lifesigns.hub")


class DeadManPings:
    """Pings `switch` every `every` seconds, as long as `why_unwell` says nothing."""

    def __init__(
        self,
        switch: DeadManSwitch,
        every: float,
        why_unwell: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self._switch = switch
        self._every = every
        self._why_unwell = why_unwell
        self._clock = clock
        self._due_at = 0.0
        self._failing_since: float | None = None
        self._failure = ""
        self.held_back = ""
        """Why there is no ping at the moment; empty if there is one."""
        self.sent = 0
        self.failed = 0
        self.last_at: float | None = None
        """When the last ping was taken."""

    @property
    def state(self) -> str:
        """`ok`, or why no ping goes out or is taken."""
        if self.held_back:
            return f"no ping, because {self.held_back}"
        if self._failing_since is not None:
            return self._failure
        return "ok" if self.last_at is not None else "no ping yet"

    def why_failing(self, now: float) -> str:
        """Why pings are not taken; empty if they are, or have not failed for long."""
        since = self._failing_since
        return "" if since is None or now - since < FAILING_AFTER else self._failure

    async def run(self) -> None:
        """Ping, for ever."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(LOOK_EVERY)
        finally:
            await self._switch.close()

    async def _look(self) -> None:
        why = self._why_unwell()
        if why and not self.held_back:
            log.warning("no ping to %s: %s", self._switch.name, why, extra={"action": "dead_man_held_back"})
        self.held_back = why
        if why or self._clock() < self._due_at:
            return
        try:
            async with asyncio.timeout(PING_FOR):
                await self._switch.ping()
        except (AdapterError, TimeoutError) as error:
            self._note_failure(str(error) or f"{self._switch.name}: no answer within {PING_FOR:g} s")
        else:
            self._note_taken()

    def _note_taken(self) -> None:
        now = self._clock()
        if self._failing_since is not None:
            log.warning("%s takes pings again", self._switch.name, extra={"action": "dead_man_switch_back"})
        self._failing_since, self.last_at, self._due_at = None, now, now + self._every
        self.sent += 1

    def _note_failure(self, why: str) -> None:
        now = self._clock()
        if self._failing_since is None:
            log.warning("a ping was not taken: %s", why, extra={"action": "dead_man_not_taken"})
            self._failing_since = now
        self._failure = why
        self._due_at = now + min(self._every, RETRY_AFTER)
        self.failed += 1
