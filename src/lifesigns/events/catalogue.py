"""The catalogue: every event, in one table. API, stream, bus, history, alerts, audit log and the API's page
(`docs/reference/http-api.md`) are made from it.

The law: users build on types and names of fields (contract section 4). A fact may be renamed, its event may not; and we
still read what an older hub has stored, so a new field has a default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from lifesigns.core import effects as e
from lifesigns.core.effects import Fact, Rung, Stage
from lifesigns.core.health import UNWELL, Doing, FailureClass, Health
from lifesigns.core.printable import clean
from lifesigns.core.signals import BreakerState, Priority
from lifesigns.core.words import duration
from lifesigns.events import hub_facts as h
from lifesigns.events.hub_facts import OLD_SECRET, HubPart
from lifesigns.ports import NoticeSeverity as Level

THE_HUB: Final = "lifesigns"
"""Names the hub, by its policy, where an act has no other author."""
_FLIP_LEVELS: Final[Mapping[Health, Level]] = {
    Health.STUCK: Level.WARNING,
    Health.FAILING: Level.ERROR,
    Health.DISCONNECTED: Level.ERROR,
}
"""How urgent it is that an agent came into such a state."""
_OPEN: Final = frozenset({BreakerState.OPEN, BreakerState.FORCED_OPEN})
_HAS_ITS_OWN_EVENT: Final = ("escalation", "mass brake")
"""Reasons for `NeedsHuman` that come with another event: people must not see the same thing twice."""
_LATE: Final = {Priority.URGENT: Level.ERROR, Priority.HIGH: Level.WARNING}
_VERDICTS: Final = {"failed": Level.ERROR, "blocked": Level.WARNING}

AuditWords = tuple[str, str]
"""The act, and its details."""


class Row(Struct, frozen=True):
    """One event."""

    name: str
    """Its public type."""
    fact: type[Fact] | None
    """The fact it tells; None for beats, which pass unchanged."""
    when: str
    fields: Mapping[str, str]
    """The fields of the fact and their names in the event; empty if the event's type or subject tells it."""
    where: Mapping[str, object]
    """Of several events of one fact, it is this one if the fact has these values."""
    sentence: Callable[[Any], str] | None
    """The sentence for people; None if they do not need one."""
    level: Callable[[Any], Level | None] | None
    """How urgent it is; None if a person can do nothing about it: then it is no alert."""
    alert: str
    """The key of the alert that it opens or updates."""
    ends: str
    """The key of the alert that it ends. What a flip, a breaker or a brake ends depends on their values."""
    audit: Callable[[Any], AuditWords] | None
    """The words of its audit entry, if it is an audited act; of flips only decisions are (`hub/audit/records.py`)."""

    def alerting(self, fact: Fact) -> tuple[Level, str] | None:
        """Its urgency and its sentence, if it is an alert."""
        level = None if self.level is None else self.level(fact)
        return None if level is None or self.sentence is None else (level, self.sentence(fact))

    def key(self, fact: Fact) -> str:
        """The key of its alert; empty if it has none."""
        return self.alert.format(fact)


F = TypeVar("F", bound=Fact)


def _row(
    name: str,
    fact: type[F] | None,
    when: str,
    *,
    named: Mapping[str, str] | None = None,
    where: Mapping[str, object] | None = None,
    sentence: Callable[[F], str] | None = None,
    level: Level | Callable[[F], Level | None] | None = None,
    alert: str = "",
    ends: str = "",
    audit: Callable[[F], AuditWords] | None = None,
) -> Row:
    names = {} if fact is None else {name: name for name in fact.__struct_fields__ if name != "at"}
    levels = _always(level) if isinstance(level, Level) else level
    return Row(name, fact, when, names | dict(named or {}), where or {}, sentence, levels, alert, ends, audit)


def _always(level: Level) -> Callable[[Fact], Level]:
    return lambda _: level


class _HasReason(Protocol):
    @property
    def reason(self) -> str: ...


def _with_reason(what: str) -> Callable[[_HasReason], str]:
    """`what`, and the reason if there is one."""
    return lambda fact: f"{what}{_reason_suffix(fact)}"


def _reason_suffix(fact: _HasReason) -> str:
    return f": {fact.reason}" if fact.reason else ""


# --- sentences ----------------------------------------------------------------------------------------


