"""Acting on agents: a person's request goes onto the ladder, and every step of the ladder is recorded.

The answer comes when the request is stored. The agent's side carries it out, and the outcome is in the intervention's
stages. `Idempotency-Key` makes a repeated request the same intervention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Final
from uuid import uuid4

import msgspec
from msgspec import Meta

from lifesigns.core import signals
from lifesigns.core.effects import Intervention, Rung, Stage
from lifesigns.core.health import Health
from lifesigns.core.signals import Decision, PersonActed
from lifesigns.views import AgentHealth
from lifesigns.views.builders.agents import agent_health
from lifesigns.views.interventions import InterventionList, InterventionRecord
from lifesigns.web.agents import known
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.history_reader import Interventions, KeyReused, keyed
from lifesigns.web.routes import ACTORS, READERS, Request, Route

Reason = Annotated[str, Meta(max_length=2000)]


class NudgeBody(msgspec.Struct):
    """What to tell the agent; without a message it gets the facts."""

    message: Reason = ""


class ReasonBody(msgspec.Struct):
    """Why."""

    reason: Annotated[str, Meta(min_length=1, max_length=2000)]


class TerminationBody(ReasonBody):
    """Why, and whether to respawn it."""

    respawn: bool = False


class PauseBody(msgspec.Struct, rename={"pause_for": "for"}):
    """How long to leave the agent alone, in seconds; without it until it is resumed."""

    pause_for: Annotated[float, Meta(gt=0, le=365 * 86400.0)] | None = None


class DecisionBody(msgspec.Struct):
    """What is to be done about an escalated agent."""

    decision: Decision
    note: Reason = ""


class InterventionsQuery(msgspec.Struct, rename={"only_open": "open"}):
    """Which interventions."""

    agent: str | None = None
    rung: tuple[Rung, ...] = ()
    only_open: bool = False
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


async def nudge(request: Request) -> Answer:
    """Tell the agent something at its next turn boundary; by default the facts about itself."""
    message = request.body.message if request.body is not None else ""
    return await _on_the_ladder(request, signals.NudgeRequested(message=message, **_by(request)))


async def escalate(request: Request) -> Answer:
    """Ask the orchestrator or a person to decide about the agent."""
    return await _on_the_ladder(
        request, signals.EscalationRequested(reason=request.body.reason, **_by(request))
    )


async def terminate(request: Request) -> Answer:
    """Ask the agent to save, then end it. With `respawn` a new incarnation follows."""
    body = request.body
    act = signals.TerminationRequested(reason=body.reason, respawn=body.respawn, **_by(request))
    return await _on_the_ladder(request, act)


async def pause(request: Request) -> Answer:
    """Leave the agent alone for a while: the hub watches it, but does not intervene."""
    pause_for = request.body.pause_for if request.body is not None else None
    return await _about(request, signals.PauseRequested(pause_for=pause_for, **_by(request)))


async def resume(request: Request) -> Answer:
    """End a pause."""
    return await _about(request, signals.ResumeRequested(**_by(request)))


async def clear(request: Request) -> Answer:
    """Start afresh with this agent: lifts quarantine, open interventions and limits."""
    return await _about(request, signals.ClearRequested(**_by(request)))


async def interventions(request: Request) -> Answer:
    """Interventions, the newest first."""
    query, register = request.query, await request.site.history_reader.interventions()
    found = register.newest(query.limit, agent_id=query.agent, rung=query.rung, only_open=query.only_open)
    return answer(InterventionList(found))


async def intervention(request: Request) -> Answer:
    """One intervention with every stage it reached."""
    return answer(await _record(request, request.path["intervention_id"]))


async def decide(request: Request) -> Answer:
    """Decide about an escalated agent: more time, hand its task over, terminate it, or ignore."""
    record = await _record(request, request.path["intervention_id"])
    if record.rung is not Rung.ESCALATE:
        raise Problem(409, f"intervention {record.id} is a {record.rung}, nothing to decide about")
    agent = request.service.engine.agent(record.agent_id)
    case = agent.case if agent is not None else None
    made, before = request.body, _decision_on(record)
    if before == (made.decision, request.principal.by):
        return answer(record, 202)  # The same request again.
    if agent is None or case is None or case.order_id != record.id or before is not None:
        raise Problem(409, _no_longer_open(record))
    decided = signals.EscalationDecided(
        agent_id=agent.id, order_id=record.id, decision=made.decision, by=request.principal.by, note=made.note
    )
    await request.service.http_receiver.store_reports([decided])
    record = await _record(request, record.id)
    if (made.decision, request.principal.by) != _decision_on(record):
        raise Problem(409, _no_longer_open(record))  # Another person decided in the same moment.
    return answer(record, 202)


def _decision_on(record: InterventionRecord) -> tuple[str, str] | None:
    """The decision about an escalation, and who made it."""
    for stage in record.stages:
        if stage.stage is Stage.ANSWERED:
            return stage.text.partition(":")[0], stage.by
    return None


def _no_longer_open(record: InterventionRecord) -> str:
    decision = _decision_on(record)
    became = f"{decision[1] or 'somebody'} decided {decision[0]!r}" if decision else f"it is {record.stage}"
    return f"escalation {record.id} is no longer open: {became}"


Ordered = signals.NudgeRequested | signals.EscalationRequested | signals.TerminationRequested
Said = signals.PauseRequested | signals.ResumeRequested | signals.ClearRequested


async def _on_the_ladder(request: Request, act: Ordered) -> Answer:
    agent, rung = known(request), _RUNGS[type(act)]
    became = await asked_for(request, rung, act.key)
    if agent.id not in became:
        if agent.health is Health.TERMINATED:
            raise Problem(409, f"{agent.id!r} is terminated already")
        became = await ask(request, rung, act.key, [act])
    if agent.id not in became:
        raise Problem(409, f"{agent.id!r} ended before anything could be asked of it")
    return answer(became[agent.id], 202)


async def asked_for(request: Request, rung: Rung, key: str) -> Mapping[str, InterventionRecord]:
    """By agent, the interventions of this request so far: a repeated request is the same act. Another body under the
    same key is a mistake of the client, which the old answer would hide."""
    register: Interventions = await request.site.history_reader.interventions()
    try:
        return register.asked_for(rung, request.principal.by, key)
    except KeyReused:
        detail = "this Idempotency-Key was used for a request with another body; take a new key for a new act"
        raise Problem(422, detail, field="Idempotency-Key") from None


async def ask(
    request: Request, rung: Rung, key: str, acts: Sequence[signals.Signal]
) -> Mapping[str, InterventionRecord]:
    """Take in a request and return its interventions by agent when they are stored; or those of the same request, sent
    at the same time."""
    effects = await request.service.http_receiver.store_reports(acts)
    register: Interventions = await request.site.history_reader.interventions()
    became = {
        effect.agent_id: record
        for effect in effects
        if isinstance(effect, Intervention) and effect.key == key and (record := register.find(effect.id))
    }
    return became or await asked_for(request, rung, key)


async def _about(request: Request, act: Said) -> Answer:
    agent, service = known(request), request.service
    await service.http_receiver.store_reports([act])
    return answer(agent_health(agent, service.engine.beliefs, request.now), 202)


async def _record(request: Request, intervention_id: str) -> InterventionRecord:
    register: Interventions = await request.site.history_reader.interventions()
    record = register.find(intervention_id)
    if record is None:
        raise Problem(404, f"there is no intervention {intervention_id!r}")
    return record


def request_key(request: Request) -> str:
    """The identity of a request: its key, and a digest of its body. A request without a key equals no other."""
    key = request.idempotency_key or f"request {uuid4()}"
    return keyed(key, sha256(msgspec.json.encode(request.body)).hexdigest()[:16])


def _by(request: Request) -> dict[str, str]:
    return {"agent_id": known(request).id, "by": request.principal.by, "key": request_key(request)}


_RUNGS: Final[dict[type[PersonActed], Rung]] = {
    signals.NudgeRequested: Rung.NUDGE,
    signals.EscalationRequested: Rung.ESCALATE,
    signals.TerminationRequested: Rung.TERMINATE,
}


_AGENT: Final = "/api/v1/agents/{agent_id}"
_GONE: Final = {
    404: "nobody has heard of this agent",
    409: "it has ended already",
    422: "this `Idempotency-Key` was used for another body",
}

CALLS: Final = (
    Route(
        "POST",
        f"{_AGENT}/nudge",
        ACTORS,
        nudge,
        InterventionRecord,
        body=NudgeBody | None,
        status=202,
        also=_GONE,
    ),
    Route(
        "POST",
        f"{_AGENT}/escalate",
        ACTORS,
        escalate,
        InterventionRecord,
        body=ReasonBody,
        status=202,
        also=_GONE,
    ),
    Route(
        "POST",
        f"{_AGENT}/terminate",
        ACTORS,
        terminate,
        InterventionRecord,
        body=TerminationBody,
        status=202,
        also=_GONE,
    ),
    Route("POST", f"{_AGENT}/pause", ACTORS, pause, AgentHealth, body=PauseBody | None, status=202),
    Route("POST", f"{_AGENT}/resume", ACTORS, resume, AgentHealth, status=202),
    Route("POST", f"{_AGENT}/clear", ACTORS, clear, AgentHealth, status=202),
    Route("GET", "/api/v1/interventions", READERS, interventions, InterventionList, query=InterventionsQuery),
    Route("GET", "/api/v1/interventions/{intervention_id}", READERS, intervention, InterventionRecord),
    Route(
        "POST",
        "/api/v1/escalations/{intervention_id}/decision",
        ACTORS,
        decide,
        InterventionRecord,
        body=DecisionBody,
        status=202,
        also={409: "it is no longer open: somebody has decided, or it is over"},
    ),
)
