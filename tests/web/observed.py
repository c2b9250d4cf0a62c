"""A service on a real loop whose clock moves when it is told to, and its metrics as a scraper reads them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.config.values import Limits
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.core.signals import BeatReceived, Signal
from lifesigns.hub.service import Service
from lifesigns.ports import Bus, DeadManSwitch, Store
from lifesigns.web.prometheus import Metrics
from lifesigns.web.quotas import WebQuotas
from lifesigns.web.rates import Rates

WAIT_MAX = 20.0
Scraped = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Observed:
    """A service, and what it shows."""

    def __init__(
        self, store: Store | None = None, bus: Bus | None = None, switch: DeadManSwitch | None = None
    ) -> None:
        self.now = 1_000_000.0
        self.answered: dict[int, int] = {}
        self.service = Service(
            store or MemoryStore(str(uuid.uuid4())),
            bus,
            policies=PolicyBook(profile("balanced")),
            fleet=FleetPolicy(canary_every=0),
            clock=lambda: self.now,
        )
        if switch is not None:
            self.service.ping_dead_man_switch(switch)
        self.metrics = Metrics(
            self.service, self.answered, Rates(Limits()), WebQuotas(self.service, Limits())
        )

    async def __aenter__(self) -> Self:
        await self.service.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.service.stop()

    async def hear(self, *signals: Signal) -> None:
        """Signals come in, and are judged and kept."""
        async with asyncio.timeout(WAIT_MAX):
            assert await self.service.hub.store_reports(signals) is not None

    async def pass_time(self, seconds: float, *beating: str) -> None:
        """Half a second at a time; these agents beat all the while."""
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            self.service.hub.run_due()
            await self.hear(*(BeatReceived(agent_id, None, "one") for agent_id in beating))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_MAX):
            while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
                await asyncio.sleep(0.005)

    def scrape(self) -> Scraped:
        """Every series as it is now: the census of a second ago does not count."""
        self.now += 1.0
        text, _ = self.metrics.text()
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text.decode())
            for sample in family.samples
        }


def value(scraped: Scraped, name: str, **labels: str) -> float:
    """One series of a scrape."""
    return scraped[name, tuple(sorted(labels.items()))]
