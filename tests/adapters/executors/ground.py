"""Orders to be carried out, and a whole hub with executors, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.assembly.executors import assign_executors, contents_in
from lifesigns.config.document import Document
from lifesigns.config.load import assemble, defaults
from lifesigns.config.values import Config
from lifesigns.core.effects import (
    CleanUp,
    Escalate,
    Finding,
    Kind,
    Order,
    Respawn,
    SendNudge,
    Severity,
    VerifyCheckpoint,
)
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.hub.principals import Role
from lifesigns.hub.service import Service
from lifesigns.ports import Store
from lifesigns.web import checkpoints, recovery
from lifesigns.web.app import Web
from lifesigns.web.server import listen, serving
from lifesigns.web.table import CALLS

AT = 1_800_000_000.0
WAIT_MAX = 30.0
"""A bound, not a wait: the machine may be busy."""

FINDING = Finding(Kind.FREEZE, AT - 60, Severity.STUCK, "Its loop stands still.", {"lag_ms": 60000.0}, True)


T = TypeVar("T", bound=Order)


def _order(kind: type[T], order_id: str, values: Mapping[str, Any], changes: Mapping[str, Any]) -> T:
    usual: dict[str, Any] = {"at": AT, "epoch": 1, "agent_id": "coder-7", "incarnation": "one"}
    return kind(**{**usual, "order_id": order_id, **values, **changes})


def respawn(agent_id: str = "coder-7", **changes: Any) -> Respawn:
    values = {
        "agent_id": agent_id,
        "task_id": "t-19",
        "checkpoint_id": "cp-3",
        "new_incarnation": f"{agent_id}~1-4",
        "attempt": 1,
        "handoff": "You continue the work of a previous life.\nIt's stopped; $(whoami)",
    }
    return _order(Respawn, "1-5", values, changes)


def nudge(text: str = "No checkpoint for 32 min.", **changes: Any) -> SendNudge:
    return _order(SendNudge, "1-6", {"attempt": 1, "text": text}, changes)


def escalate(**changes: Any) -> Escalate:
    values = {
        "epoch": 2,
        "reason": "Its loop stands still.",
        "findings": (FINDING,),
        "checkpoint_id": "cp-3",
        "answer_by": AT + 900,
    }
    return _order(Escalate, "1-7", values, changes)


def verify(digest: str = "", **changes: Any) -> VerifyCheckpoint:
    values = {"task_id": "t-19", "checkpoint_id": "cp-3", "digest": digest}
    return _order(VerifyCheckpoint, "1-8", values, changes)


def cleanup(**changes: Any) -> CleanUp:
    values = {"task_id": "t-19", "checkpoint_id": "cp-3", "reason": "It's stopped; $(whoami)"}
    return _order(CleanUp, "1-9", values, changes)


def settings(**sections: Any) -> Config:
    """As `lifesigns.yaml` would have it."""
    return assemble(Document("lifesigns.yaml", sections, {}), {}, {})


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_MAX):
        while not holds():  # noqa: ASYNC110 -- what is waited for is told by nobody
            await asyncio.sleep(0.005)


@dataclass
class HandyHub:
    """A hub with executors, and an admin who asks it things."""

    service: Service
    url: str
    http: httpx2.AsyncClient

    async def say(self, *signals: dict[str, Any]) -> None:
        answer = await self.http.post("/api/v1/signals", json=list(signals))
        assert answer.json()["accepted"] == len(signals), answer.text

    async def beat(self, agent_id: str = "coder-7", incarnation: str = "one", **more: Any) -> None:
        body = {"agent_id": agent_id, "incarnation": incarnation, "task_id": "t-19", **more}
        assert (await self.http.post("/api/v1/beats", json=body)).status_code == 202

    async def save(self, checkpoint_id: str, content: bytes, **query: Any) -> httpx2.Response:
        said = {"agent_id": "coder-7", "incarnation": "one", **query}
        return await self.http.put(
            f"/api/v1/tasks/t-19/checkpoints/{checkpoint_id}", content=content, params=said
        )

    async def crash(self, agent_id: str = "coder-7", incarnation: str = "one") -> None:
        await self.say({"type": "exited", "agent_id": agent_id, "incarnation": incarnation, "status": 1})

    async def client_of(self, agents: str) -> httpx2.AsyncClient:
        """An agent's own."""
        made = await self.service.access.tokens.create(
            role=Role.AGENT, name="an agent", agents=agents, now=self.service.clock()
        )
        return httpx2.AsyncClient(
            base_url=self.url, headers={"authorization": f"Bearer {made.token}"}, trust_env=False
        )

    async def events(self, kind: str) -> list[dict[str, Any]]:
        found = (await self.http.get("/api/v1/events", params={"types": kind})).json()
        return [one["data"] for one in found["events"]]


@asynccontextmanager
async def handy_hub(
    state: Path,
    store: Store | None = None,
    policy: Policy | None = None,
    given: Config | None = None,
) -> AsyncIterator[HandyHub]:
    """A hub over this state folder, with executors as given."""
    service = Service(
        store or MemoryStore(),
        policies=PolicyBook(policy or profile("balanced")),
        fleet=FleetPolicy(acted_share=1.0, brake_count=99),
        contents=contents_in(state),
    )
    with listen("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assign_executors(service, given or defaults(), {"SECRET": "whsec"}, state, url)
        await service.start()
        try:
            admin = await service.access.tokens.create(role=Role.ADMIN, name="eva", now=service.clock())
            web = Web(service, calls=(*CALLS, *checkpoints.CALLS, *recovery.CALLS))
            headers = {"authorization": f"Bearer {admin.token}"}
            async with (
                serving(web, listener),
                httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False) as http,
            ):
                yield HandyHub(service, url, http)
        finally:
            await service.stop()
