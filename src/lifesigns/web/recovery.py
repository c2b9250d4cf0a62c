"""Recovery: continue a task in a new incarnation of its agent, and follow its progress."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.core.signals import RecoveryRequested
from lifesigns.views.builders.recovery import recovery_of
from lifesigns.views.recovery import RecoveryList
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.ids import AgentId
from lifesigns.web.routes import ACTORS, READERS, Request, Route


class RecoveryBody(msgspec.Struct):
    """The agent, if several work on the task, and why."""

    agent_id: AgentId | None = None
    reason: Annotated[str, Meta(max_length=2000)] = ""


async def recover(request: Request) -> Answer:
    """Respawn the agent of a task from its newest valid checkpoint: lifts limits, review and quarantine. A recovery in
    progress stays the same one. A living agent has to be terminated first."""
    task_id, engine = request.path["task_id"], request.service.engine
    agent = engine.agent(_whose(request))
    if agent is None:
        raise Problem(404, f"nobody has heard of an agent that works on {task_id!r}")
    if agent.alive:
        raise Problem(409, f"{agent.id!r} is {agent.health}: terminate it before its task is recovered")
    reason = request.body.reason if request.body is not None else ""
    wish = RecoveryRequested(agent_id=agent.id, by=request.principal.by, task_id=task_id, reason=reason)
    await request.service.http_receiver.store_reports([wish])
    return answer(recovery_of(engine, task_id), 202)


async def recovery(request: Request) -> Answer:
    """How far the recovery of a task has come."""
    found = recovery_of(request.service.engine, request.path["task_id"])
    if not found.recoveries and not any(_workers(request)):
        raise Problem(404, f"no agent works on {request.path['task_id']!r}, or did")
    return answer(found)


def _whose(request: Request) -> str:
    """The agent to recover; only one may be gone."""
    named: str | None = request.body.agent_id if request.body is not None else None
    workers = _workers(request)
    if named is not None:
        if named not in workers:
            raise Problem(
                404, f"is {named!r}, who has nothing to do with {request.path['task_id']!r}", field="agent_id"
            )
        return named
    if not workers:
        raise Problem(404, f"no agent works on {request.path['task_id']!r}, or did")
    engine = request.service.engine
    gone = [name for name in workers if (agent := engine.agent(name)) is not None and not agent.alive]
    if len(gone) > 1:
        raise Problem(409, f"is missing: several agents are gone, {', '.join(gone[:10])}", field="agent_id")
    return gone[0] if gone else workers[0]


def _workers(request: Request) -> list[str]:
    task_id, engine = request.path["task_id"], request.service.engine
    known = {agent.id: None for agent in engine.agents() if agent.task_id == task_id}
    known.update({one.agent_id: None for one in engine.beliefs.lineages.values() if one.task_id == task_id})
    return list(known)


_TASK: Final = "/api/v1/tasks/{task_id}"

CALLS: Final = (
    Route(
        "POST",
        f"{_TASK}/recover",
        ACTORS,
        recover,
        RecoveryList,
        body=RecoveryBody | None,
        status=202,
        also={404: "no agent works on it, or did", 409: "its agent is alive, or several are gone"},
    ),
    Route(
        "GET",
        f"{_TASK}/recovery",
        READERS,
        recovery,
        RecoveryList,
        also={404: "no agent works on it, or did"},
    ),
)
