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
"""Types of events whose unreadable rows we have logged: once each, because the rows are read again and again."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode

_NAMES: Final = {
    row.name: [(field, public) for field, public in row.fields.items() if public]
    for row in CATALOGUE.values()
}
"""The fields of a fact and their names in its event, by the event's name."""
_FIELDS: Final = {
    name: {public: field for field, public in names if public != field} for name, names in _NAMES.items()
}
"""The reverse, where the names differ."""


def event_of(number: int, fact: Fact) -> Event:
    """The fact as a stored and published event."""
    name = row_of(fact).name
    data = {public: getattr(fact, field) for field, public in _NAMES[name]}
    return Event(number, fact.at, name, subject(fact), _encode(data))


def subject(fact: Fact) -> str:
    """The agent that a fact is about; empty if it is about the hub itself."""
    if isinstance(fact, MessageOverdue):
        return fact.to
    agent_id: Any = getattr(fact, "agent_id", "")
    return str(agent_id)


def message(event: Event) -> bytes:
    """An event in its public form: `{"id", "type", "at", "agent_id", "data"}`."""
    public = _PublicEvent(event.id, event.type, written(event.at), event.agent_id, msgspec.Raw(event.data))
    return _encode(public)


class _PublicEvent(msgspec.Struct):
    id: int
    type: str
    at: str | float
    agent_id: str
    data: msgspec.Raw


def fact_of(event: Event) -> Fact | None:
    """The fact of a stored event; None if it is unreadable: it may be another version's."""
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
    """The fact of an event from the API."""
    row = CATALOGUE.get(name)
    if row is None or row.fact is None:
        return None
    names = _FIELDS[name]
    values = {names.get(public, public): value for public, value in data.items()}
    try:
        return msgspec.convert({"agent_id": agent_id, **row.where, **values, "at": at}, row.fact)
    except FAULTS:
        return None
