"""Alerts: what people should know, in sentences.

What stands right now (the hub is blind, an agent waits for a human) comes first and has no number; what happened comes
from the events that are kept. The law: an event that a person can do nothing about is no alert.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from lifesigns.core.health import UNWELL, Health
from lifesigns.ports import Event
from lifesigns.views.events import data_of
from lifesigns.views.moments import Moment, moment


class Level(StrEnum):
    """How urgent an alert is, mildest first."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


RANK: Final[Mapping[Level, int]] = {level: rank for rank, level in enumerate(Level)}


class Acknowledgement(Struct, frozen=True):
    """Somebody has taken an alert on: nobody is reminded of it, unless it gets worse."""

    by: str
    at: Moment
    reason: str
    until: Moment | None
    """When people are reminded again if it still lasts; None: not at all."""


class Alert(Struct, frozen=True):
    """One thing that people should know."""

    id: str
    """The number of its event; `standing:...` for what is so right now."""
    at: Moment | None
    """When it happened, or since when it is so; None if that is not known."""
    severity: Level
    type: str
    agent_id: str
    """Empty if it is about the hub, or a group."""
    text: str
    standing: bool
    key: str = ""
    """Under which people are told of it, and under which it can be acknowledged; empty if nobody is told."""
    kind: str = ""
    """What silences and routes call it: `stuck_agent`, `needs_human` ..."""
    open: bool = False
    """Whether it still lasts. What is open can be acknowledged."""
    group: str = ""
    """The key under which it is told together with others; empty if it is told alone."""
    acknowledged: Acknowledgement | None = None
    silenced_by: str = ""
    """Why nobody is told of it now; empty if somebody is."""


class AlertList(Struct, frozen=True):
    """What stands now, then what happened, the newest first."""

    alerts: tuple[Alert, ...]
    before: int | None
    """Ask with this for older ones; None if there are none."""


class AcknowledgedAlerts(Struct, frozen=True):
    """What was acknowledged, and with which words."""

    keys: tuple[str, ...]
    """One, or all that were told under the key of a group."""
    acknowledged: Acknowledgement


class SilenceView(Struct, frozen=True):
    """Alerts nobody wants to hear of for a while. What is empty fits all."""

    id: str
    agents: tuple[str, ...]
    """Ids, or patterns such as `build-*`."""
    kinds: tuple[str, ...]
    """Names of alerts, or of the events they are made from."""
    roles: tuple[str, ...]
    by: str
    reason: str
    from_at: Moment | None
    """None: from the beginning."""
    until_at: Moment
    active: bool
    """Whether it holds right now."""
    configured: bool
    """It stands in the hub's configuration, and is ended there."""


class SilenceList(Struct, frozen=True):
    """All silences, those of the configuration first."""

    silences: tuple[SilenceView, ...]


def alert_of(event: Event) -> Alert | None:
    """An event as an alert; None if it is none."""
    data = data_of(event)
    told = ALERTING[event.type]({**data, "agent": event.agent_id})
    if told is None:
        return None
    level, text = told
    return Alert(str(event.id), moment(event.at), level, event.type, event.agent_id, text, standing=False)


Told = tuple[Level, str] | None
Data = Mapping[str, Any]


_TOLD_BY_ITS_OWN_EVENT: Final = ("escalation", "mass brake")
"""Needs of people that come with `ESCALATION_TRIGGERED` or `GROUP_BRAKED`: the same thing must not stand there twice."""


def _needs_human(data: Data) -> Told:
    if data.get("reason") in _TOLD_BY_ITS_OWN_EVENT:
        return None
    level = Level.WARNING if data.get("reason") == "waiting_for_human" else Level.ERROR
    agent, text = data["agent"], data["text"]
    return level, text if agent in text else f"{agent}: {text}"


def _escalation(data: Data) -> Told:
    return Level.ERROR, f"{data['agent']}: somebody has to decide. {data['reason']}"


FLIPS: Final[Mapping[Health, Level]] = {
    Health.STUCK: Level.WARNING,
    Health.FAILING: Level.ERROR,
    Health.DISCONNECTED: Level.ERROR,
}
"""How urgent it is that an agent came into such a state."""


def _flip(data: Data) -> Told:
    to, cause = Health(data["to"]), data.get("cause")
    if to in FLIPS:
        why = f" ({cause})" if to is Health.DISCONNECTED and cause else ""
        return FLIPS[to], f"{data['agent']} is {to}{why}: {data['reason']}"
    if to is Health.HEALTHY and Health(data["from"]) in UNWELL:
        return Level.INFO, f"{data['agent']} is healthy again: {data['reason']}"
    return None


