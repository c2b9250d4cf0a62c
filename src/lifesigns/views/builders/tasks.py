"""Builds the views of tasks, claims and checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from lifesigns.core.agent import Agent
from lifesigns.core.claims import Claim
from lifesigns.core.engine import Engine
from lifesigns.core.respawn import Checkpoint
from lifesigns.core.tasks import Task
from lifesigns.ports.checkpoints import HERE
from lifesigns.views.moments import moment, moment_or_none
from lifesigns.views.tasks import CheckpointList, CheckpointView, ClaimGranted, ClaimView, DueView, TaskView


def task_ids(engine: Engine) -> Iterator[str]:
    """Every task, in the order of its agents' first signals; then those without an agent. An iterator, so that a page
    of 100,000 does not wait for the rest."""
    beliefs = engine.beliefs
    worked_on = (agent.task_id for agent in engine.agents() if agent.task_id is not None)
    seen: set[str] = set()
    for task_id in chain(worked_on, beliefs.claims, beliefs.tasks):
        if task_id not in seen:
            seen.add(task_id)
            yield task_id


def tasks_view(engine: Engine, task_ids: Iterable[str]) -> tuple[TaskView, ...]:
    """These tasks now, without unknown ones."""
    agents_of: dict[str, list[str]] = {task_id: [] for task_id in task_ids}
    for agent in engine.agents():
        if agent.task_id in agents_of:
            agents_of[agent.task_id].append(agent.id)
    tasks = (_task(engine, task_id, agents) for task_id, agents in agents_of.items())
    return tuple(task for task in tasks if task.agents or task.claim or task.due)


def checkpoints(engine: Engine, task_id: str) -> CheckpointList:
    """The checkpoints of a task, from all agents."""
    saved = sorted(_saved(engine, task_id), key=lambda link: link[1].at)
    return CheckpointList(task_id, tuple(checkpoint_view(agent_id, one) for agent_id, one in saved))


def checkpoint_view(agent_id: str, saved: Checkpoint) -> CheckpointView:
    """A checkpoint, and its agent."""
    return CheckpointView(
        saved.id,
        saved.parent_id,
        saved.digest,
        saved.size,
        moment(saved.at),
        agent_id,
        saved.digest.startswith(HERE),
    )


def claim_granted(engine: Engine, claim: Claim) -> ClaimGranted:
    """The answer to a granted claim."""
    lease = _lease(engine, engine.agent(claim.agent_id))
    return ClaimGranted(True, claim.task_id, claim.agent_id, claim.token, moment(claim.claimed_at), lease)


def _task(engine: Engine, task_id: str, agents: Iterable[str]) -> TaskView:
    beliefs = engine.beliefs
    claim, due = _claim(engine, beliefs.claims.get(task_id)), _due(beliefs.tasks.get(task_id))
    return TaskView(task_id, tuple(agents), claim, due)


def _saved(engine: Engine, task_id: str) -> Iterator[tuple[str, Checkpoint]]:
    for lineage in engine.beliefs.lineages.values():
        if lineage.task_id == task_id:
            yield from ((lineage.agent_id, checkpoint) for checkpoint in lineage.chain)


def _claim(engine: Engine, claim: Claim | None) -> ClaimView | None:
    if claim is None:
        return None
    agent = engine.agent(claim.agent_id)
    lease = _lease(engine, agent)
    heard_at = claim.claimed_at if agent is None else max(claim.claimed_at, agent.heard_at)
    return ClaimView(
        agent_id=claim.agent_id,
        incarnation=claim.incarnation,
        token=claim.token,
        claimed_at=moment(claim.claimed_at),
        lease_s=lease,
        held_until=moment_or_none(heard_at + lease),
        in_doubt=claim.asked_at is not None,
    )


def _lease(engine: Engine, agent: Agent | None) -> float:
    return 0.0 if agent is None else engine.policy_of(agent).claim.lease


def _due(task: Task | None) -> DueView | None:
    if task is None:
        return None
    return DueView(
        task.agent_id,
        moment(task.expected_at),
        moment(task.word_at),
        moment_or_none(task.asked_at),
        task.status,
        task.description,
        task.percent,
        moment_or_none(task.assigned_at),
        moment_or_none(task.progress_at),
        task.note,
    )
