"""A hub with its own clock beside a small GitHub that has the same clock, and workers that beat."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from lifesigns.adapters.issues.github import GitHub, fixed_token
from lifesigns.core.profiles import profile
from lifesigns.core.signals import BeatReceived, Metrics, Signal, TaskClaimed
from lifesigns.errors import AdapterError
from lifesigns.events import fact_of
from lifesigns.events.hub_facts import LockRecovered
from lifesigns.hub.locks.lock_watch import LockWatch
from lifesigns.hub.locks.rules import LockRules
from tests.hub.ground import Ground
from tests.servers.github import TOKEN, FakeGitHub

REPO = "org/repo"
WORKERS: Mapping[str, tuple[str, ...]] = {"worker-1": ("worker-1",), "acme-bot": ("shared-*",)}
BEAT_EVERY = 30.0


class LockGround:
    """`async with LockGround() as ground: ...`. Time passes when it is told to."""

    def __init__(self, **rules: Any) -> None:
        self.hub_ground = Ground(policy=profile("fleet"))
        self.github = FakeGitHub(lambda: self.hub_ground.now)
        values: dict[str, Any] = {"workers": WORKERS, "comments": False} | rules
        self.rules = LockRules((REPO,), **values)
        self.beating: dict[str, str | None] = {"bystander": None}
        """Who beats now, and with which task. Somebody always does: who hears nothing at all convicts nobody."""
        self._seq: dict[str, int] = {}
        self._beaten_at = 0.0
        self._watches: list[LockWatch] = []

    @property
    def now(self) -> float:
        return self.hub_ground.now

    async def __aenter__(self) -> Self:
        self.github.__enter__()
        await self.hub_ground.start()
        self.watch = await self.another_watch("hub-1")
        return self

    async def __aexit__(self, *_: object) -> None:
        for watch in self._watches:
            await watch.close()
        await self.hub_ground.hub.stop()
        self.github.__exit__()

    async def another_watch(self, name: str) -> LockWatch:
        """One more monitor over the same hub."""
        tracker = GitHub(fixed_token(TOKEN), self.github.url, pace=0.0, clock=lambda: self.now)
        watch = LockWatch(tracker, self.rules, self.hub_ground.hub, self.hub_ground.policy.claim, name)
        self._watches.append(watch)
        await watch.begin()
        return watch

    def hear(self, *signals: Signal) -> None:
        assert self.hub_ground.hub.hear(signals)

    def beat(self, agent_id: str) -> None:
        self._seq[agent_id] = self._seq.get(agent_id, 0) + 1
        self.hear(
            BeatReceived(
                agent_id,
                seq=self._seq[agent_id],
                task_id=self.beating.get(agent_id),
                capacity_available=3,
                metrics=Metrics(45.2, 2048.0, 42, 2, 7200.0),
            )
        )

    async def claims(self, agent_id: str, task_id: str) -> None:
        await self.hub_ground.hub.store_reports([TaskClaimed(agent_id=agent_id, task_id=task_id)])
        self._tell()

    async def pass_time(self, seconds: float) -> None:
        """Everybody in `beating` beats meanwhile."""
        end = self.now + seconds
        while self.now < end:
            if self.now - self._beaten_at >= BEAT_EVERY:
                self._beaten_at = self.now
                for agent_id in self.beating:
                    self.beat(agent_id)
            await self.hub_ground.pass_time(min(1.0, end - self.now), step=1.0)
        await asyncio.sleep(0)
        await self.hub_ground.hub.committer.wait_until_stored()
        self._tell()

    def _tell(self) -> None:
        for watch in self._watches:
            watch.hear(self.hub_ground.events)

    async def look(self, watch: LockWatch | None = None) -> None:
        """A look; what goes wrong is left to the next one, as in `run`."""
        with suppress(AdapterError):
            await (watch or self.watch).look()

    async def recovered(self) -> list[LockRecovered]:
        await self.hub_ground.hub.committer.wait_until_stored()
        events = await self.hub_ground.hub.store.events(limit=10_000)
        return [fact for event in events if isinstance(fact := fact_of(event), LockRecovered)]
