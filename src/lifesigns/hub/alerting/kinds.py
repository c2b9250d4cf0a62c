"""Kinds: the alerts there are, by name, and how loud each is if nobody says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lifesigns.ports import NoticeSeverity

LOUDNESS: Final = {severity: rank for rank, severity in enumerate(NoticeSeverity)}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of alert."""

    name: str
    severity: NoticeSeverity
    events: tuple[str, ...]
    """Events it is made from: routes and silences may name those as well."""
    many: str
    """What is said of a whole group, after the number: `agents are unwell`."""
    at_once: bool = False
    """Told without waiting whether it passes by itself."""
    lapses: bool = False
    """No event says that it is over: it is taken as settled after a while without news."""

    @property
    def names(self) -> frozenset[str]:
        """Every name it goes by."""
        return frozenset((self.name, *self.events))


_W, _E, _C = NoticeSeverity.WARNING, NoticeSeverity.ERROR, NoticeSeverity.CRITICAL
_HUMAN: Final = "NEEDS_HUMAN"

_ALL: Final = (
    Kind("stuck_agent", _W, ("HEALTH_STATE_CHANGED",), "agents are unwell"),
    Kind("needs_human", _W, (_HUMAN,), "agents need a human", at_once=True, lapses=True),
    Kind("escalation", _E, ("ESCALATION_TRIGGERED", _HUMAN), "agents wait for a decision", at_once=True),
    Kind("circuit_breaker_open", _W, ("CIRCUIT_BREAKER_STATE_CHANGED",), "circuit breakers are open"),
    Kind("recovery_failed", _C, ("RECOVERY_FAILED", _HUMAN), "agents could not be recovered", at_once=True),
    Kind("message_overdue", _W, ("MESSAGE_OVERDUE",), "messages are overdue", lapses=True),
    Kind("agent_poisoned", _E, ("AGENT_POISONED",), "agents were set aside by a bug"),
    Kind("group_braked", _C, ("GROUP_BRAKED", _HUMAN), "groups are braked", at_once=True),
    Kind("hub_blind", _C, ("HUB_BLIND", _HUMAN), "hubs are blind", at_once=True),
    Kind("hub_store_lost", _C, ("HUB_STORE_LOST",), "hubs lost their store"),
    Kind("hub_bus_lost", _C, ("HUB_BUS_LOST",), "hubs lost their bus"),
    Kind("hub_tokens_refused", _E, ("HUB_TOKENS_REFUSED",), "hubs refuse agents", at_once=True),
    Kind("hub_connections_full", _E, ("HUB_CONNECTIONS_FULL",), "hubs turn newcomers away", at_once=True),
    Kind("hub_rows_unreadable", _E, ("HUB_ROWS_UNREADABLE",), "hubs have forgotten something", at_once=True),
    Kind("audit_broken", _C, ("AUDIT_BROKEN",), "audit logs were changed", at_once=True),
    Kind("channel_down", _E, (), "channels do not take notices", at_once=True),
)
KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _ALL}
