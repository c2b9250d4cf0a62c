"""Audit: who did what, and the proof that the record is unchanged."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.views import AuditConsistency, AuditList, AuditProof
from lifesigns.views.builders.audit import audit_entry
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.ids import AgentId
from lifesigns.web.routes import READERS, Request, Route

Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class AuditQuery(msgspec.Struct):
    """Which entries."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    before: Size | None = None
    """From the answer before: older ones."""
    agent: AgentId | None = None
    who: Annotated[str, Meta(max_length=300)] | None = None
    """As in an entry."""


class ConsistencyQuery(msgspec.Struct, rename={"old": "from"}):
    """From which log."""

    old: Size
    """The size of an older checkpoint."""


async def audit(request: Request) -> Answer:
    """Who did what, the newest first. Interventions, recoveries, claims, brakes, alerts, tokens and sessions are in it, each with
    its author."""
    query = request.query
    found = await request.service.store.audit_records(
        before=query.before,
        agent_id=query.agent,
        who=query.who,
        newest_first=True,
        limit=query.limit + 1,
    )
    entries = tuple(map(audit_entry, found[: query.limit]))
    return answer(AuditList(entries, entries[-1].n if len(found) > query.limit else None))


async def checkpoint(request: Request) -> Answer:
    """The newest checkpoint of the log: how many entries it has and the root of their tree, signed by the hub. Store it
    elsewhere: with it the hub cannot change its log unnoticed."""
    _, note = _newest(request)
    return Answer(note.encode(), content_type=b"text/plain; charset=utf-8")


async def proof(request: Request) -> Answer:
    """Prove that an entry is in the log of the newest checkpoint: the hashes that lead from it to the root."""
    size, note = _newest(request)
    n = _number(request.path["n"])
    found = await request.service.store.audit_records(after=n - 1, before=n + 1)
    if not found:
        raise Problem(404, f"there is no entry {n}")
    if n >= size:
        raise _later(f"entry {n} is younger than the newest checkpoint, which has {size} entries")
    (record,) = found
    entry = None if record.entry is None else record.entry.decode("utf-8", "replace")
    hashes = await request.service.hub.audit.inclusion(n, size)
    return answer(AuditProof(n, entry, record.leaf.hex(), size, tuple(one.hex() for one in hashes), note))


async def consistency(request: Request) -> Answer:
    """Prove that the log of the newest checkpoint extends that of an older one."""
    size, note = _newest(request)
    old = request.query.old
    if old > size:
        raise _later(f"the newest checkpoint has {size} entries, and {old} were asked for", field="from")
    hashes = await request.service.hub.audit.consistency(old, size)
    return answer(AuditConsistency(old, size, tuple(one.hex() for one in hashes), note))


def _newest(request: Request) -> tuple[int, str]:
    """The newest checkpoint: how many entries, and its text."""
    log = request.service.hub.audit
    if log.trouble:
        raise Problem(409, f"the audit log is not what was sealed: {log.trouble}; see lifesigns audit verify")
    if log.newest is None or not log.proves:
        raise Problem(404, "there is no checkpoint of the audit log yet")
    return log.newest.size, log.newest.note


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise Problem(400, f"{text[:40]!r} is no number of an entry", field="n")
    return int(text)


def _later(detail: str, field: str | None = None) -> Problem:
    return Problem(409, f"{detail}; there is a new one every minute if the log has grown", field=field)


_NONE_YET: Final = {404: "there is none yet", 409: "it is too new, or the log was found broken"}

CALLS: Final = (
    Route("GET", "/api/v1/audit", READERS, audit, AuditList, query=AuditQuery),
    Route(
        "GET",
        "/api/v1/audit/checkpoint",
        READERS,
        checkpoint,
        str,
        content_types=("text/plain",),
        also=_NONE_YET,
    ),
    Route("GET", "/api/v1/audit/proof/{n}", READERS, proof, AuditProof, also=_NONE_YET),
    Route(
        "GET",
        "/api/v1/audit/consistency",
        READERS,
        consistency,
        AuditConsistency,
        query=ConsistencyQuery,
        also=_NONE_YET,
    ),
)
