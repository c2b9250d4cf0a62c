"""Reading: from an event to what it opens and what it closes.

An alert has a key made from its kind and what it is about, so that the event which ends it can name it without knowing
anything of its beginning. What the engine says twice, as a fact of its own and as `NEEDS_HUMAN`, is one alert here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from lifesigns.core.health import UNWELL, Health
from lifesigns.hub.alerting.wording import line, prose
from lifesigns.ports import Event, NoticeSeverity

WAITING: Final = "waiting_for_human"

_TOLD_OTHERWISE: Final[Mapping[str, str]] = {
    "mass brake": "group_braked:",
    "blind": "hub_blind",
    "escalation": "escalation:",
    "review": "recovery_failed:",
    "quarantined": "recovery_failed:",
}
"""Reasons of `NEEDS_HUMAN` that come with a fact of their own, and the alert which that one opens."""
_OVER: Final[Mapping[Health, tuple[Sequence[str], Sequence[str], str]]] = {
    Health.HEALTHY: (
        ("stuck_agent", "escalation", "recovery_failed"),
        ("blocked", "undecided", "cannot stop", "looping", "stopped", "task_failed", "broken chain"),
        "is healthy again",
    ),
    Health.DEGRADED: (("stuck_agent",), (), "is only degraded now"),
    Health.TERMINATED: (
        ("stuck_agent", "escalation"),
        ("blocked", "undecided", "cannot stop", "looping"),
        "was ended",
    ),
}
"""Which alerts and which reasons of `NEEDS_HUMAN` are over when an agent comes into this state."""
_RANKS: Final = {Health.STUCK: 1, Health.FAILING: 2, Health.DISCONNECTED: 3}
_PRIORITIES: Final = {
    "urgent": NoticeSeverity.ERROR,
    "high": NoticeSeverity.WARNING,
    "normal": NoticeSeverity.INFO,
    "low": NoticeSeverity.INFO,
}
_TEXTS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Opened:
    """Something people should know of, or news about it."""

    key: str
    kind: str
    at: float
    agent_id: str
    title: str
    text: str = ""
    rank: int = 0
    """How bad it is among its kind: more than before is worse."""
    severity: NoticeSeverity | None = None
    """None: as loud as its kind."""
    details: Mapping[str, str | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Closed:
    """These, if they are open, are over."""

    keys: tuple[str, ...]
    at: float
    ending: str


Change = Opened | Closed
Data = Mapping[str, Any]


def changes(event: Event) -> Sequence[Change]:
    """What an event means for the alerts; nothing, for most. Events are our own, but may be an older hub's: what cannot
    be read changes nothing."""
    reader = _READERS.get(event.type)
    if reader is None:
        return ()
    try:
        data: Data = msgspec.json.decode(event.data, type=dict)
        return reader(event, data)
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def key_of(event: Event) -> str:
    """The alert that an event opens or is news of; empty if it opens none."""
    if event.type == "NEEDS_HUMAN":
        reason = msgspec.json.decode(event.data, type=_Because).reason
        if (key := _TOLD_OTHERWISE.get(reason)) is not None:
            return f"{key}{event.agent_id}" if key.endswith(":") else key
    return next((change.key for change in changes(event) if isinstance(change, Opened)), "")


class _Because(msgspec.Struct):
    reason: str = ""


def _flip(event: Event, data: Data) -> Sequence[Change]:
    agent, now = event.agent_id, Health(data["to"])
    if now in UNWELL:
        return [_unwell(event, data, now)]
    if now not in _OVER:
        return ()  # A new life has still to show itself: what is open stays open.
    kinds, reasons, ending = _OVER[now]
    human = (f"needs_human:{agent}:{reason}" for reason in reasons)
    keys = (*(f"{kind}:{agent}" for kind in kinds), *human)
    return [Closed(keys, event.at, f"{agent} {ending}")]


def _unwell(event: Event, data: Data, now: Health) -> Opened:
    agent, cause = event.agent_id, data.get("cause")
    found = [str(finding["text"]) for finding in data.get("evidence") or ()][:_TEXTS_MAX]
    reason = str(data.get("reason") or "")
    text = "\n".join(dict.fromkeys(part for part in (reason, *found) if part))
    details: dict[str, str | float] = {"state": str(now), "was": str(data.get("from", ""))}
    if cause:
        details["cause"] = str(cause)
    title = f"{agent} is {now}" + (f" ({cause})" if cause and cause != "unknown" else "")
    return Opened(
        f"stuck_agent:{agent}",
        "stuck_agent",
        event.at,
        agent,
        line(title),
        prose(text),
        _RANKS[now],
        None,
        details,
    )


def _needs_human(event: Event, data: Data) -> Sequence[Change]:
    reason = str(data["reason"])
    if reason in _TOLD_OTHERWISE:
        return ()
    agent = event.agent_id
    title = f"{agent} waits for a human" if reason == WAITING else f"{agent} needs a human: {reason}"
    key, text = f"needs_human:{agent}:{reason}", prose(str(data.get("text") or ""))
    return [Opened(key, "needs_human", event.at, agent, line(title), text, details={"reason": line(reason)})]


def _escalation(event: Event, data: Data) -> Sequence[Change]:
    agent = event.agent_id
    details = {"intervention": str(data.get("id") or "")}
    title, text = line(f"{agent} waits for a decision"), prose(str(data.get("reason") or ""))
    return [Opened(f"escalation:{agent}", "escalation", event.at, agent, title, text, details=details)]


def _intervention(event: Event, data: Data) -> Sequence[Change]:
    if data["rung"] != "escalate" or data["stage"] not in ("answered", "dropped", "done", "failed"):
        return ()
    by = line(str(data.get("by") or ""))
    ending = (
        f"{event.agent_id}: {by or 'somebody'} decided" if data["stage"] == "answered" else "no longer asked"
    )
    keys = (f"escalation:{event.agent_id}", f"needs_human:{event.agent_id}:undecided")
    return [Closed(keys, event.at, ending)]


def _breaker(event: Event, data: Data) -> Sequence[Change]:
    name, state = line(str(data["name"])), str(data["to"])
    key = f"circuit_breaker_open:{event.agent_id}/{name}"
    if state in ("open", "forced_open"):
        title = line(f"breaker {name} of {event.agent_id} is open")
        details = {"breaker": name, "was": str(data.get("from", ""))}
        return [Opened(key, "circuit_breaker_open", event.at, event.agent_id, title, details=details)]
    if state == "half_open":
        return ()  # It is being tried: one probe is no recovery.
    return [Closed((key,), event.at, f"breaker {name} of {event.agent_id} is {state}")]


def _recovery_failed(event: Event, data: Data) -> Sequence[Change]:
    agent = event.agent_id
    details: dict[str, str | float] = {"attempts": float(data.get("attempts") or 0)}
    if task := data.get("task_id"):
        details["task_id"] = str(task)
    title, text = line(f"{agent} could not be recovered"), prose(str(data.get("reason") or ""))
    key = f"recovery_failed:{agent}"
    return [Opened(key, "recovery_failed", event.at, agent, title, text, details=details)]


def _recovered(event: Event, _: Data) -> Sequence[Change]:
    return [Closed((f"recovery_failed:{event.agent_id}",), event.at, f"{event.agent_id} was recovered")]


def _overdue(event: Event, data: Data) -> Sequence[Change]:
    message, to, sender = line(str(data["message_id"])), line(str(data["to"])), line(str(data["sender"]))
    title = f"{to} has not acknowledged a message of {sender}"
    text = f"Message {message}, priority {data['priority']}, for {float(data['overdue_for']):.0f} s."
    details = {"message_id": message, "sender": sender, "priority": str(data["priority"])}
    severity = _PRIORITIES.get(str(data["priority"]))
    key = f"message_overdue:{message}"
    return [Opened(key, "message_overdue", event.at, to, line(title), prose(text), 0, severity, details)]


def _poisoned(event: Event, data: Data) -> Sequence[Change]:
    title, text = line(f"{event.agent_id} is not judged any more"), prose(str(data.get("error") or ""))
    return [
        Opened(f"agent_poisoned:{event.agent_id}", "agent_poisoned", event.at, event.agent_id, title, text)
    ]


def _braked(event: Event, data: Data) -> Sequence[Change]:
    group, unwell, members = line(str(data["group"])), int(data["unwell"]), int(data["members"])
    key = f"group_braked:{group}"
    if not data["on"]:
        return [Closed((key,), event.at, f"{group} is not braked any more: {unwell} of {members} are unwell")]
    title = f"{unwell} of {members} agents in {group} are unwell at once"
    text = "Nothing is done to them automatically until you decide."
    details: dict[str, str | float] = {"group": group, "unwell": unwell, "members": members}
    return [Opened(key, "group_braked", event.at, "", line(title), text, unwell, None, details)]


def _hub(kind: str, title: str) -> Callable[[Event, Data], Sequence[Change]]:
    def opened(event: Event, data: Data) -> Sequence[Change]:
        return [Opened(kind, kind, event.at, "", title, prose(str(data.get("reason") or "")))]

    return opened


def _hub_well(kind: str, ending: str) -> Callable[[Event, Data], Sequence[Change]]:
    return lambda event, _: [Closed((kind,), event.at, ending)]


_READERS: Final[Mapping[str, Callable[[Event, Data], Sequence[Change]]]] = {
    "HEALTH_STATE_CHANGED": _flip,
    "NEEDS_HUMAN": _needs_human,
    "ESCALATION_TRIGGERED": _escalation,
    "INTERVENTION": _intervention,
    "CIRCUIT_BREAKER_STATE_CHANGED": _breaker,
    "RECOVERY_FAILED": _recovery_failed,
    "RECOVERY_COMPLETED": _recovered,
    "MESSAGE_OVERDUE": _overdue,
    "AGENT_POISONED": _poisoned,
    "GROUP_BRAKED": _braked,
    "HUB_BLIND": _hub("hub_blind", "the hub is blind: no verdict is to be trusted"),
    "HUB_SIGHTED": _hub_well("hub_blind", "the hub sees again"),
    "HUB_STORE_LOST": _hub("hub_store_lost", "the hub's store takes nothing"),
    "HUB_STORE_BACK": _hub_well("hub_store_lost", "the hub's store is back"),
    "HUB_BUS_LOST": _hub("hub_bus_lost", "the hub lost its bus"),
    "HUB_BUS_BACK": _hub_well("hub_bus_lost", "the hub's bus is back"),
    "HUB_TOKENS_REFUSED": _hub("hub_tokens_refused", "the hub refuses agents: their tokens are unknown"),
    "HUB_TOKENS_ACCEPTED": _hub_well("hub_tokens_refused", "no agent is refused any more"),
    "HUB_CONNECTIONS_FULL": _hub("hub_connections_full", "the hub has no room for more connections"),
    "HUB_CONNECTIONS_FREE": _hub_well("hub_connections_full", "the hub has room for connections again"),
    "HUB_ROWS_UNREADABLE": _hub("hub_rows_unreadable", "rows of the hub's store cannot be read"),
    "AUDIT_BROKEN": _hub("audit_broken", "the audit log is not what was sealed: see lifesigns audit verify"),
}
