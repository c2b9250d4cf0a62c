"""The codec of events: a fact as an event, an event as a message, and the fact back again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lifesigns.core.effects import Fact, MessageOverdue
from lifesigns.events.catalogue import CATALOGUE, row_of
from lifesigns.ports import Event
from lifesigns.wire.codec import FAULTS, written

log: Final = logging.getLogger("lifesigns.events")
_said_unreadable: Final = set[str]()
"""Types of events of which we have said that some cannot be read: once each, as they are read again and again."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode

_NAMES: Final = {
    row.name: [(ours, told) for ours, told in row.fields.items() if told] for row in CATALOGUE.values()
}
"""The fields of a fact, and what they are called in its event; by its name."""
_FIELDS: Final = {
    name: {told: ours for ours, told in names if told != ours} for name, names in _NAMES.items()
}
"""The other way round, where these differ."""


def event_of(number: int, fact: Fact) -> Event:
    """A fact as it is kept and told."""
    name = row_of(fact).name
    data = {told: getattr(fact, ours) for ours, told in _NAMES[name]}
    return Event(number, fact.at, name, subject(fact), _encode(data))


def subject(fact: Fact) -> str:
    """Whom a fact is about; empty if it is the hub itself."""
    if isinstance(fact, MessageOverdue):
        return fact.to
    agent_id: Any = getattr(fact, "agent_id", "")
    return str(agent_id)


def message(event: Event) -> bytes:
    """An event as it is told outside: `{"id", "type", "at", "agent_id", "data"}`."""
    told = _Told(event.id, event.type, written(event.at), event.agent_id, msgspec.Raw(event.data))
    return _encode(told)


class _Told(msgspec.Struct):
    id: int
    type: str
    at: str | float
    agent_id: str
    data: msgspec.Raw


def fact_of(event: Event) -> Fact | None:
    """The fact that an event tells; None if that cannot be known: it may be another version's."""
    try:
        fact = fact_told(event.type, event.at, event.agent_id, _decode(event.data))
    except FAULTS:
        fact = None
    if fact is None and event.type not in _said_unreadable:
        _said_unreadable.add(event.type)
        log.warning(
            "event %d (%s) cannot be read; it is left out, as are others like it: history, alerts and spans lack them",
            *(event.id, event.type),
            extra={"action": "event_unreadable"},
        )
    return fact


def fact_told(name: str, at: float, agent_id: str, data: Mapping[str, Any]) -> Fact | None:
    """The same, from the parts of an event as the API tells it."""
    row = CATALOGUE.get(name)
    if row is None or row.fact is None:
        return None
    names = _FIELDS[name]
    ours = {names.get(told, told): value for told, value in data.items()}
    try:
        return msgspec.convert({"agent_id": agent_id, **row.where, **ours, "at": at}, row.fact)
    except FAULTS:
        return None