def _flip(fact: e.Flip) -> str:
    if fact.now is Health.HEALTHY and fact.was in UNWELL:
        return f"{fact.agent_id} is healthy again: {fact.reason}"
    why = f" ({fact.cause})" if fact.now is Health.DISCONNECTED and fact.cause else ""
    return f"{fact.agent_id} is {fact.now}{why}: {fact.reason}"


def _needs_human(fact: e.NeedsHuman) -> str:
    return fact.text if fact.agent_id in fact.text else f"{fact.agent_id}: {fact.text}"


def _terminated(fact: e.Ending) -> str:
    return f"{fact.agent_id} was stopped by {fact.by or THE_HUB}: {fact.text}"


def _recovery(what: str) -> Callable[[e.Recovery], str]:
    def sentence(fact: e.Recovery) -> str:
        task = f" with task {fact.task_id}" if fact.task_id else ""
        return f"{fact.agent_id} {what}{task}{_reason_suffix(fact)}"

    return sentence


def _recovered(fact: e.Recovery) -> str:
    """The reason is that of the life before: the new one is well."""
    task = f" with task {fact.task_id}" if fact.task_id else ""
    return f"{fact.agent_id} is back{task}{f'. It was replaced: {fact.reason}' if fact.reason else ''}"


def _breaker(fact: e.BreakerFlip) -> str:
    state = "open" if fact.now in _OPEN else f"{fact.now} again"
    return f"{fact.agent_id}: its breaker {fact.name!r} is {state}"


def _overdue(fact: e.MessageOverdue) -> str:
    message = f"message {fact.message_id} of {fact.sender} ({fact.priority})"
    return f"{fact.to} has not acknowledged {message}"


def _brake(fact: e.Brake) -> str:
    if not fact.on:
        by = f"{fact.by} lets " if fact.by else ""
        return f"{fact.group}: {by}interventions go on again"
    of = f"{fact.unwell} of {fact.members}"
    return f"{fact.group}: {of} are unwell at once; nothing is done there until a person decides"


# --- levels -------------------------------------------------------------------------------------------


def _expiring(fact: h.TokenExpiring) -> str:
    token_id = fact.id.removesuffix(OLD_SECRET)
    whose = f"of {clean(fact.agents, 100)}" if fact.agents else f"of {fact.role} {fact.name!r}"
    when = {0: "within a day", 1: "in a day"}.get(fact.days_left, f"in {fact.days_left} days")
    if token_id != fact.id:
        return f"The old secret of token {token_id} {whose} is still used, and expires {when}"
    return f"{'Key' if fact.role == 'key' else 'Token'} {token_id} {whose} expires {when}"


def _flip_level(fact: e.Flip) -> Level | None:
    if fact.failure_class is FailureClass.TERMINAL and fact.now in UNWELL:
        return Level.CRITICAL
    over = fact.now is Health.HEALTHY and fact.was in UNWELL
    return Level.INFO if over else _FLIP_LEVELS.get(fact.now)


def _class_level(fact: e.FailureClassified) -> Level | None:
    """A failed recovery that people were asked about is an alert of its own."""
    return Level.CRITICAL if fact.now is FailureClass.TERMINAL and not fact.asked else None


def _needs_human_level(fact: e.NeedsHuman) -> Level | None:
    if fact.reason in _HAS_ITS_OWN_EVENT:
        return None
    return Level.WARNING if fact.reason == Doing.WAITING_FOR_HUMAN else Level.ERROR


def _breaker_level(fact: e.BreakerFlip) -> Level | None:
    if fact.now in _OPEN:
        return Level.WARNING
    return Level.INFO if fact.now is BreakerState.CLOSED else None


# --- audit entries ------------------------------------------------------------------------------------


def _step_done(fact: e.Intervention) -> AuditWords:
    return f"{fact.rung} {fact.stage}", fact.text


def _recovery_done(fact: e.Recovery) -> AuditWords:
    task = f"task {fact.task_id}" if fact.task_id else "no task"
    return f"recovery {fact.stage}", f"{task}{_reason_suffix(fact)}"


def _braked(fact: e.Brake) -> AuditWords:
    what = "group braked" if fact.on else "group released"
    return what, f"{fact.group}: {fact.unwell} of {fact.members} are unwell"


def _acknowledged(fact: h.AlertAcknowledged) -> AuditWords:
    many = f" ({fact.count} alerts)" if fact.count != 1 else ""
    return "alert acknowledged", f"{fact.key}{many}{_until(fact)}"


