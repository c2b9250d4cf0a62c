"""A healthy agent that shares its token with others that flood the hub: it is told to wait as they are, is not heard for long, and
is neither convicted nor ended for that. Who is silent beside it is."""

from __future__ import annotations

import asyncio

import httpx2

from lifesigns.config.values import Limits
from lifesigns.core.effects import SendPing
from lifesigns.core.policy import FleetPolicy
from lifesigns.hub.principals import Role
from tests.web.hub import RunningHub, running_hub

FLOOD = 20
"""Requests a second; the token may five."""
ROUNDS, EVERY = 6, 3.0
"""So often and every so many seconds: many times as long as an agent of this profile may be silent."""
FREE = FleetPolicy(canary_every=0, acted_share=1.0)


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    async def run(self, hub: RunningHub, seconds: float) -> None:
        """Let the hub look as often as it would."""
        for _ in range(int(seconds * 4)):
            self.now += 0.25
            hub.service.hub.run_due()
            await asyncio.sleep(0)


async def beat(client: httpx2.AsyncClient, *names: str) -> list[int]:
    asked = (client.post("/api/v1/beats", json={"agent_id": name}, timeout=30) for name in names)
    return [answer.status_code for answer in await asyncio.gather(*asked)]


async def test_a_healthy_agent_is_not_ended_because_others_use_up_its_tokens_limit() -> None:
    clock = Clock()
    async with running_hub(
        policy="swift", limits=Limits(requests_per_second=5), clock=clock, fleet=FREE
    ) as hub:
        fleet, other = [await hub.token_for(Role.AGENT, f"{name}-*") for name in ("fleet", "other")]
        agents = hub.service.engine.beliefs.agents
        async with hub.client(fleet) as throttled, hub.client(other) as free:
            for _ in range(4):
                assert await beat(throttled, "fleet-good") == [202]
                assert await beat(free, "other-silent") == [202]
                await clock.run(hub, 1.0)
            heard_at = agents["fleet-good"].heard_at
            for _ in range(ROUNDS):
                assert 429 in await beat(throttled, *["fleet-wild"] * FLOOD)
                assert await beat(throttled, "fleet-good") == [429]
                assert await beat(free, "other-good") == [202]
                await clock.run(hub, EVERY)
            assert agents["fleet-good"].heard_at == heard_at, "it was not heard all the time"
            assert agents["fleet-good"].health == "healthy"
            assert agents["other-silent"].health == "disconnected"
            orders = [entry.order for entry in hub.service.hub.ledger.of("fleet-good")]
            assert all(isinstance(order, SendPing) for order in orders), orders

            assert await beat(throttled, "fleet-good") == [202]
            await clock.run(hub, 2 * EVERY)
            assert await beat(free, "other-good") == [202]
            await clock.run(hub, 2 * EVERY)
            assert agents["fleet-good"].health == "disconnected", "nobody floods any more: that is silence"
