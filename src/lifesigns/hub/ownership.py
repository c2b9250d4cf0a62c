"""Ownership: which agent owns a task, its checkpoints or a message, and may therefore report about them.

A task belongs to the agent that holds its claim; else to the one it was assigned to; else to the one that first saved a
checkpoint of it. The last two only while the agent lives: after that the task is free, and the next agent to take it up
is the successor. A message belongs to its sender. Every way in asks here: REST, `/signals` and the bus. Operators may
do everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.health import Health
from lifesigns.core.messages import PendingMessage
from lifesigns.hub.principals import NOBODY, Principal, Role
from lifesigns.ports.checkpoints import HERE

BUS: Final = Principal("bus", "the bus", Role.AGENT, NOBODY)
"""On a bus an agent speaks for itself alone. The bus receiver checks that it is the agent it claims to be."""

GONE: Final = (Health.DISCONNECTED, Health.TERMINATED)

Refusal = tuple[str, str]
"""The field that is wrong, and what is wrong with it."""


def refusal(beliefs: Beliefs, who: Principal, signal: s.Signal) -> Refusal | None:
    """The field by which `who` may not send this, and why; None if it may."""
    rule = _RULES.get(type(signal))
    return None if rule is None or who.speaks_for_all else rule(beliefs, who, signal)


def may_read(beliefs: Beliefs, who: Principal, task_id: str, saved_by: str) -> bool:
    """Whether it may read an agent's checkpoints of a task: its own, and those of the task it continues."""
    if who.may_see(saved_by):
        return True
    successor = _holder(beliefs, task_id)
    return successor is not None and who.may_see(successor)


def may_know(who: Principal, message: PendingMessage) -> bool:
    """Whether it may learn of this message: its sender, its recipient, and those who may read everything."""
    return who.may_see(message.sender) or who.may_see(message.to)


def owner_of(beliefs: Beliefs, task_id: str) -> str | None:
    """The owner of a task; None if it is free."""
    return _holder(beliefs, task_id) or _living(beliefs, beliefs.saver_of(task_id))


def _holder(beliefs: Beliefs, task_id: str) -> str | None:
    claim, task = beliefs.claims.get(task_id), beliefs.tasks.get(task_id)
    if claim is not None:
        return claim.agent_id
    return None if task is None else _living(beliefs, task.agent_id)


def _living(beliefs: Beliefs, agent_id: str | None) -> str | None:
    agent = None if agent_id is None else beliefs.agents.get(agent_id)
    return agent_id if agent is not None and agent.health not in GONE else None


# --- the rules ---------------------------------------------------------------------------------------


def _of_a_task(beliefs: Beliefs, who: Principal, signal: Any) -> Refusal | None:
    agent = beliefs.agents.get(signal.agent_id)
    task_id = signal.task_id or (None if agent is None else agent.task_id)
    owner = None if task_id is None else owner_of(beliefs, task_id)
    if owner is None or owner == signal.agent_id or who.may_speak_for(owner):
        return None
    return "task_id", f"is {task_id!r}, which is of {owner!r}, for whom {who.name!r} may not speak"


def _of_a_checkpoint(beliefs: Beliefs, who: Principal, signal: s.CheckpointSaved) -> Refusal | None:
    if signal.digest.startswith(HERE) and not _was_given(beliefs, signal):
        return "digest", f"begins with {HERE!r}, but its content did not come from {signal.agent_id!r}"
    if signal.task_id not in beliefs.claims and _saves_already(beliefs, signal):
        return None
    return _of_a_task(beliefs, who, signal)


def _saves_already(beliefs: Beliefs, signal: s.CheckpointSaved) -> bool:
    """Whether it saved checkpoints of this task before another agent got it: both work on it."""
    lineage = beliefs.lineages.get(signal.agent_id)
    return lineage is not None and lineage.task_id == signal.task_id and bool(lineage.chain)


def _was_given(beliefs: Beliefs, signal: s.CheckpointSaved) -> bool:
    """Whether this agent sent us this content: else any agent that knows a digest could read what others saved."""
    lineage = beliefs.lineages.get(signal.agent_id)
    return lineage is not None and any(known.digest == signal.digest for known in lineage.chain)


def _of_a_message(beliefs: Beliefs, who: Principal, signal: s.MessageSent) -> Refusal | None:
    known = beliefs.messages.get(signal.message_id)
    if known is None or (known.sender, known.to) == (signal.agent_id, signal.to):
        return None
    if not may_know(who, known):
        return "message_id", f"is {signal.message_id!r}, which is the id of another message"
    return "message_id", f"is {signal.message_id!r}, which {known.sender!r} sent to {known.to!r}"


_RULES: Final[Mapping[type, Callable[[Beliefs, Principal, Any], Refusal | None]]] = {
    s.TaskAssigned: _of_a_task,
    s.TaskClaimed: _of_a_task,
    s.CheckpointSaved: _of_a_checkpoint,
    s.MessageSent: _of_a_message,
}
"""Reports that a sender may only make about what it owns. The others are about the agent itself, or the engine compares
them with what it knows: acknowledging or withdrawing a message, releasing a claim, ending a task, progress before a
deadline."""
