"""Tasks: who works on them; claims, with a lease and a fencing token; checkpoints.

Whether a claim is granted the engine decides. The answer is what it believes when the claim is kept.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.core.claims import Claim
from lifesigns.core.signals import CheckpointSaved, TaskClaimed, TaskReleased
from lifesigns.views import CheckpointList, CheckpointView, ClaimGranted, TaskList, TaskView, moment
from lifesigns.views.tasks import checkpoint_view, checkpoints, claim_granted, task_ids, tasks_view
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.calls import READERS, SPEAKERS, Asked, Call
from lifesigns.web.ids import AgentId, Name
from lifesigns.web.paging import Paged, page
from lifesigns.web.voices import check_voice

Text = Annotated[str, Meta(max_length=1024)]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Claimant(msgspec.Struct, kw_only=True):
    """Who wants to hold the task."""

    agent_id: AgentId
    incarnation: Text | None = None


class Release(Claimant, kw_only=True):
    """Who gives the task back, with the token its claim was granted with."""

    token: Number


class NewCheckpoint(Claimant, kw_only=True):
    """What was saved, and what it builds on."""

    checkpoint_id: Annotated[Name, Meta(examples=["cp-3"])]
    parent_id: Name | None = None
    digest: Text = ""
    size: Number = 0
    token: Number | None = None
    """That of the claim under which it was saved, if there is one: an old one is refused."""


async def tasks(asked: Asked) -> Answer:
    """Every task that an agent works on, holds or is expected to finish."""
    engine = asked.service.engine
    found, cursor = page(task_ids(engine), asked.query)
    return answer(TaskList(tasks_view(engine, found), cursor))


async def task(asked: Asked) -> Answer:
    """One task: who works on it, who holds it, by when it should be done."""
    return answer(_known(asked))


async def claim(asked: Asked) -> Answer:
    """Hold a task: nobody else gets it while your beats come. Claiming it again is the same claim."""
    task_id, said, engine = asked.path["task_id"], asked.body, asked.service.engine
    check_voice(asked, said.agent_id)
    await asked.service.keep(
        [TaskClaimed(agent_id=said.agent_id, incarnation=said.incarnation, task_id=task_id)]
    )
    claim = engine.beliefs.claims.get(task_id)
    if claim is None:
        raise Problem(
            409, f"the claim was refused: {said.agent_id!r} has ended, or holds too many tasks already"
        )
    if claim.agent_id != said.agent_id or said.incarnation not in (None, claim.incarnation):
        raise _held(claim)
    return answer(claim_granted(engine, claim))


async def release(asked: Asked) -> Answer:
    """Give a task back before it is done: it is free to be claimed."""
    task_id, said = asked.path["task_id"], asked.body
    check_voice(asked, said.agent_id)
    claims = asked.service.engine.beliefs.claims
    claim = claims.get(task_id)
    if claim is None:
        raise Problem(404, f"nobody holds {task_id!r}")
    _check_claim(claim, said.agent_id, said.token)
    released = TaskReleased(
        agent_id=said.agent_id, incarnation=said.incarnation, task_id=task_id, token=said.token
    )
    await asked.service.keep([released])
    if claims.get(task_id) is claim:
        raise Problem(409, f"the release was refused: it came from an earlier life of {said.agent_id!r}")
    return Answer(status=204)


async def save(asked: Asked) -> Answer:
    """A checkpoint of the task was saved. It counts as progress, and is where a respawn would begin."""
    said = asked.body
    check_may_save(asked, said.agent_id, said.token)
    saved = CheckpointSaved(
        agent_id=said.agent_id,
        incarnation=said.incarnation,
        task_id=asked.path["task_id"],
        checkpoint_id=said.checkpoint_id,
        parent_id=said.parent_id,
        digest=said.digest,
        size=said.size,
    )
    return await recorded(asked, saved)


def check_may_save(asked: Asked, agent_id: str, token: int | None) -> None:
    """Raises a `Problem` if this visitor may not save something of the task in the name of this agent."""
    check_voice(asked, agent_id)
    claim = asked.service.engine.beliefs.claims.get(asked.path["task_id"])
    if claim is not None:
        _check_claim(claim, agent_id, token)


async def recorded(asked: Asked, saved: CheckpointSaved) -> Answer:
    """The answer to a checkpoint, when it is kept that there is one."""
    await asked.service.keep([saved])
    lineage = asked.service.engine.beliefs.lineages.get(saved.agent_id)
    chain = lineage.chain if lineage is not None and lineage.task_id == saved.task_id else []
    for checkpoint in reversed(chain):
        if checkpoint.id == saved.checkpoint_id:
            return answer(checkpoint_view(saved.agent_id, checkpoint), 201)
    raise Problem(409, f"the checkpoint was refused: this life of {saved.agent_id!r} has ended")


async def list_checkpoints(asked: Asked) -> Answer:
    """What was saved of a task, oldest first."""
    found = checkpoints(asked.service.engine, asked.path["task_id"])
    if not found.checkpoints:
        _known(asked)
    return answer(found)


def _known(asked: Asked) -> TaskView:
    task_id = asked.path["task_id"]
    found = tasks_view(asked.service.engine, [task_id])
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
    Call("GET", "/api/v1/tasks", READERS, tasks, TaskList, query=Paged),
    Call("GET", _TASK, READERS, task, TaskView, also=_UNKNOWN),
    Call(
        "POST",
        f"{_TASK}/claim",
        SPEAKERS,
        claim,
        ClaimGranted,
        body=Claimant,
        also={409: "somebody else holds it: the detail says who"},
    ),
    Call(
        "POST",
        f"{_TASK}/release",
        SPEAKERS,
        release,
        body=Release,
        status=204,
        also={404: "nobody holds it", 409: "somebody else holds it, or the token is not its claim's"},
    ),
    Call(
        "POST",
        f"{_TASK}/checkpoints",
        SPEAKERS,
        save,
        CheckpointView,
        body=NewCheckpoint,
        status=201,
        also={409: "somebody else holds the task, or the token is not its claim's"},
    ),
    Call("GET", f"{_TASK}/checkpoints", READERS, list_checkpoints, CheckpointList, also=_UNKNOWN),
)
