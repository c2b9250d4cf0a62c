"""Reading: from an event to the alerts it opens and closes.

An alert has a key made from its kind and its subject, so that the event that ends it can name it without knowing how it
began. What the engine says twice, as a fact of its own and as `NEEDS_HUMAN`, is one alert here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from lifesigns.core.effects import (
    Brake,
    BreakerFlip,
    Fact,
    FailureClassified,
    Flip,
    HubVisibility,
    Intervention,
    MessageOverdue,
    NeedsHuman,
    Poisoned,
    Recovery,
    Rung,
    Stage,
)
from lifesigns.core.health import UNWELL, Cause, FailureClass, Health
from lifesigns.core.signals import BreakerState
from lifesigns.events import CATALOGUE, fact_of, row_of, types_of
from lifesigns.events.alert_kinds import OWN_FACTS, kind_of
from lifesigns.events.hub_facts import (
    OLD_SECRET,
    AuditAccepted,
    AuditBroken,
    HubTroubleBegan,
    HubTroubleOver,
    TokenExpiring,
    TokenNotExpiring,
)
from lifesigns.hub.alerting.wording import line, prose
from lifesigns.ports import Event, NoticeSeverity

WAITING: Final = "waiting_for_human"

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
"""The alerts and the reasons of `NEEDS_HUMAN` that end when an agent enters this state."""
_RANKS: Final = {Health.STUCK: 1, Health.FAILING: 2, Health.DISCONNECTED: 3}
_HUB: Final[Mapping[str, tuple[str, str]]] = {
    "hub_blind": ("the hub is blind: no verdict is to be trusted", "the hub sees again"),
    "hub_store_lost": ("the hub's store takes nothing", "the hub's store is back"),
    "hub_bus_lost": ("the hub lost its bus", "the hub's bus is back"),
    "hub_tokens_refused": (
        "the hub refuses agents: their tokens are unknown",
        "no agent is refused any more",
    ),
    "hub_connections_full": (
        "the hub has no room for more connections",
        "the hub has room for connections again",
    ),
    "hub_truce_long": (
        "the hub doubts itself again and again: deaths are found late or not at all",
        "the hub trusts itself again",
    ),
    "hub_rows_unreadable": (
        "rows of the hub's store cannot be read",
        "all rows of the hub's store can be read",
    ),
    "hub_messages_forged": (
        "somebody speaks for agents that are not theirs",
        "nobody speaks for others any more",
    ),
    "hub_tokens_forged": (
        "somebody has written tokens into the hub's store; they are refused",
        "all tokens in the hub's store are its own",
    ),
    "hub_witness_lost": (
        "a witness of the audit log takes no checkpoints",
        "all witnesses of the audit log have its checkpoints",
    ),
    "hub_tracker_lost": (
        "the issue tracker cannot be asked: locks stay as they are",
        "the issue tracker answers again",
    ),
    "hub_lost": ("another hub on the same store is gone", "every hub on the store is there"),
    "hub_memory_lost": (
        "nothing can be written to the MCP memory: recoveries of locks are in the hub's own history only",
        "the MCP memory takes what is written again",
    ),
    "hub_messenger_lost": (
        "AI Maestro does not answer: its agents are not judged",
        "AI Maestro answers again",
    ),
    "hub_bus_shared": (
        "another hub with another store hears the same bus: both judge the same agents",
        "no other hub hears the bus any more",
    ),
    "hub_dead_man_switch_lost": (
        "the dead-man's switch takes no ping: the alarm outside rings, or will",
        "the dead-man's switch takes pings again",
    ),
    "audit_broken": (
        "the audit log is not what was sealed: see lifesigns audit verify",
        "somebody accepts the audit log as it is",
    ),
}
"""Alerts about the hub itself: their titles, and their endings."""
_TEXTS_MAX: Final = 5


class AlertOpening(Struct, frozen=True):
    """An alert begins, or has news."""

    key: str
    kind: str
    at: float
    agent_id: str
    title: str
    text: str = ""
    rank: int = 0
    """Severity within its kind: a higher one is worse."""
    severity: NoticeSeverity | None = None
    """None: that of its kind."""
    details: Mapping[str, str | float] = field(default_factory=dict)
    level: NoticeSeverity | None = None
    """The level in the catalogue; None: that of its notices."""
    sentence: str = ""
    """The sentence of the catalogue."""


class AlertClosing(Struct, frozen=True):
    """These alerts, if they are open, are over."""

    keys: tuple[str, ...]
    at: float
    ending: str


Change = AlertOpening | AlertClosing


def changes(event: Event) -> Sequence[Change]:
    """The changes of alerts by an event; mostly none. An unreadable event changes nothing: it may be of another
    version."""
    fact = fact_of(event) if event.type in _READ else None
    match fact:
        case Flip() | FailureClassified():
            return _flip(fact)
        case NeedsHuman():
            return () if fact.reason in OWN_FACTS else [_needs_human(fact)]
        case Intervention():
            return _step(fact)
        case BreakerFlip():
            return _breaker(replace(fact, name=line(fact.name)))
        case Recovery():
            return _recovery(fact)
        case MessageOverdue():
            return [_overdue(replace(fact, message_id=line(fact.message_id)))]
        case Poisoned():
            title, text = line(f"{fact.agent_id} is not judged any more"), prose(fact.error)
            return [_opened(fact, fact.agent_id, title, text)]
        case Brake():
            return [_brake(replace(fact, group=line(fact.group)))]
        case HubVisibility() | HubTroubleBegan() | HubTroubleOver() | AuditBroken() | AuditAccepted():
            return [_hub(fact)]
        case TokenExpiring():
            return [_expiring(fact)]
        case TokenNotExpiring():
            what = (
                "has expired; agents that still show it are told of as refused"
                if fact.expired
                else "is in order"
            )
            return [AlertClosing((row_of(fact).ends.format(fact),), fact.at, f"token {fact.id} {what}")]
    return ()


_READ: Final = {row.name for row in CATALOGUE.values() if row.alert or row.ends} | {*types_of(Intervention)}


def key_of(event: Event) -> str:
    """The alert that an event opens or updates; empty if none."""
    fact = fact_of(event) if event.type in _READ else None
    if isinstance(fact, NeedsHuman) and fact.reason in OWN_FACTS:
        return OWN_FACTS[fact.reason].format(fact)
    return next((change.key for change in changes(event) if isinstance(change, AlertOpening)), "")


def _opened(
    fact: Fact,
    agent_id: str,
    title: str,
    text: str = "",
    rank: int = 0,
    details: Mapping[str, str | float] | None = None,
) -> AlertOpening:
    row = row_of(fact)
    key, (level, sentence) = row.key(fact), row.alerting(fact) or (None, "")
    return AlertOpening(
        *(key, kind_of(key), fact.at, agent_id, title, text, rank),
        details=details or {},
        level=level,
        sentence=prose(sentence),
    )


def _flip(flip: Flip | FailureClassified) -> Sequence[Change]:
    if isinstance(flip, FailureClassified):
        return [_terminal(flip)] if row_of(flip).alerting(flip) else ()
    agent, now = flip.agent_id, flip.now
    if now in UNWELL:
        return [_unwell(flip)]
    if now not in _OVER:
        return ()  # A new incarnation has yet to prove itself: open alerts stay open.
    kinds, reasons, ending = _OVER[now]
    human = (f"needs_human:{agent}:{reason}" for reason in reasons)
    keys = (*(f"{kind}:{agent}" for kind in kinds), *human)
    return [AlertClosing(keys, flip.at, f"{agent} {ending}")]


def _unwell(flip: Flip) -> AlertOpening:
    found = [finding.text for finding in flip.evidence][:_TEXTS_MAX]
    text = "\n".join(dict.fromkeys(part for part in (flip.reason, *found) if part))
    details: dict[str, str | float] = {"state": str(flip.now), "was": str(flip.was)}
    if flip.cause:
        details["cause"] = str(flip.cause)
    if flip.failure_class:
        details |= {"failure_class": str(flip.failure_class), "class_reason": line(flip.class_reason)}
    known = f" ({flip.cause})" if flip.cause and flip.cause is not Cause.UNKNOWN else ""
    title = line(f"{flip.agent_id} is {flip.now}{known}")
    opened = _opened(flip, flip.agent_id, title, prose(text), _RANKS[flip.now], details=details)
    if flip.failure_class is FailureClass.TERMINAL:
        return replace(opened, severity=NoticeSeverity.CRITICAL)
    return opened


def _terminal(fact: FailureClassified) -> AlertOpening:
    """Worse than any state: nothing more is done without a person."""
    details: dict[str, str | float] = {"failure_class": str(fact.now), "class_reason": line(fact.reason)}
    title = line(f"the failure of {fact.agent_id} is terminal")
    rank = 1 + max(_RANKS.values())
    opened = _opened(fact, fact.agent_id, title, prose(f"{fact.reason}."), rank, details=details)
    return replace(opened, severity=opened.level)


def _needs_human(fact: NeedsHuman) -> AlertOpening:
    agent, reason = fact.agent_id, fact.reason
    title = f"{agent} waits for a human" if reason == WAITING else f"{agent} needs a human: {reason}"
    return _opened(fact, agent, line(title), prose(fact.text), details={"reason": line(reason)})


def _step(step: Intervention) -> Sequence[Change]:
    agent = step.agent_id
    if step.rung is not Rung.ESCALATE:
        return ()
    if step.stage is Stage.ORDERED:
        title = line(f"{agent} waits for a decision")
        return [_opened(step, agent, title, prose(step.text), details={"intervention": step.id})]
    if step.stage not in (Stage.ANSWERED, Stage.DROPPED, Stage.DONE, Stage.FAILED):
        return ()
    by = line(step.by) or "somebody"
    ending = f"{agent}: {by} decided" if step.stage is Stage.ANSWERED else "no longer asked"
    return [AlertClosing((f"escalation:{agent}", f"needs_human:{agent}:undecided"), step.at, ending)]


def _breaker(flip: BreakerFlip) -> Sequence[Change]:
    name, state = flip.name, flip.now
    if state in (BreakerState.OPEN, BreakerState.FORCED_OPEN):
        title = line(f"breaker {name} of {flip.agent_id} is open")
        return [_opened(flip, flip.agent_id, title, details={"breaker": name, "was": str(flip.was)})]
    if state is BreakerState.HALF_OPEN:
        return ()  # One probe is no recovery.
    return [AlertClosing((row_of(flip).key(flip),), flip.at, f"breaker {name} of {flip.agent_id} is {state}")]


def _recovery(fact: Recovery) -> Sequence[Change]:
    agent, row = fact.agent_id, row_of(fact)
    if row.ends:
        return [AlertClosing((row.ends.format(fact),), fact.at, f"{agent} was recovered")]
    if not row.alert:
        return ()
    details: dict[str, str | float] = {"attempts": float(fact.attempt)}
    if fact.task_id:
        details["task_id"] = fact.task_id
    title = line(f"{agent} could not be recovered")
    return [_opened(fact, agent, title, prose(fact.reason), details=details)]


def _overdue(fact: MessageOverdue) -> AlertOpening:
    message, to, sender = fact.message_id, line(fact.to), line(fact.sender)
    title = line(f"{to} has not acknowledged a message of {sender}")
    text = prose(f"Message {message}, priority {fact.priority}, for {fact.overdue_for:.0f} s.")
    details = {"message_id": message, "sender": sender, "priority": str(fact.priority)}
    opened = _opened(fact, to, title, text, details=details)
    return replace(opened, severity=opened.level)


def _brake(fact: Brake) -> Change:
    group, unwell, members = fact.group, fact.unwell, fact.members
    if not fact.on:
        ending = f"{group} is not braked any more: {unwell} of {members} are unwell"
        return AlertClosing((row_of(fact).key(fact),), fact.at, ending)
    title = line(f"{unwell} of {members} agents in {group} are unwell at once")
    text = "Nothing is done to them automatically until you decide."
    details: dict[str, str | float] = {"group": group, "unwell": unwell, "members": members}
    return _opened(fact, "", title, text, unwell, details=details)


def _expiring(fact: TokenExpiring) -> AlertOpening:
    text = f"Then whoever shows it is refused. {mend_of(fact.id, fact.role)}"
    details: dict[str, str | float] = {"token_id": fact.id, "expires_in_s": fact.expires_in_s}
    if fact.agents:
        details["agents"] = line(fact.agents)
    sentence = row_of(fact).alerting(fact)
    title = fact.id if sentence is None else sentence[1]
    return _opened(fact, "", line(title), prose(text), int(fact.days_left == 0), details=details)


def mend_of(token_id: str, role: str) -> str:
    """How to renew a token or key that expires, or has expired."""
    if role == "key":
        return "Make another one and give it to them: lifesigns key create"
    return f"Give it a new secret: lifesigns token rotate {token_id.removesuffix(OLD_SECRET)}"


def _hub(
    fact: HubVisibility | HubTroubleBegan | HubTroubleOver | AuditBroken | AuditAccepted,
) -> Change:
    row = row_of(fact)
    if row.ends:
        return AlertClosing((row.ends,), fact.at, _HUB[row.ends][1])
    return _opened(fact, "", _HUB[row.alert][0], prose(fact.reason))