def _silenced(fact: h.SilenceMade) -> AuditWords:
    which = {"agents": fact.agents, "kinds": fact.kinds, "roles": fact.roles}
    scope = "; ".join(f"{name} {', '.join(some)}" for name, some in which.items() if some)
    return "silence made", f"{fact.id}: {scope}{_until(fact)}"


def _moved(fact: e.TaskMove) -> str:
    what = {
        e.MoveStage.ASKED_BACK: "is asked back",
        e.MoveStage.OFFERED: f"is offered to {fact.agent_id}",
        e.MoveStage.TAKEN: f"was taken by {fact.agent_id}",
        e.MoveStage.NOT_TAKEN: "was taken by nobody",
    }
    return f"Task {fact.task_id} of {fact.giver} {what[fact.stage]}{_reason_suffix(fact)}"


def _until(fact: h.AlertAcknowledged | h.SilenceMade) -> str:
    return (f" until {fact.until}" if fact.until else "") + _reason_suffix(fact)


# --- the table -----------------------------------------------------------------------------------------

HEALTH_STATE_CHANGED: Final = "HEALTH_STATE_CHANGED"
NUDGE_SENT: Final = "NUDGE_SENT"
AGENT_TERMINATED: Final = "AGENT_TERMINATED"
NEEDS_HUMAN: Final = "NEEDS_HUMAN"
AGENT_HEARTBEAT: Final = "AGENT_HEARTBEAT"

_INFO, _WARNING, _ERROR, _CRITICAL = Level
_CHANGE: Final = {"was": "from", "now": "to"}
_WITHOUT_PART: Final = {"part": ""}
_Began, _Over = h.HubTroubleBegan, h.HubTroubleOver

