"""Kinds of alerts, by name, with their default severity. The catalogue says which events open them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from lifesigns.events.catalogue import CATALOGUE, NEEDS_HUMAN
from lifesigns.ports import NoticeSeverity

LOUDNESS: Final = {severity: rank for rank, severity in enumerate(NoticeSeverity)}

OWN_FACTS: Final[Mapping[str, str]] = {
    "mass brake": "group_braked:{0.agent_id}",
    "blind": "hub_blind",
    "escalation": "escalation:{0.agent_id}",
    "review": "recovery_failed:{0.agent_id}",
    "quarantined": "recovery_failed:{0.agent_id}",
}
"""Reasons for `NeedsHuman` that come with another fact, and the key of the alert which that fact opens."""


class Kind(Struct, frozen=True):
    """One kind of alert."""

    name: str
    severity: NoticeSeverity
    many: str
    """The words for a whole group, after the number: `agents are unwell`."""
    at_once: bool = False
    """Sent at once, without waiting whether it passes by itself."""
    lapses: bool = False
    """No event ends it: it counts as settled after a while without news."""

    @property
    def events(self) -> tuple[str, ...]:
        """The events it is made from: routes and silences may name those as well."""
        return _EVENTS[self.name]

    @property
    def names(self) -> frozenset[str]:
        """Every name it goes by."""
        return frozenset((self.name, *self.events))


_W, _E, _C = NoticeSeverity.WARNING, NoticeSeverity.ERROR, NoticeSeverity.CRITICAL

_ALL: Final = (
    Kind("stuck_agent", _W, "agents are unwell"),
    Kind("needs_human", _W, "agents need a human", at_once=True, lapses=True),
    Kind("escalation", _E, "agents wait for a decision", at_once=True),
    Kind("circuit_breaker_open", _W, "circuit breakers are open"),
    Kind("recovery_failed", _C, "agents could not be recovered", at_once=True),
    Kind("message_overdue", _W, "messages are overdue", lapses=True),
    Kind("agent_poisoned", _E, "agents were set aside by a bug"),
    Kind("group_braked", _C, "groups are braked", at_once=True),
    Kind("hub_blind", _C, "hubs are blind", at_once=True),
    Kind("hub_store_lost", _C, "hubs lost their store"),
    Kind("hub_bus_lost", _C, "hubs lost their bus"),
    Kind("hub_tokens_refused", _E, "hubs refuse agents", at_once=True),
    Kind("hub_connections_full", _E, "hubs turn newcomers away", at_once=True),
    Kind("hub_truce_long", _E, "hubs doubt themselves again and again", at_once=True),
    Kind("hub_rows_unreadable", _E, "hubs have forgotten something", at_once=True),
    Kind("hub_messages_forged", _E, "hubs are sent forged messages", at_once=True),
    Kind("hub_tokens_forged", _C, "hubs have forged tokens in their store", at_once=True),
    Kind("token_expiring", _W, "tokens expire soon"),
    Kind("hub_witness_lost", _E, "audit logs have no witness", at_once=True),
    Kind("hub_tracker_lost", _E, "hubs cannot ask their issue tracker", at_once=True),
    Kind("hub_lost", _E, "hubs are lost", at_once=True),
    Kind("hub_memory_lost", _E, "hubs cannot write to their MCP memory", at_once=True),
    Kind("hub_messenger_lost", _E, "hubs cannot ask AI Maestro", at_once=True),
    Kind("hub_bus_shared", _C, "hubs share their bus with a hub that has another store", at_once=True),
    Kind("hub_dead_man_switch_lost", _E, "hubs ping nobody", at_once=True),
    Kind("audit_broken", _C, "audit logs were changed", at_once=True),
    Kind("channel_down", _E, "channels do not take notices", at_once=True),
)
KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _ALL}


def kind_of(key: str) -> str:
    """The kind of the alert with this key."""
    return key.partition(":")[0]


def _events(name: str) -> tuple[str, ...]:
    opening = tuple(row.name for row in CATALOGUE.values() if kind_of(row.alert) == name)
    return (*opening, NEEDS_HUMAN) if name in map(kind_of, OWN_FACTS.values()) else opening


_EVENTS: Final = {name: _events(name) for name in KINDS}
EVENTS: Final = tuple(dict.fromkeys(event for events in _EVENTS.values() for event in events))
"""All events that alerts are made from."""
