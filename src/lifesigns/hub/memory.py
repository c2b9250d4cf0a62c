"""Memory: beliefs as rows of the store, and back.

Beats are not stored: the next beat says the same again, and after a restart every silence starts from zero. A report comes
once. The engine says which beliefs changed (`core/changed_keys.py`), and those rows are written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from lifesigns.core.agent import UNEVENTFUL, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.beliefs import Beliefs, ReportedBreaker
from lifesigns.core.changed_keys import ChangedKeys
from lifesigns.core.claims import Claim
from lifesigns.core.fleet import Fleet, FleetState
from lifesigns.core.messages import PendingMessage
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.policy_bounds import OwnPolicy
from lifesigns.core.respawn import Lineage
from lifesigns.core.side_orders import SideOrder
from lifesigns.core.tasks import Task
from lifesigns.errors import AdapterError
from lifesigns.ports import Belief

AGENT, CLAIM, MESSAGE, TASK, HUB = "agent", "claim", "message", "task", "hub"


@dataclass(slots=True)
class AgentRecord:
    """Everything about one agent."""

    agent: Agent
    lineage: Lineage | None = None
    policy: Mapping[str, Any] | None = None
    reported: dict[str, ReportedBreaker] = field(default_factory=dict)
    side_orders: dict[str, SideOrder] = field(default_factory=dict)
    granted: Mapping[str, Any] = field(default_factory=dict)
    policy_by: str = ""


@dataclass(slots=True)
class EngineRecord:
    """What the engine believes about itself and the fleet as a whole."""

    at: float
    awareness: Awareness
    fleet: FleetState
    canary_due_at: float
    things: int
    numbered: int
    tokens: int


_encode: Final = msgspec.msgpack.Encoder().encode
_KINDS: Final[Mapping[str, type]] = {
    AGENT: AgentRecord,
    CLAIM: Claim,
    MESSAGE: PendingMessage,
    TASK: Task,
    HUB: EngineRecord,
}
_DECODERS: Final[Mapping[str, msgspec.msgpack.Decoder[Any]]] = {
    kind: msgspec.msgpack.Decoder(of) for kind, of in _KINDS.items()
}


def changed(changes: ChangedKeys, beliefs: Beliefs) -> list[Belief]:
    """The rows of everything that changed, as it is now. The engine's own row goes with any of them."""
    rows = list(_changed(changes, beliefs))
    if rows or changes.fleet:
        rows.append(_self(beliefs))
    return rows


def _changed(changes: ChangedKeys, beliefs: Beliefs) -> Iterator[Belief]:
    for agent_id in changes.agents:
        if (agent := beliefs.agents.get(agent_id)) is None:
            yield Belief(AGENT, agent_id, None)
        else:
            yield Belief(AGENT, agent_id, _encode(_agent_record(beliefs, agent)))
    for task_id in changes.tasks:
        yield _row(CLAIM, task_id, beliefs.claims)
        yield _row(TASK, task_id, beliefs.tasks)
    for message_id in changes.messages:
        yield _row(MESSAGE, message_id, beliefs.messages)


def everything(beliefs: Beliefs) -> Iterator[Belief]:
    """All rows, for a clean end."""
    for agent in beliefs.agents.values():
        yield Belief(AGENT, agent.id, _encode(_agent_record(beliefs, agent)))
    for kind, table in ((CLAIM, beliefs.claims), (TASK, beliefs.tasks), (MESSAGE, beliefs.messages)):
        for key in table:
            yield _row(kind, key, table)
    yield _self(beliefs)