# fmt: off
_TABLE: Final = (
    # --- verdicts
    _row(HEALTH_STATE_CHANGED, e.Flip, "a verdict: the health of an agent changed", named=_CHANGE,
         sentence=_flip, level=_flip_level, alert="stuck_agent:{0.agent_id}",
         audit=lambda fact: (f"judged {fact.now}", fact.reason)),
    _row("FAILURE_CLASSIFIED", e.FailureClassified, "a failure is no longer `transient` or `recoverable`, or less than "
         "`terminal` again", named=_CHANGE, sentence=lambda fact: f"The failure of {fact.agent_id} is {fact.now}: {fact.reason}",
         level=_class_level, alert="stuck_agent:{0.agent_id}"),
    _row("FINDING_OPENED", e.FindingOpened, "a detector noticed something, or it became worse"),
    _row("FINDING_CLOSED", e.FindingClosed, "a finding is over"),
    _row("TASK_JUDGED", e.TaskVerdict, "a stalled task has `failed`, or is alive and merely `blocked` or `late`",
         sentence=lambda fact: f"Task {fact.task_id} is {fact.verdict}: {fact.reason}", level=lambda fact: _VERDICTS.get(fact.verdict)),
    _row("MESSAGE_OVERDUE", e.MessageOverdue, "a message was not acknowledged in time",
         sentence=_overdue, level=lambda fact: _LATE.get(fact.priority, _INFO), alert="message_overdue:{0.message_id}"),
    _row("CIRCUIT_BREAKER_STATE_CHANGED", e.BreakerFlip, "a breaker of an agent changed its state", named=_CHANGE,
         sentence=_breaker, level=_breaker_level, alert="circuit_breaker_open:{0.agent_id}/{0.name}"),
    _row("AGENT_POISONED", e.Poisoned, "the engine could not judge an agent, which is our bug: it leaves the agent out",
         sentence=lambda fact: f"{fact.agent_id} cannot be judged, which is a bug of lifesigns: {fact.error}",
         level=_ERROR, alert="agent_poisoned:{0.agent_id}"),
    _row("SIGNAL_REFUSED", e.Refusal, "the engine refused a signal; at most once a minute for each agent and reason"),
    # --- interventions
    _row(NUDGE_SENT, e.Intervention, "an agent is nudged", where={"rung": Rung.NUDGE, "stage": Stage.ORDERED},
         named={"text": "message"}, sentence=lambda fact: f"{fact.agent_id} is nudged: {fact.text}",
         audit=_step_done),
    _row("ESCALATION_TRIGGERED", e.Intervention, "somebody has to decide about an agent",
         where={"rung": Rung.ESCALATE, "stage": Stage.ORDERED}, named={"text": "reason"},
         sentence=lambda fact: f"{fact.agent_id}: somebody has to decide. {fact.text}", level=_ERROR,
         alert="escalation:{0.agent_id}", audit=_step_done),
    _row(AGENT_TERMINATED, e.Ending, "an agent was stopped; `checkpoint` is what was saved last",
         named={"text": "reason", "checkpoint_id": "checkpoint"}, sentence=_terminated, level=_WARNING,
         audit=_step_done),
    _row("INTERVENTION", e.Intervention, "every other stage of a step of the ladder, of a breaker turned by a person, "
         "and of a cleanup", audit=_step_done),
    _row("RECOVERY_INITIATED", e.Recovery, "an agent is respawned", where={"stage": e.Recovered.INITIATED},
         named={"checkpoint_id": "from_checkpoint"}, sentence=_recovery("is started anew"), level=_INFO,
         audit=_recovery_done),
    _row("RECOVERY_COMPLETED", e.Recovery, "the new incarnation beats", where={"stage": e.Recovered.COMPLETED},
         named={"agent_id": "new_agent_id"}, sentence=_recovered, level=_INFO,
         ends="recovery_failed:{0.agent_id}", audit=_recovery_done),
    _row("RECOVERY_FAILED", e.Recovery, "an agent could not be respawned", where={"stage": e.Recovered.FAILED},
         named={"attempt": "attempts"}, sentence=_recovery("could not be started anew"), level=_CRITICAL,
         alert="recovery_failed:{0.agent_id}", audit=_recovery_done),
    _row(NEEDS_HUMAN, e.NeedsHuman, "a person should look now",
         sentence=_needs_human, level=_needs_human_level, alert="needs_human:{0.agent_id}:{0.reason}"),
    _row("GROUP_BRAKED", e.Brake, "too many of a group are unwell at once, and the hub does nothing there; or it goes on "
         "(`on` is false), because that is over or somebody (`by`) wants it",
         sentence=_brake, level=lambda fact: _CRITICAL if fact.on else _INFO, alert="group_braked:{0.group}", audit=_braked),
    _row("CLAIM_RELEASED", e.ClaimChanged, "a task is free again", where={"stage": e.ClaimStage.RELEASED},
         audit=lambda fact: ("claim released", f"task {fact.task_id}: {fact.reason or 'given back'}")),
    _row("CLAIM_CHANGED", e.ClaimChanged, "a task was granted to an agent, or refused"),
    _row("TASK_MOVE", e.TaskMove, "a task of an unwell worker (`giver`) is `asked_back`, `offered` to another, `taken` or `not_taken`",
         sentence=_moved, audit=lambda fact: (f"task {fact.stage.replace('_', ' ')}", f"task {fact.task_id} of {fact.giver}: {fact.reason}")),
    _row("LOCK_RECOVERED", h.LockRecovered, "the lock of a lost worker was released in the issue tracker",
         sentence=lambda fact: f"The lock on {fact.lock} was released: {fact.agent_id or 'its worker'} was silent for {duration(fact.silent_for_s)}",
         audit=lambda fact: ("lock released", f"{fact.lock}, held by {', '.join(fact.assignees) or 'nobody'}, silent for {fact.silent_for_s:.0f} s")),
    # --- acts of people: `by` says whose
    _row("AGENT_PAUSED", e.Pause, "somebody paused an agent", named={"pause_for": "for_s"},
         audit=lambda fact: ("paused", "" if fact.pause_for is None else f"for {fact.pause_for:g} s")),
    _row("AGENT_RESUMED", e.Resumption, "somebody ended a pause", audit=lambda _: ("resumed", "")),
    _row("AGENT_CLEARED", e.Clearance, "somebody cleared an agent", audit=lambda _: ("cleared", "")),
    _row("RECOVERY_REQUESTED", e.RecoveryRequest, "somebody requested a recovery",
         audit=lambda fact: ("recovery requested", _with_reason(f"task {fact.task_id}")(fact))),
    _row("ALERT_ACKNOWLEDGED", h.AlertAcknowledged, "somebody acknowledged an alert", named={"agent_id": ""},
         audit=_acknowledged),
    _row("SILENCE_MADE", h.SilenceMade, "somebody silenced some alerts", audit=_silenced),
    _row("SILENCE_ENDED", h.SilenceEnded, "somebody ended a silence", audit=lambda fact: ("silence ended", fact.id)),
    _row("TOKEN_CREATED", h.TokenCreated, "somebody made a token",
         audit=lambda fact: ("token created", ", ".join(filter(None, (fact.id, fact.role, fact.name, fact.agents))))),
    _row("TOKEN_REVOKED", h.TokenRevoked, "somebody revoked a token", audit=lambda fact: ("token revoked", fact.id)),
    _row("TOKEN_ROTATED", h.TokenRotated, "somebody gave a token a new secret",
         audit=lambda fact: ("token rotated", f"{fact.id}, the old secret is good until {fact.old_until}")),
    _row("TOKEN_EXPIRING", h.TokenExpiring, "a token or key that is in use will be refused soon",
         sentence=_expiring, level=Level.WARNING, alert="token_expiring:{0.id}"),
    _row("TOKEN_NOT_EXPIRING", h.TokenNotExpiring, "it has a new secret, is revoked or not used any more, or has `expired`",
         ends="token_expiring:{0.id}"),
    _row("REFUSAL_BURST", h.RefusalBurst, "many wrong tokens, codes or sessions within a minute; once a minute",
         audit=lambda fact: ("refused many", f"{fact.count} in a minute, from {', '.join(fact.addresses)}")),
    _row("SIGNED_IN", h.SignedIn, "somebody signed in to the dashboard",
         audit=lambda fact: ("signed in", f"session {fact.id} from {fact.address}")),
    _row("SESSION_ENDED", h.SessionEnded, "somebody signed out, or was signed out",
         audit=lambda fact: ("session ended", f"{fact.id} of {fact.whose}")),
    # --- the hub itself
    _row("HUB_BLIND", e.HubVisibility, "the hub cannot see, and judges no agent", where={"blind": True},
         sentence=_with_reason("The hub cannot see"), level=_CRITICAL, alert="hub_blind"),
    _row("HUB_SIGHTED", e.HubVisibility, "the hub can see again", where={"blind": False},
         sentence=_with_reason("The hub can see again"), level=_INFO, ends="hub_blind"),
    _row("HUB_STORE_LOST", _Began, "the store is away; published, and not stored", where={"part": HubPart.STORE}, named=_WITHOUT_PART,
         sentence=_with_reason("The store is away"), level=_CRITICAL, alert="hub_store_lost"),
    _row("HUB_STORE_BACK", _Over, "the store is back", where={"part": HubPart.STORE}, named=_WITHOUT_PART,
         sentence=_with_reason("The store is back. It was away"), level=_INFO, ends="hub_store_lost"),
    _row("HUB_BUS_LOST", _Began, "the bus is away", where={"part": HubPart.BUS}, named=_WITHOUT_PART,
         sentence=_with_reason("The bus is away"), level=_CRITICAL, alert="hub_bus_lost"),
    _row("HUB_BUS_BACK", _Over, "the bus is back", where={"part": HubPart.BUS}, named=_WITHOUT_PART,
         sentence=_with_reason("The bus is back. It was away"), level=_INFO, ends="hub_bus_lost"),
    _row("HUB_TOKENS_REFUSED", _Began, "the hub refuses agents", where={"part": HubPart.TOKENS}, named=_WITHOUT_PART,
         sentence=_with_reason("Agents are refused"), level=_ERROR, alert="hub_tokens_refused"),
    _row("HUB_TOKENS_ACCEPTED", _Over, "the hub refuses no agent any more", where={"part": HubPart.TOKENS}, named=_WITHOUT_PART,
         sentence=_with_reason("No agent is refused any more. It was so"), level=_INFO, ends="hub_tokens_refused"),
    _row("HUB_CONNECTIONS_FULL", _Began, "the hub refuses new connections", where={"part": HubPart.CONNECTIONS}, named=_WITHOUT_PART,
         sentence=_with_reason("Newcomers are turned away"), level=_ERROR, alert="hub_connections_full"),
    _row("HUB_CONNECTIONS_FREE", _Over, "the hub takes connections again", where={"part": HubPart.CONNECTIONS}, named=_WITHOUT_PART,
         sentence=_with_reason("Nobody is turned away any more. It was so"), level=_INFO, ends="hub_connections_full"),
    _row("HUB_TRUCE_LONG", _Began, "the hub doubts itself again and again, and convicts no agent of silence", where={"part": HubPart.TRUCE}, named=_WITHOUT_PART,
         sentence=_with_reason("The hub convicts nobody of silence"), level=_ERROR, alert="hub_truce_long"),
    _row("HUB_TRUCE_OVER", _Over, "the hub trusts itself again", where={"part": HubPart.TRUCE}, named=_WITHOUT_PART,
         sentence=_with_reason("The hub trusts itself again. It was so"), level=_INFO, ends="hub_truce_long"),
    _row("HUB_ROWS_UNREADABLE", _Began, "rows of the store could not be read when the hub started", where={"part": HubPart.ROWS}, named=_WITHOUT_PART,
         sentence=_with_reason("Something was forgotten"), level=_ERROR, alert="hub_rows_unreadable"),
    _row("HUB_MESSAGES_FORGED", _Began, "somebody sends messages for agents that are not theirs", where={"part": HubPart.SPEAKERS}, named=_WITHOUT_PART,
         sentence=_with_reason("Messages are forged"), level=_ERROR, alert="hub_messages_forged"),
    _row("HUB_MESSAGES_GENUINE", _Over, "nobody forges messages any more", where={"part": HubPart.SPEAKERS}, named=_WITHOUT_PART,
         sentence=_with_reason("No message is forged any more. It was so"), level=_INFO, ends="hub_messages_forged"),
    _row("HUB_TOKENS_FORGED", _Began, "somebody wrote tokens into the store", where={"part": HubPart.TOKEN_ROWS}, named=_WITHOUT_PART,
         sentence=_with_reason("Tokens in the store are forged"), level=_CRITICAL, alert="hub_tokens_forged"),
    _row("HUB_TOKENS_GENUINE", _Over, "all tokens in the store are the hub's own", where={"part": HubPart.TOKEN_ROWS}, named=_WITHOUT_PART,
         ends="hub_tokens_forged"),
    _row("HUB_WITNESS_LOST", _Began, "a witness does not take the checkpoints of the audit log", where={"part": HubPart.WITNESSES}, named=_WITHOUT_PART,
         sentence=_with_reason("A witness of the audit log takes nothing"), level=_ERROR, alert="hub_witness_lost"),
    _row("HUB_WITNESS_BACK", _Over, "all witnesses take them", where={"part": HubPart.WITNESSES}, named=_WITHOUT_PART,
         sentence=_with_reason("The witnesses of the audit log have all checkpoints. It was so"), level=_INFO, ends="hub_witness_lost"),
    _row("HUB_TRACKER_LOST", _Began, "the issue tracker cannot be asked about locks", where={"part": HubPart.TRACKER}, named=_WITHOUT_PART,
         sentence=_with_reason("The issue tracker cannot be asked"), level=_ERROR, alert="hub_tracker_lost"),
    _row("HUB_TRACKER_BACK", _Over, "the issue tracker answers again", where={"part": HubPart.TRACKER}, named=_WITHOUT_PART,
         sentence=_with_reason("The issue tracker answers again. It did not"), level=_INFO, ends="hub_tracker_lost"),
    _row("HUB_LOST", _Began, "another hub on the same store is gone", where={"part": HubPart.HUBS}, named=_WITHOUT_PART,
         sentence=_with_reason("A hub is lost"), level=_ERROR, alert="hub_lost"),
    _row("HUB_BACK", _Over, "every hub on the store is there", where={"part": HubPart.HUBS}, named=_WITHOUT_PART,
         sentence=_with_reason("Every hub is there again. It was not so"), level=_INFO, ends="hub_lost"),
    _row("HUB_MEMORY_LOST", _Began, "recoveries of locks cannot be written to the MCP memory", where={"part": HubPart.MEMORY}, named=_WITHOUT_PART,
         sentence=_with_reason("Nothing can be written to the MCP memory"), level=_ERROR, alert="hub_memory_lost"),
    _row("HUB_MEMORY_BACK", _Over, "the MCP memory takes what is written again", where={"part": HubPart.MEMORY}, named=_WITHOUT_PART,
         sentence=_with_reason("The MCP memory takes what is written again. It did not"), level=_INFO, ends="hub_memory_lost"),
    _row("HUB_MESSENGER_LOST", _Began, "AI Maestro does not answer: its agents are not judged", where={"part": HubPart.MESSENGER}, named=_WITHOUT_PART,
         sentence=_with_reason("AI Maestro does not answer"), level=_ERROR, alert="hub_messenger_lost"),
    _row("HUB_MESSENGER_BACK", _Over, "AI Maestro answers again", where={"part": HubPart.MESSENGER}, named=_WITHOUT_PART,
         sentence=_with_reason("AI Maestro answers again. It did not"), level=_INFO, ends="hub_messenger_lost"),
    _row("HUB_BUS_SHARED", _Began, "another hub, with another store, hears the same bus", where={"part": HubPart.NEIGHBOURS}, named=_WITHOUT_PART,
         sentence=_with_reason("Another hub hears the same bus and has another store"), level=_CRITICAL, alert="hub_bus_shared"),
    _row("HUB_BUS_UNSHARED", _Over, "no such hub hears the bus any more", where={"part": HubPart.NEIGHBOURS}, named=_WITHOUT_PART,
         sentence=_with_reason("No other hub hears the bus any more. It was so"), level=_INFO, ends="hub_bus_shared"),
    _row("HUB_DEAD_MAN_SWITCH_LOST", _Began, "the dead-man's switch takes no ping", where={"part": HubPart.DEAD_MAN_SWITCH}, named=_WITHOUT_PART,
         sentence=_with_reason("The dead-man's switch takes no ping"), level=_ERROR, alert="hub_dead_man_switch_lost"),
    _row("HUB_DEAD_MAN_SWITCH_BACK", _Over, "the dead-man's switch takes pings again", where={"part": HubPart.DEAD_MAN_SWITCH}, named=_WITHOUT_PART,
         sentence=_with_reason("The dead-man's switch takes pings again. It did not"), level=_INFO, ends="hub_dead_man_switch_lost"),
    _row("HUB_FORGOTTEN", h.HubForgotten, "somebody forgot a hub that is lost", audit=lambda fact: ("hub forgotten", fact.name)),
    _row("HUB_DRAINED", h.HubDrained, "somebody lets a hub hand over, and not judge until it is resumed or started anew",
         audit=lambda fact: ("hub drained", fact.name)),
    _row("HUB_RESUMED", h.HubResumed, "somebody lets a drained hub judge again", audit=lambda fact: ("hub resumed", fact.name)),
    _row("HISTORY_FORGOTTEN", h.HistoryForgotten, "old events were let go of",
         audit=lambda fact: (
             "history forgotten", f"all before event {fact.first_event}, older than {fact.keep_for_s / 86400:g} days")),
    _row("AUDIT_RETIRED", h.AuditRetired, "the policy retired old entries of the audit log",
         audit=lambda fact: (
             "entries retired", f"all before {fact.before}, older than {fact.keep_for_s / 86400:g} days")),
    _row("AUDIT_BROKEN", h.AuditBroken, "the audit log was changed",
         sentence=_with_reason("The audit log is not what was sealed"), level=_CRITICAL, alert="audit_broken",
         audit=lambda fact: ("audit log found broken", fact.reason)),
    _row("AUDIT_ACCEPTED", h.AuditAccepted, "somebody wants the audit log gone on with as it is, though it was found broken", ends="audit_broken",
         sentence=lambda fact: f"The audit log is accepted as it is by {fact.by}: {fact.reason}", level=_WARNING,
         audit=lambda fact: ("audit log accepted", f"{fact.reason} (found: {fact.wrong or 'nothing'})")),
    # --- published, and not stored
    _row(AGENT_HEARTBEAT, None, "a beat, unchanged: for listeners that ask for it, at most once a second for each agent"),
    _row("GAP", h.Gap, "the hub no longer has what came after event `after`: read the state again",
         sentence=_with_reason("Something was missed")),
)
# fmt: on

CATALOGUE: Final[Mapping[str, Row]] = {row.name: row for row in _TABLE}


def _choice(rows: Sequence[Row]) -> tuple[Callable[[Fact], object], Mapping[object, Row]]:
    """The key function that selects the event of a fact, and the events by that key; None if no other key fits."""
    look = attrgetter(*rows[0].where) if rows[0].where else lambda _: None
    return look, {look(SimpleNamespace(**row.where)) if row.where else None: row for row in rows}


_CHOICES: Final = {
    fact: _choice([row for row in _TABLE if row.fact is fact])
    for fact in {row.fact for row in _TABLE if row.fact is not None}
}


def row_of(fact: Fact) -> Row:
    """The event that tells of this fact."""
    look, rows = _CHOICES[type(fact)]
    return rows.get(look(fact)) or rows[None]


def types_of(*facts: type[Fact]) -> tuple[str, ...]:
    """The events that tell of such facts."""
    return tuple(row.name for row in _TABLE if row.fact is not None and issubclass(row.fact, facts))
