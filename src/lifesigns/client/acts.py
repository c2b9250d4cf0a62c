"""Acts on agents, and their interventions. For operators.

An act on the ladder carries an `Idempotency-Key`: however often the hub receives it, it is one act.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lifesigns.client.call import Call
from lifesigns.client.parameters import new_id
from lifesigns.client.request import Request, agent_path, encoded, get, path, post, query_of, reader
from lifesigns.views import AgentHealth
from lifesigns.views.claims import RecoveredClaims
from lifesigns.views.interventions import InterventionList, InterventionRecord
from lifesigns.views.recoveries import Recoveries
from lifesigns.views.recovery import RecoveryList
from lifesigns.views.worker_keys import MemoryKeys, MemoryValue

T = TypeVar("T")


class Acts:
    """The calls that act on agents. `key` makes a repeated call the same act; without one every call is another."""

    @Call
    def nudge(
        self, agent_id: str, message: str = "", *, key: str | None = None
    ) -> Request[InterventionRecord]:
        """Tell an agent something at its next turn boundary; by default the facts about itself."""
        return _act(agent_path(agent_id, "nudge"), {"message": message}, key)

    @Call
    def escalate(self, agent_id: str, reason: str, *, key: str | None = None) -> Request[InterventionRecord]:
        """Ask people to decide about an agent."""
        return _act(agent_path(agent_id, "escalate"), {"reason": reason}, key)

    @Call
    def terminate(
        self, agent_id: str, reason: str, *, respawn: bool = False, key: str | None = None
    ) -> Request[InterventionRecord]:
        """Ask an agent to save, then end it. With `respawn` another life follows."""
        return _act(agent_path(agent_id, "terminate"), {"reason": reason, "respawn": respawn}, key)

    @Call
    def pause(self, agent_id: str, for_: float | None = None) -> Request[AgentHealth]:
        """Leave an agent alone for so many seconds, or until it is resumed: the hub watches it, but does nothing about
        it."""
        return post(agent_path(agent_id, "pause"), AgentHealth, {"for": for_})

    @Call
    def resume(self, agent_id: str) -> Request[AgentHealth]:
        """End a pause."""
        return post(agent_path(agent_id, "resume"), AgentHealth, None)

    @Call
    def clear(self, agent_id: str) -> Request[AgentHealth]:
        """Clear an agent: lifts quarantine, open interventions and limits."""
        return post(agent_path(agent_id, "clear"), AgentHealth, None)

    @Call
    def interventions(
        self,
        *,
        agent: str | None = None,
        rung: str | Sequence[str] | None = None,
        only_open: bool = False,
        limit: int | None = None,
    ) -> Request[InterventionList]:
        """Interventions, the newest first."""
        place, open_ = "/api/v1/interventions", True if only_open else None
        return get(place, InterventionList, agent=agent, rung=rung, open=open_, limit=limit)

    @Call
    def intervention(self, intervention_id: str) -> Request[InterventionRecord]:
        """One intervention with all its stages."""
        return get(path("interventions", intervention_id), InterventionRecord)

    @Call
    def decide(self, intervention_id: str, decision: str, *, note: str = "") -> Request[InterventionRecord]:
        """Decide about an escalated agent: `more_time`, `handoff`, `terminate` or `ignore`."""
        body = {"decision": decision, "note": note}
        return post(path("escalations", intervention_id, "decision"), InterventionRecord, body)

    @Call
    def reset_breaker(
        self, name: str, *, agent: str | None = None, reason: str = "", key: str | None = None
    ) -> Request[InterventionList]:
        """Close the breakers of this name, of all agents or one, and reset their history."""
        return _turn("reset", name, agent, reason, key)

    @Call
    def open_breaker(
        self, name: str, *, agent: str | None = None, reason: str = "", key: str | None = None
    ) -> Request[InterventionList]:
        """Open the breakers of this name, of all agents or one, as if they had failed."""
        return _turn("open", name, agent, reason, key)

    @Call
    def close_breaker(
        self, name: str, *, agent: str | None = None, reason: str = "", key: str | None = None
    ) -> Request[InterventionList]:
        """Close the breakers of this name, of all agents or one; they count from zero."""
        return _turn("close", name, agent, reason, key)

    @Call
    def recover(
        self, task_id: str, agent_id: str | None = None, *, reason: str = ""
    ) -> Request[RecoveryList]:
        """Respawn the agent of a task from its newest valid checkpoint; lifts limits, review and quarantine. If a
        recovery is already on its way, returns that one."""
        body = {"agent_id": agent_id, "reason": reason}
        return post(path("tasks", task_id, "recover"), RecoveryList, body)

    @Call
    def recovery(self, task_id: str) -> Request[RecoveryList]:
        """How far the recovery of a task has come."""
        return get(path("tasks", task_id, "recovery"), RecoveryList)

    @Call
    def recoveries(self, *, for_: float | str | None = None, limit: int | None = None) -> Request[Recoveries]:
        """Every unfinished recovery, the events of the last seven days or of `for_`, and the success rate."""
        return get("/api/v1/recoveries", Recoveries, for_=for_, limit=limit)

    @Call
    def recovered_claims(
        self, *, for_: float | str | None = None, limit: int | None = None
    ) -> Request[RecoveredClaims]:
        """Claims of lost workers that were released, here and in the issue tracker, in the last seven days or in `for_`."""
        return get("/api/v1/claims/recovered", RecoveredClaims, for_=for_, limit=limit)

    @Call
    def memory_keys(self, pattern: str = "*", *, limit: int | None = None) -> Request[MemoryKeys]:
        """What the hub knows of workers: the keys of Task Sentinel's protocol that fit a pattern."""
        return get("/api/v1/memory/keys", MemoryKeys, pattern=pattern, limit=limit)

    @Call
    def memory_value(self, key: str) -> Request[MemoryValue]:
        """What is known under one of these keys."""
        return get("/api/v1/memory/value", MemoryValue, key=key)


def _turn(act: str, name: str, agent: str | None, reason: str, key: str | None) -> Request[InterventionList]:
    return _once(path("breakers", name, act), InterventionList, {"reason": reason}, key, agent=agent)


def _act(place: str, body: object, key: str | None) -> Request[InterventionRecord]:
    return _once(place, InterventionRecord, body, key)


def _once(place: str, shape: type[T], body: object, key: str | None, **query: object) -> Request[T]:
    return Request(
        "POST",
        place,
        reader(shape),
        query_of(query),
        body=encoded(body),
        headers=(("idempotency-key", key or new_id()),),
        repeatable=True,
    )