class Recall:
    """Beliefs as they are read from the store: rows in any order, a later one of the same key in place of an earlier one.

    An unreadable row is left out, and noted with the reason: a hub that forgets one agent loses less than one that does
    not start. Without the hub's own row, order ids and fencing tokens would begin anew and agents would accept old ones;
    so then `beliefs` raises `AdapterError`.
    """

    def __init__(self) -> None:
        self._records: dict[str, dict[str, Any]] = {kind: {} for kind in _KINDS}
        self._others: dict[tuple[str, str], Belief] = {}
        self._unreadable: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._others) + len(self._unreadable) + sum(map(len, self._records.values()))

    @property
    def others(self) -> Sequence[Belief]:
        """The rows of other parts of the hub: alerting, the audit log."""
        return list(self._others.values())

    @property
    def unreadable(self) -> Mapping[str, str]:
        """The unreadable rows, and why they are."""
        return {" ".join(name): error for name, error in self._unreadable.items()}

    def take(self, rows: Iterable[Belief]) -> None:
        for row in rows:
            if row.value is None:
                continue
            if (decoder := _DECODERS.get(row.kind)) is None:
                self._others[row.kind, row.key] = row
                continue
            try:
                self._records[row.kind][row.key] = record = decoder.decode(row.value)
            except (msgspec.MsgspecError, ValueError) as error:
                self._records[row.kind].pop(row.key, None)
                self._unreadable[row.kind, row.key] = str(error)
                continue
            if row.kind == AGENT:
                _heal(record.agent)
            if self._unreadable:
                self._unreadable.pop((row.kind, row.key), None)

    def keep_only(self, keys: Container[tuple[str, str]]) -> None:
        """Forget all rows but these."""
        for kind, records in self._records.items():
            for key in [key for key in records if (kind, key) not in keys]:
                del records[key]
        for rows in (self._others, self._unreadable):
            for name in [name for name in rows if name not in keys]:
                del rows[name]

    def beliefs(self) -> Beliefs:
        """All of them. The engine changes them in place: make them once."""
        if (error := self._unreadable.get((HUB, ""))) is not None:
            raise AdapterError(
                f"the store is damaged: its row of the hub itself (kind {HUB!r}) cannot be read: {error}. "
                "Restore a backup (docs/runbooks/restore.md), or move the store away and start anew",
                transient=False,
            )
        beliefs, records = Beliefs(), self._records
        beliefs.claims, beliefs.messages = dict(records[CLAIM]), dict(records[MESSAGE])
        beliefs.tasks = dict(records[TASK])
        for me in records[HUB].values():
            _recall_self(beliefs, me)
        for agent_id, record in records[AGENT].items():
            _recall_agent(beliefs, agent_id, record)
        _recount(beliefs)
        return beliefs


def recalled(rows: Iterable[Belief]) -> Beliefs:
    """The beliefs of the last commit."""
    recall = Recall()
    recall.take(rows)
    return recall.beliefs()


def _recount(beliefs: Beliefs) -> None:
    """Count again. A change without an event (a beat from another host, the end of a message) may have been lost in a
    crash before its row was stored."""
    state = beliefs.fleet
    state.sources = {}
    state.groups = {
        name: dataclasses.replace(group, members=0, unwell=0)
        for name, group in state.groups.items()
        if group.braked or group.deserted_by or group.released_until > beliefs.at
    }
    fleet = Fleet(FleetPolicy(), state)
    for agent in beliefs.agents.values():
        agent.messages = 0
    fleet.join_all(beliefs.agents.values())
    for message in beliefs.messages.values():
        if (sender := beliefs.agents.get(message.sender)) is not None:
            sender.messages += 1


def _agent_record(beliefs: Beliefs, agent: Agent) -> AgentRecord:
    own = beliefs.own_policies.get(agent.id)
    return AgentRecord(
        agent,
        beliefs.lineages.get(agent.id),
        None if own is None else own.words,
        beliefs.breakers.get(agent.id, {}),
        beliefs.side_orders.get(agent.id, {}),
        {} if own is None else own.granted,
        "" if own is None else own.source,
    )


def _heal(agent: Agent) -> None:
    past = replace(agent.past, poisoned=False)  # This may be a newer hub, without the bug.
    agent.past = UNEVENTFUL if past == UNEVENTFUL else past  # Not a copy for each of a million agents.


def _recall_agent(beliefs: Beliefs, agent_id: str, record: AgentRecord) -> None:
    beliefs.agents[agent_id] = record.agent
    if record.lineage is not None:
        beliefs.lineages[agent_id] = record.lineage
        beliefs.note_saver(record.lineage)
    if record.policy is not None:
        beliefs.own_policies[agent_id] = OwnPolicy(record.policy, record.granted, record.policy_by)
    if record.reported:
        beliefs.breakers[agent_id] = record.reported
    if record.side_orders:
        beliefs.side_orders[agent_id] = record.side_orders


def _self(beliefs: Beliefs) -> Belief:
    b = beliefs
    fleet = dataclasses.replace(b.fleet, late={}, witnesses={})
    me = EngineRecord(b.at, b.awareness, fleet, b.canary_due_at, b.things, b.numbered, b.tokens)
    return Belief(HUB, "", _encode(me))


def _recall_self(beliefs: Beliefs, me: EngineRecord) -> None:
    beliefs.at, beliefs.awareness, beliefs.fleet = me.at, me.awareness, me.fleet
    beliefs.canary_due_at, beliefs.things = me.canary_due_at, me.things
    beliefs.numbered, beliefs.tokens = me.numbered, me.tokens


def _row(kind: str, key: str, table: Mapping[str, object]) -> Belief:
    value = table.get(key)
    return Belief(kind, key, None if value is None else _encode(value))
