"""A storm at a whole hub: real beats over HTTP that stop, real channels, and nothing done beyond the brake."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from lifesigns.adapters.channels.slack import SlackWebhook
from lifesigns.adapters.channels.webhook import WebhookChannel
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import profile
from lifesigns.hub.alerting.rules import Pacing, Rate, Rules
from lifesigns.ports import Event
from tests.adapters.channels.peers import Peer, Reply, Request, Slack
from tests.web.hub import RunningHub, running_hub

HOSTS = {"ws-1": 200, "ws-2": 200, "ws-3": 100}
EXITS = 10
"""On every host so many crash before the others fall silent."""
WELL = 500
GAP = 0.25
RATE = Rate(per_minute=60, gap=GAP)
PACING = Pacing(hold_for=0.3, update_every=0.5, repeat_every=0)
FAST = profile("swift").with_changes({"ladder": {"hesitate_for": 3.0}})
SICK = [f"{host}.{n}" for host, count in HOSTS.items() for n in range(count)]
ACTS = ("NUDGE_SENT", "ESCALATION_TRIGGERED", "RECOVERY_INITIATED", "AGENT_TERMINATED", "INTERVENTION")


class Fleet:
    """Agents that beat by HTTP, a batch for all of them, until they stop."""

    def __init__(self, hub: RunningHub) -> None:
        self._hub = hub
        self.beating = {**dict.fromkeys(SICK, "i-1"), **{f"well.{n}": "i-1" for n in range(WELL)}}

    async def beat(self) -> None:
        beats = [
            {"agent_id": agent, "host": agent.partition(".")[0], "incarnation": life}
            for agent, life in self.beating.items()
        ]
        answer = await self._hub.post("/api/v1/beats", beats)
        assert answer.status_code == 202

    async def beat_on(self) -> None:
        while True:
            await self.beat()
            await asyncio.sleep(0.5)

    async def crash(self, agents: Sequence[str]) -> None:
        for agent in agents:
            del self.beating[agent]
        words = [{"type": "exited", "agent_id": agent, "status": 137} for agent in agents]
        assert (await self._hub.post("/api/v1/signals", words)).status_code == 202


class Ops:
    """Where people are told: it remembers when, and whether anybody came sooner than the rate allows."""

    def __init__(self, check: Callable[[Request], Reply]) -> None:
        self._check = check
        self.came_at: list[float] = []

    def take(self, request: Request) -> Reply:
        self.came_at.append(time.monotonic())
        return self._check(request)

    def kept_its_rate(self) -> bool:
        """An attempt counts from its end, so those who come too soon come much too soon."""
        soon = [b - a for a, b in pairwise(self.came_at) if b - a < GAP * 0.5]
        return not soon and len(self.came_at) <= RATE.per_minute


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.01)


async def test_five_hundred_agents_that_fail_at_once_are_one_alert_a_host_and_nobody_is_touched(
    tmp_path: Path,
) -> None:
    slack = Slack()
    chat, hook = Ops(slack.webhook), Ops(lambda _: Reply())
    async with Peer(chat.take) as slack_peer, Peer(hook.take) as hook_peer:
        async with running_hub(
            SqliteStore(tmp_path / "hub.db"),
            policy=FAST,
            fleet=FleetPolicy(canary_every=0),
            rules=Rules({"slack": RATE, "hook": RATE}, pacing=PACING),
            channels={"slack": SlackWebhook(slack_peer.url), "hook": WebhookChannel(hook_peer.url)},
        ) as hub:
            fleet = Fleet(hub)
            await fleet.beat()
            beating = asyncio.create_task(fleet.beat_on())
            try:
                await break_out(fleet)
                await found(hub)
                await held_back(hub)
                await until(lambda: sum(last_counts(hook_peer.requests).values()) == len(SICK))
                acts = await hub.service.store.events(types=(*ACTS, "GROUP_BRAKED"), limit=100_000)
                fleet.beating |= dict.fromkeys(SICK, "i-2")
                await until(lambda: all(health(hub, agent) is Health.HEALTHY for agent in SICK))
                await until(
                    lambda: not any(o.alert_groups for o in hub.service.notifier.alerting.queues.values())
                )
            finally:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)
        check_acts(acts)
        told = [json.loads(request.body) for request in hook_peer.requests]
        check_notices(told)
        assert len(slack_peer.requests) <= len(told) + len(HOSTS), "the other channel is told no more"
    assert chat.kept_its_rate()
    assert hook.kept_its_rate()


async def break_out(fleet: Fleet) -> None:
    """A few on every host crash; the others fall silent one after the other within two seconds."""
    crashed = [agent for agent in SICK if int(agent.partition(".")[2]) < EXITS]
    await fleet.crash(crashed)
    silent = sorted(set(SICK) - set(crashed), key=lambda agent: int(agent.partition(".")[2]))
    for n in range(0, len(silent), len(silent) // 20):
        for agent in silent[n : n + len(silent) // 20]:
            del fleet.beating[agent]
        await asyncio.sleep(0.1)


async def found(hub: RunningHub) -> None:
    await until(lambda: all(health(hub, agent) is Health.DISCONNECTED for agent in SICK))
    braked = {name for name, group in hub.service.engine.beliefs.fleet.groups.items() if group.braked}
    assert braked == {f"host {host}" for host in HOSTS}


async def held_back(hub: RunningHub) -> None:
    """Until everybody who fell silent would have been asked about, but for the brake."""
    cases = [hub.service.engine.agent(agent) for agent in SICK]
    latest = max(agent.since for agent in cases if agent is not None)
    await until(lambda: hub.service.clock() > latest + FAST.ladder.hesitate_for + 0.5)


def check_acts(events: Sequence[Event]) -> None:
    """Of the automatic acts none is about somebody who is well, and none comes after the brake of its host."""
    braked_at = {json.loads(e.data)["group"]: e.id for e in events if e.type == "GROUP_BRAKED"}
    ordered = [e for e in events if e.type != "INTERVENTION" or json.loads(e.data)["stage"] == "ordered"]
    acted = [e for e in ordered if e.type != "GROUP_BRAKED"]
    assert {e.agent_id.partition(".")[0] for e in acted} <= set(HOSTS)
    assert all(e.id < braked_at[f"host {e.agent_id.partition('.')[0]}"] for e in acted)
    kinds = Counter(e.type for e in acted)
    assert kinds["RECOVERY_INITIATED"] <= FleetPolicy().respawns_per_minute
    assert not {"NUDGE_SENT", "ESCALATION_TRIGGERED", "AGENT_TERMINATED"} & set(kinds)


def check_notices(told: list[dict[str, Any]]) -> None:
    """One alert a host, opened and resolved once, and not a word for each of five hundred."""
    unwell = [one for one in told if one["kind"] == "stuck_agent"]
    groups = {f"stuck_agent@host {host}" for host in HOSTS}
    assert {one["key"] for one in unwell} == groups
    stages = Counter((one["key"], one["stage"]) for one in unwell)
    assert all(stages[key, "opened"] == stages[key, "resolved"] == 1 for key in groups)
    brakes = [one for one in told if one["kind"] == "group_braked"]
    assert {one["stage"] for one in brakes} >= {"opened", "resolved"}
    assert {one["kind"] for one in told} <= {"stuck_agent", "group_braked", "missed"}
    assert len(told) <= 40


def last_counts(requests: Sequence[Request]) -> dict[str, int]:
    """What the notices said last: how many are in each group."""
    told = (json.loads(request.body) for request in requests)
    return {one["key"]: one["count"] for one in told if one["kind"] == "stuck_agent"}


def health(hub: RunningHub, agent_id: str) -> Health | None:
    agent = hub.service.engine.agent(agent_id)
    return None if agent is None else agent.health