def _terminated(data: Data) -> Told:
    return Level.WARNING, f"{data['agent']} was stopped by {data.get('by') or 'lifesigns'}: {data['reason']}"


def _recovery(level: Level, what: str) -> Callable[[Data], Told]:
    def tell(data: Data) -> Told:
        task = f" with task {data['task_id']}" if data.get("task_id") else ""
        reason = f": {data['reason']}" if data.get("reason") else ""
        return level, f"{data['agent']} {what}{task}{reason}"

    return tell


def _breaker(data: Data) -> Told:
    if data["to"] in ("open", "forced_open"):
        return Level.WARNING, f"{data['agent']}: its breaker {data['name']!r} is open"
    if data["to"] == "closed":
        return Level.INFO, f"{data['agent']}: its breaker {data['name']!r} is closed again"
    return None


_LATE: Final = {"urgent": Level.ERROR, "high": Level.WARNING}


def _overdue(data: Data) -> Told:
    level = _LATE.get(data["priority"], Level.INFO)
    text = f"{data['to']} has not acknowledged message {data['message_id']} of {data['sender']} ({data['priority']})"
    return level, text


def _task(data: Data) -> Told:
    level = {"failed": Level.ERROR, "blocked": Level.WARNING}.get(data["verdict"])
    return (
        None if level is None else (level, f"Task {data['task_id']} is {data['verdict']}: {data['reason']}")
    )


def _brake(data: Data) -> Told:
    if not data["on"]:
        by = f"{data['by']} lets " if data.get("by") else ""
        return Level.INFO, f"{data['group']}: {by}interventions go on again"
    of = f"{data['unwell']} of {data['members']}"
    return (
        Level.CRITICAL,
        f"{data['group']}: {of} are unwell at once; nothing is done there until a person decides",
    )


def _poisoned(data: Data) -> Told:
    return Level.ERROR, f"{data['agent']} cannot be judged, which is a bug of lifesigns: {data['error']}"


def _hub(level: Level, what: str) -> Callable[[Data], Told]:
    def tell(data: Data) -> Told:
        return level, f"{what}: {data['reason']}" if data.get("reason") else what

    return tell


ALERTING: Final[Mapping[str, Callable[[Data], Told]]] = {
    "NEEDS_HUMAN": _needs_human,
    "ESCALATION_TRIGGERED": _escalation,
    "HEALTH_STATE_CHANGED": _flip,
    "AGENT_TERMINATED": _terminated,
    "RECOVERY_INITIATED": _recovery(Level.INFO, "is started anew"),
    "RECOVERY_COMPLETED": _recovery(Level.INFO, "is back"),
    "RECOVERY_FAILED": _recovery(Level.CRITICAL, "could not be started anew"),
    "CIRCUIT_BREAKER_STATE_CHANGED": _breaker,
    "MESSAGE_OVERDUE": _overdue,
    "TASK_JUDGED": _task,
    "GROUP_BRAKED": _brake,
    "AGENT_POISONED": _poisoned,
    "HUB_BLIND": _hub(Level.CRITICAL, "The hub cannot see"),
    "HUB_SIGHTED": _hub(Level.INFO, "The hub can see again"),
    "HUB_BUS_LOST": _hub(Level.CRITICAL, "The bus is away"),
    "HUB_STORE_BACK": _hub(Level.INFO, "The store is back. It was away"),
    "HUB_BUS_BACK": _hub(Level.INFO, "The bus is back. It was away"),
    "HUB_TOKENS_REFUSED": _hub(Level.ERROR, "Agents are refused"),
    "HUB_TOKENS_ACCEPTED": _hub(Level.INFO, "No agent is refused any more. It was so"),
    "HUB_CONNECTIONS_FULL": _hub(Level.ERROR, "Newcomers are turned away"),
    "HUB_CONNECTIONS_FREE": _hub(Level.INFO, "Nobody is turned away any more. It was so"),
    "HUB_ROWS_UNREADABLE": _hub(Level.ERROR, "Something was forgotten"),
    "AUDIT_BROKEN": _hub(Level.CRITICAL, "The audit log is not what was sealed"),
}
"""Events that may be alerts, and what they say. `agent` is whom the event is about."""
