"""Contents of checkpoints: the hub stores them, and returns them to the agent that continues.

A checkpoint counts when its content is on the disk: the answer to a `PUT` comes after that. Its digest then begins with
`hub:sha256:`, and the hub reads it back and compares it before a later incarnation continues from it.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from lifesigns.core.signals import CheckpointSaved
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.ownership import may_read
from lifesigns.ports import TooLarge
from lifesigns.views import CheckpointView
from lifesigns.views.builders.tasks import checkpoints
from lifesigns.web.answers import Answer, Problem
from lifesigns.web.ids import AgentId, Name
from lifesigns.web.routes import EVERYBODY, SPEAKERS, Request, Route
from lifesigns.web.tasks import check_may_save, recorded

Text = Annotated[str, Meta(max_length=1024)]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class UploadQuery(msgspec.Struct):
    """Who saved it, and what it builds on."""

    agent_id: AgentId
    incarnation: Text | None = None
    parent: Name | None = None
    """The checkpoint it builds on."""
    digest: Text = ""
    """The SHA-256 of the content, in hexadecimal, if it is to be compared."""
    token: Number | None = None
    """The fencing token of the claim it was saved under, if there is one: an old one is refused."""


async def keep(request: Request) -> Answer:
    """Save a checkpoint with its content, the body as it is. It counts as progress when it is on the disk, and a
    respawn would begin there. The same request again is the same checkpoint; another content under the same name is
    refused."""
    task_id, checkpoint_id, said = request.path["task_id"], request.path["checkpoint_id"], request.query
    saved = CheckpointSaved(
        agent_id=said.agent_id,
        incarnation=said.incarnation,
        task_id=task_id,
        checkpoint_id=checkpoint_id,
        parent_id=said.parent,
        size=len(request.body),
        source=request.principal.token_id,
    )
    check_may_save(request, saved, said.token)
    if not request.service.checkpoints.stores_contents:
        raise Problem(409, "this hub keeps no contents: it has no state folder")
    try:
        digest = await request.service.checkpoints.store(task_id, request.body, said.digest)
    except WireError as error:
        raise Problem(422, error.detail, field=error.field) from None
    except TooLarge as error:
        raise Problem(413, str(error)) from None
    except AdapterError as error:
        raise Problem(507, str(error)) from None
    known = _known(request)
    if known is not None and known.agent_id == said.agent_id and known.digest != digest:
        raise Problem(
            409, f"{checkpoint_id!r} of {task_id!r} is there already, and is something else: {known.digest}"
        )
    return await recorded(request, replace(saved, digest=digest))


async def content(request: Request) -> Answer:
    """The content of a checkpoint, compared with its digest before it is sent. For the agent that saved it, for the
    agent that holds the task now or was assigned it, and for those who may read everything."""
    known = _known(request)
    if known is None:
        # A client that may not see it must not learn whether it exists.
        raise Problem(404, f"{request.path['task_id']!r} has no checkpoint {request.path['checkpoint_id']!r}")
    found = await request.service.checkpoints.read(request.path["task_id"], known.digest)
    if found is None:
        raise Problem(404, f"the content of {known.checkpoint_id!r} was never here, is gone, or is broken")
    headers = (
        (b"etag", f'"{known.digest}"'.encode("ascii", "replace")),
        (b"content-disposition", b"attachment"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    )
    return Answer(found, content_type=b"application/octet-stream", headers=headers)


def _known(request: Request) -> CheckpointView | None:
    """The newest readable checkpoint of this name; each agent has its own chain."""
    engine, who, task_id = request.service.engine, request.principal, request.path["task_id"]
    named = request.path["checkpoint_id"]
    wanted = getattr(request.query, "agent_id", None)
    for one in reversed(checkpoints(engine, task_id).checkpoints):
        is_it = one.checkpoint_id == named and wanted in (None, one.agent_id)
        if is_it and may_read(engine.beliefs, who, task_id, one.agent_id):
            return one
    return None


_CHECKPOINT: Final = "/api/v1/tasks/{task_id}/checkpoints/{checkpoint_id}"

CALLS: Final = (
    Route(
        "PUT",
        _CHECKPOINT,
        SPEAKERS,
        keep,
        CheckpointView,
        query=UploadQuery,
        body=bytes,
        status=201,
        also={
            409: "somebody else holds the task, or there is another checkpoint of this name",
            422: "the content does not have the digest it should have",
            507: "there is no room for it on the hub's disk",
        },
    ),
    Route(
        "GET",
        _CHECKPOINT,
        EVERYBODY,
        content,
        str,
        content_types=("application/octet-stream",),
        also={404: "there is no such checkpoint, or its content is not here"},
    ),
)
