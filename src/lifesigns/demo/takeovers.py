"""Takeovers: the narrator of the demo with several hubs. It kills the hub that judges, and tells who judges next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from lifesigns.client import AsyncClient
from lifesigns.core.health import Health
from lifesigns.demo.fleet import HUBS_FLEET, VICTIM
from lifesigns.demo.hubs import DemoHub, DemoHubs
from lifesigns.demo.narrator import Narrator, StoryLine
from lifesigns.demo.processes import DemoProcesses
from lifesigns.errors import HubError
from lifesigns.views.hubs import HubState

LOOK_EVERY: Final = 0.1
SHOW_FOR: Final = 3.0
"""How long everything is well before a hub is killed, so that somebody sees it."""
THEN: Final = 1.0
"""How long after the hub an agent is killed: before another hub takes over."""


class Kill(NamedTuple):
    """A hub that was killed."""

    hub: str
    successor: str
    after_s: float
    """Seconds until the successor judged."""


class TakeoverNarrator(Narrator):
    """Follows a fleet with several hubs."""

    def __init__(self, turn: float, tell: Callable[[StoryLine], None]) -> None:
        super().__init__(HUBS_FLEET, turn, tell)
        self.kills: list[Kill] = []
        self.states: dict[str, HubState] = {}
        """By name: what each hub was last seen to do."""

    @property
    def is_right(self) -> bool:
        """Whether another hub took over, all hubs are there, and no agent was wronged."""
        return bool(self.kills) and self._all_there() and super().is_right

    async def _act(self, processes: DemoProcesses, client: AsyncClient, *, to_the_end: bool) -> None:
        """Play the person who kills hubs and starts them again: once, or to the end."""
        assert isinstance(processes, DemoHubs)
        async with AsyncClient(processes.url, processes.token, retry_for=0.0) as impatient:
            while to_the_end or not self.kills:
                await self._kill_one(processes, impatient)
            await asyncio.Event().wait()

    async def _kill_one(self, processes: DemoHubs, client: AsyncClient) -> None:
        judge = await self._until_calm(processes, client)
        others = ", ".join(hub.name for hub in processes.hubs if hub is not judge)
        self._say(f"{judge.name} judges; {others} stand by.")
        await asyncio.sleep(SHOW_FOR)
        killed_at = time.monotonic()
        processes.kill(judge)
        self.states.pop(judge.name, None)
        self._say(
            f"You kill {judge.name} with -9 (the demo does it for you). No hub judges; the agents work on."
        )
        if not self.kills:
            await asyncio.sleep(THEN)
            processes.crash(VICTIM)
            self._say(f"The process of {VICTIM} is killed, too, and no hub is there to help.")
        successor = await self._successor(judge, processes, client)
        self.kills.append(Kill(judge.name, successor.name, round(time.monotonic() - killed_at, 1)))
        self._say(f"{successor.name} judges, {self.kills[-1].after_s} s after the kill.")
        while not processes.runs(VICTIM):  # noqa: ASYNC110 -- nobody tells of it
            await asyncio.sleep(LOOK_EVERY)
        if len(self.kills) == 1:
            self._say(f"{VICTIM} runs again: `lifesigns run` needs no hub to start it anew.")
        self._say(f"You start {judge.name} again.")
        await processes.start_again(judge)
        while self.states.get(judge.name) is not HubState.STANDS_BY:
            await self._look_for_judge(processes, client)
            await asyncio.sleep(LOOK_EVERY)
        self._say(f"{judge.name} is back, and stands by.")

    async def _until_calm(self, processes: DemoHubs, client: AsyncClient) -> DemoHub:
        """Return the hub that judges when all hubs are there and all agents well."""
        while True:
            judge = await self._look_for_judge(processes, client)
            well = all(outcome.state is Health.HEALTHY for outcome in self.outcomes.values())
            if judge is not None and well and len(self.states) == len(processes.hubs) and self._all_there():
                return judge
            await asyncio.sleep(LOOK_EVERY)

    async def _look_for_judge(self, processes: DemoHubs, client: AsyncClient) -> DemoHub | None:
        """Look at all hubs; the one that judges, if one does."""
        by_url = {hub.url: hub for hub in processes.hubs}
        with suppress(HubError):
            seen = {by_url[hub.url]: hub.state for hub in (await client.hubs()).hubs if hub.url in by_url}
            self.states.update((hub.name, state) for hub, state in seen.items())
            return next((hub for hub, state in seen.items() if state is HubState.JUDGES), None)
        return None

    async def _successor(self, killed: DemoHub, processes: DemoHubs, client: AsyncClient) -> DemoHub:
        """Return the next hub when it judges and answers."""
        while True:
            judge = await self._look_for_judge(processes, client)
            if judge is not None and judge is not killed:
                with suppress(HubError):
                    await client.fleet()
                    return judge
            await asyncio.sleep(LOOK_EVERY)

    def _all_there(self) -> bool:
        states = list(self.states.values())
        return states.count(HubState.JUDGES) == 1 and HubState.LOST not in states

    def _say(self, text: str) -> None:
        self._tell(StoryLine(time.time(), "", text))
