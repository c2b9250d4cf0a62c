"""Memory: what the hub knows of workers, under the keys of Task Sentinel's protocol; see `views/worker_keys.py`.

The hub is a memory that can be read: everything is written by beats and claims.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from fnmatch import translate
from time import thread_time
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.hub.samples import tasks_of
from lifesigns.hub.shares import TURN_FOR
from lifesigns.ports.memory import (
    HEARTBEAT,
    LOCK,
    RECOVERIES,
    SAMPLES,
    TASKS,
    WORKERS,
    heartbeat_key,
    lock_key,
    recovery_key,
    sample_key,
)
from lifesigns.views.builders import worker_keys
from lifesigns.views.builders.claims import TYPES, recovered_claims
from lifesigns.views.claims import RecoveredClaim
from lifesigns.views.worker_keys import MemoryKeys, MemoryValue
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import READERS, Request, Route

SERIES_FOR: Final = 30 * 86400.0
READ: Final = 1000
"""Events read at once."""
WORKERS_MAX: Final = 200
"""Workers whose series are read for one list: each is a query."""
WILD: Final = "*?["


class KeysQuery(msgspec.Struct):
    """Which keys."""

    pattern: Annotated[str, Meta(max_length=1024, examples=["task-sentinel/workers/*/heartbeat"])] = "*"
    """As of file names: `*`, `?`, `[abc]`."""
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


class ValueQuery(msgspec.Struct):
    """Which key."""

    key: Annotated[str, Meta(min_length=1, max_length=2048)]


async def keys(request: Request) -> Answer:
    """The keys of workers' heartbeats, of their series, of locks and of recoveries that fit a pattern."""
    query: KeysQuery = request.query
    found: list[str] = []
    workers = _workers_with_series(request, query.pattern)
    left_out = max(0, len(workers) - WORKERS_MAX)
    # `fnmatch` itself would keep 32,768 patterns of strangers.
    fits = re.compile(translate(query.pattern)).match
    turn_ends = thread_time() + TURN_FOR
    async for key in _keys(request, query.pattern, workers[:WORKERS_MAX]):
        # By the clock: how long a pattern takes depends on what strangers wrote.
        if thread_time() >= turn_ends:
            await asyncio.sleep(0)
            turn_ends = thread_time() + TURN_FOR
        if fits(key):
            found.append(key)
            if len(found) > query.limit:
                break
    complete = len(found) <= query.limit and not left_out
    return answer(MemoryKeys(tuple(sorted(found[: query.limit])), complete, left_out))


async def value(request: Request) -> Answer:
    """What is known under a key."""
    key: str = request.query.key
    found = await _value(request, key)
    if found is None:
        raise Problem(404, f"there is no {key!r}")
    return answer(MemoryValue(key, found))


# --- parts --------------------------------------------------------------------------------------------


def _workers_with_series(request: Request, pattern: str) -> list[str]:
    """Those whose series may have keys that fit."""
    begins = _literal(pattern)
    agents = request.service.engine.beliefs.agents
    return [agent_id for agent_id in sorted(agents) if _may_fit(sample_key(agent_id, ""), begins)]


async def _keys(request: Request, pattern: str, workers: Sequence[str]) -> AsyncIterator[str]:
    beliefs, store = request.service.engine.beliefs, request.service.store
    begins = _literal(pattern)
    for agent_id in sorted(beliefs.agents):
        if _may_fit(key := heartbeat_key(agent_id), begins):
            yield key
    for agent_id in workers:
        for one in await store.samples(agent_id, request.now - SERIES_FOR, request.now):
            yield sample_key(agent_id, round(one.at * 1000))
    for task_id in sorted(beliefs.claims):
        if _may_fit(key := lock_key(task_id), begins):
            yield key
    if _may_fit(RECOVERIES, begins):
        for claim in await _recovered(request):
            yield recovery_key(worker_keys.recovered_at(claim))


def _literal(pattern: str) -> str:
    """How every key that fits begins."""
    return pattern[
        : min((place for sign in WILD if (place := pattern.find(sign)) >= 0), default=len(pattern))
    ]


def _may_fit(key: str, begins: str) -> bool:
    return key.startswith(begins) or begins.startswith(key)


async def _value(request: Request, key: str) -> worker_keys.Value | None:
    service = request.service
    if key.startswith(WORKERS) and key.endswith(HEARTBEAT):
        agent = service.engine.agent(key[len(WORKERS) : -len(HEARTBEAT)])
        received = None if agent is None else service.hub.last_beat(agent.id)
        if agent is None or received is None:
            return None
        return worker_keys.heartbeat(agent, received.beat, received.at, tasks_of(agent, received.beat))
    if key.startswith(TASKS) and key.endswith(LOCK):
        claim = service.engine.beliefs.claims.get(key[len(TASKS) : -len(LOCK)])
        return None if claim is None else worker_keys.lock(claim)
    named, _, at = key.rpartition("/")
    if not at.isdecimal() or len(at) > 15:
        return None
    if key.startswith(SAMPLES):
        moment = int(at) / 1000
        found = await service.store.samples(named[len(SAMPLES) :], moment, moment + 1.0)
        return worker_keys.sample(found[0]) if found else None
    if f"{named}/" == RECOVERIES:
        claims = [one for one in await _recovered(request) if worker_keys.recovered_at(one) == int(at)]
        return worker_keys.recovery(claims[0]) if claims else None
    return None


async def _recovered(request: Request) -> list[RecoveredClaim]:
    """The newest recoveries."""
    events = await request.service.store.events(types=TYPES, newest_first=True, limit=READ)
    return list(recovered_claims(events))


CALLS: Final = (
    Route("GET", "/api/v1/memory/keys", READERS, keys, MemoryKeys, query=KeysQuery),
    Route(
        "GET",
        "/api/v1/memory/value",
        READERS,
        value,
        MemoryValue,
        query=ValueQuery,
        also={404: "nothing is known under this key"},
    ),
)
