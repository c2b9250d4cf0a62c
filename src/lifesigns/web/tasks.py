"""Tasks: which agents work on them; claims, with a lease and a fencing token; checkpoints.

The engine decides whether to grant a claim. The answer is what it believes when the claim is stored.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.core.claims import Claim
from lifesigns.core.quotas import Quota
from lifesigns.core.signals import CheckpointSaved, TaskClaimed, TaskReleased
from lifesigns.views import CheckpointList, CheckpointView, ClaimGranted, TaskList, TaskView, moment
from lifesigns.views.builders.tasks import checkpoint_view, checkpoints, claim_granted, task_ids, tasks_view
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.ids import AgentId, Name
from lifesigns.web.paging import PageQuery, page
from lifesigns.web.routes import READERS, SPEAKERS, Request, Route
from lifesigns.web.speaking_rights import check_may_speak, check_owner

Text = Annotated[str, Meta(max_length=1024)]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class ClaimBody(msgspec.Struct, kw_only=True):
    """Who wants to hold the task."""

    agent_id: AgentId
    incarnation: Text | None = None


class ReleaseBody(ClaimBody, kw_only=True):
    """Who gives the task back, with the token its claim was granted with."""

    token: Number


class CheckpointBody(ClaimBody, kw_only=True):
    """What was saved, and what it builds on."""

    checkpoint_id: Annotated[Name, Meta(examples=["cp-3"])]
    parent_id: Name | None = None
    digest: Text = ""
    size: Number = 0
    token: Number | None = None
    """The fencing token of the claim it was saved under, if there is one: an old one is refused."""


async def tasks(request: Request) -> Answer:
    """Every task that an agent works on, holds or is expected to finish."""
    engine = request.service.engine
    found, cursor = page(task_ids(engine), request.query)
    return answer(TaskList(tasks_view(engine, found), cursor))


async def task(request: Request) -> Answer:
    """One task: who works on it, who holds it, by when it should be done."""
    return answer(_known(request))


async def claim(request: Request) -> Answer:
    """Hold a task: no other agent gets it while your beats come. Claiming it again is the same claim."""
    task_id, said, engine = request.path["task_id"], request.body, request.service.engine
    wish = TaskClaimed(
        agent_id=said.agent_id,
        incarnation=said.incarnation,
        task_id=task_id,
        source=request.principal.token_id,
    )
    if task_id not in engine.beliefs.claims:  # The engine answers for a held one, and records the attempt.
        check_owner(request, wish)
    check_may_speak(request, said.agent_id)
    await request.service.http_receiver.store_reports([wish])
    claim = engine.beliefs.claims.get(task_id)
    if claim is None:
        request.site.quotas.check(Quota.CLAIMS, said.agent_id)
        raise Problem(
            409, f"the claim was refused: {said.agent_id!r} has ended, or holds too many tasks already"
        )
    if claim.agent_id != said.agent_id or said.incarnation not in (None, claim.incarnation):
        raise _held(claim)
    return answer(claim_granted(engine, claim))


async def release(request: Request) -> Answer:
    """Give a task back before it is done: it is free to be claimed."""
    task_id, said = request.path["task_id"], request.body
    check_may_speak(request, said.agent_id)
    claims = request.service.engine.beliefs.claims
    claim = claims.get(task_id)
    if claim is None:
        raise Problem(404, f"nobody holds {task_id!r}")
    _check_claim(claim, said.agent_id, said.token)
    released = TaskReleased(
        agent_id=said.agent_id, incarnation=said.incarnation, task_id=task_id, token=said.token
    )
    await request.service.http_receiver.store_reports([released])
    if claims.get(task_id) is claim:
        raise Problem(409, f"the release was refused: it came from an earlier life of {said.agent_id!r}")
    return Answer(status=204)


async def save(request: Request) -> Answer:
    """A checkpoint of the task was saved. It counts as progress, and a respawn would begin there."""
    said = request.body
    saved = CheckpointSaved(
        agent_id=said.agent_id,
        incarnation=said.incarnation,
        task_id=request.path["task_id"],
        checkpoint_id=said.checkpoint_id,
        parent_id=said.parent_id,
        digest=said.digest,
        size=said.size,
        source=request.principal.token_id,
    )
    check_may_save(request, saved, said.token)
    return await recorded(request, saved)


def check_may_save(request: Request, saved: CheckpointSaved, token: int | None) -> None:
    """Raises a `Problem` if this principal may not save that."""
    check_may_speak(request, saved.agent_id)
    claim = request.service.engine.beliefs.claims.get(request.path["task_id"])
    if claim is not None:
        _check_claim(claim, saved.agent_id, token)
    check_owner(request, saved)


async def recorded(request: Request, saved: CheckpointSaved) -> Answer:
    """The answer to a checkpoint, when it is recorded."""
    await request.service.http_receiver.store_reports([saved])
    lineage = request.service.engine.beliefs.lineages.get(saved.agent_id)
    chain = lineage.chain if lineage is not None and lineage.task_id == saved.task_id else []
    for checkpoint in reversed(chain):
        if checkpoint.id == saved.checkpoint_id:
            return answer(checkpoint_view(saved.agent_id, checkpoint), 201)
    raise Problem(409, f"the checkpoint was refused: this life of {saved.agent_id!r} has ended")


async def list_checkpoints(request: Request) -> Answer:
    """The checkpoints of a task, oldest first."""
    found = checkpoints(request.service.engine, request.path["task_id"])
    if not found.checkpoints:
        _known(request)
    return answer(found)


def _known(request: Request) -> TaskView:
    task_id = request.path["task_id"]
    found = tasks_view(request.service.engine, [task_id])
    if not found:
        raise Problem(404, f"no agent works on {task_id!r}, holds it or is expected to finish it")
    return found[0]


def _check_claim(claim: Claim, agent_id: str, token: int | None) -> None:
    if claim.agent_id != agent_id:
        raise _held(claim)
    if token not in (None, claim.token):
        raise Problem(409, f"is {token}, but the claim on {claim.task_id!r} has another", field="token")


def _held(claim: Claim) -> Problem:
    life = f" (incarnation {claim.incarnation})" if claim.incarnation else ""
    return Problem(
        409, f"{claim.task_id!r} is held by {claim.agent_id!r}{life} since {moment(claim.claimed_at)}"
    )


_TASK: Final = "/api/v1/tasks/{task_id}"
_UNKNOWN: Final = {404: "nobody has anything to do with this task"}

CALLS: Final = (
    Route("GET", "/api/v1/tasks", READERS, tasks, TaskList, query=PageQuery),
    Route("GET", _TASK, READERS, task, TaskView, also=_UNKNOWN),
    Route(
        "POST",
        f"{_TASK}/claim",
        SPEAKERS,
        claim,
        ClaimGranted,
        body=ClaimBody,
        also={
            409: "somebody else holds it: the detail says who",
            429: "the token of the agent holds too many tasks",
        },
    ),
    Route(
        "POST",
        f"{_TASK}/release",
        SPEAKERS,
        release,
        body=ReleaseBody,
        status=204,
        also={404: "nobody holds it", 409: "somebody else holds it, or the token is not its claim's"},
    ),
    Route(
        "POST",
        f"{_TASK}/checkpoints",
        SPEAKERS,
        save,
        CheckpointView,
        body=CheckpointBody,
        status=201,
        also={409: "somebody else holds the task, or the token is not its claim's"},
    ),
    Route("GET", f"{_TASK}/checkpoints", READERS, list_checkpoints, CheckpointList, also=_UNKNOWN),
)
