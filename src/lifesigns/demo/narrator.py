"""The narrator: watches the fleet while it lives, and plays the person of the demo.

It is over when every trouble was found, named and helped, or when its time is up, or when the hub is gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Final, NamedTuple

from lifesigns.client import AsyncClient
from lifesigns.demo import story
from lifesigns.demo.fleet import ANSWER, QUESTION, Action, DemoAgent
from lifesigns.demo.outcome import Outcome, is_right
from lifesigns.demo.processes import DemoProcesses
from lifesigns.errors import AdapterError, HubError
from lifesigns.views import AgentHealth, EventView, FleetView, moment

LOOK_EVERY: Final = 0.5
CALM_FOR: Final = 3.0
"""How long all must be well before it is over: lifesigns might do one thing too many."""
THINK_FOR: Final = 5
"""Turns that the person takes to answer."""


class StoryLine(NamedTuple):
    """A sentence of the story. `own`: the agent's own words."""

    at: float
    agent_id: str
    text: str
    own: bool = False


def clock(at: float) -> str:
    """A moment in the story."""
    return moment(at)[11:19]


class FleetState(NamedTuple):
    """All agents, and the fleet."""

    agents: Sequence[AgentHealth]
    fleet: FleetView


class Narrator:
    """Follows the demo's processes. Passes the story to `tell` line by line."""

    def __init__(self, fleet: Sequence[DemoAgent], turn: float, tell: Callable[[StoryLine], None]) -> None:
        self.outcomes = {member.id: Outcome(member) for member in fleet}
        self._turn = turn
        self._tell = tell
        self._asked = asyncio.Event()
        self._right_since: float | None = None

    @property
    def is_right(self) -> bool:
        """Whether all is right."""
        return is_right(list(self.outcomes.values()))

    async def follow(
        self,
        processes: DemoProcesses,
        client: AsyncClient,
        go_on_for: float,
        *,
        to_the_end: bool = False,
        see: Callable[[FleetState], None] | None = None,
    ) -> None:
        """Watch for so long; unless `to_the_end`, only until all is right. Passes every look to `see`. Raises
        `AdapterError` if the hub is gone."""
        tasks = [
            asyncio.create_task(work)
            for work in (
                self._listen(client),
                self._overhear(processes.lines()),
                self._look(client, see, to_the_end=to_the_end),
                self._act(processes, client, to_the_end=to_the_end),
                self._lose(processes),
            )
        ]
        try:
            done, _ = await asyncio.wait(tasks, timeout=go_on_for, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    # --- at the same time -----------------------------------------------------------------------------

    async def _listen(self, client: AsyncClient) -> None:
        async with aclosing(client.events(after=0)) as events:
            async for event in events:
                self._happened(event)

    def _happened(self, event: EventView) -> None:
        outcome = self.outcomes.get(event.agent_id)
        if outcome is not None:
            outcome.happened(event)
            if event.agent_id == QUESTION and Action.TOLD in outcome.actions:
                self._asked.set()
        if sentence := story.sentence_of(event):
            self._tell(StoryLine(datetime.fromisoformat(event.at).timestamp(), event.agent_id, sentence))

    async def _overhear(self, lines: AsyncIterator[tuple[str, str]]) -> None:
        async for agent_id, line in lines:
            self.outcomes[agent_id].printed(line, time.time())
            self._tell(StoryLine(time.time(), agent_id, f"{agent_id} {line}", own=True))

    async def _look(
        self, client: AsyncClient, see: Callable[[FleetState], None] | None, *, to_the_end: bool
    ) -> None:
        """FleetState again and again; ends when all has been right for a while."""
        while to_the_end or not self._is_calm():
            with suppress(HubError):
                look = FleetState((await client.agent_list(sort="need")).agents, await client.fleet())
                for agent in look.agents:
                    if agent.agent_id in self.outcomes:
                        self.outcomes[agent.agent_id].looked(agent, time.time())
                if see is not None:
                    see(look)
            await asyncio.sleep(LOOK_EVERY)

    def _is_calm(self) -> bool:
        if not self.is_right:
            self._right_since = None
        elif self._right_since is None:
            self._right_since = time.monotonic()
        return self._right_since is not None and time.monotonic() - self._right_since >= CALM_FOR

    async def _act(self, _processes: DemoProcesses, client: AsyncClient, *, to_the_end: bool) -> None:
        """Play the person, for ever: think for a while, answer once."""
        await self._asked.wait()
        await asyncio.sleep(THINK_FOR * self._turn)
        await client.nudge(QUESTION, ANSWER)
        await asyncio.Event().wait()

    async def _lose(self, processes: DemoProcesses) -> None:
        await processes.ended.wait()
        last_words = processes.last_words(processes.lost) or "it said nothing"
        raise AdapterError(f"the {processes.lost} is gone: {last_words}", transient=False)
