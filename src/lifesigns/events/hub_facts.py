"""Facts of the hub itself, and of people who use it. The engine does not know of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lifesigns.core.effects import Fact


class HubPart(StrEnum):
    """What may be wrong with the hub."""

    STORE = "STORE"
    BUS = "BUS"
    TOKENS = "TOKENS"
    CONNECTIONS = "CONNECTIONS"
    ROWS = "ROWS"
    TOKEN_ROWS = "TOKEN_ROWS"  # noqa: S105 -- no password


@dataclass(frozen=True, slots=True)
class HubTroubleBegan(Fact):
    """Something is wrong with the hub itself."""

    part: HubPart
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HubTroubleOver(Fact):
    """It is right again."""

    part: HubPart
    reason: str = ""
    away_for_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenCreated(Fact):
    """Somebody made a token."""

    id: str
    role: str = ""
    name: str = ""
    agents: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class TokenRevoked(Fact):
    """Somebody revoked a token."""

    id: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class AlertAcknowledged(Fact):
    """Somebody took an alert on, or all of a group. `until` is written as people read it."""

    key: str
    by: str = ""
    reason: str = ""
    until: str | None = None
    count: int = 1
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class SilenceMade(Fact):
    """Somebody does not want to hear of some alerts until then."""

    id: str
    by: str = ""
    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    reason: str = ""
    until: str | None = None


@dataclass(frozen=True, slots=True)
class SilenceEnded(Fact):
    """Somebody ended a silence."""

    id: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class AuditRetired(Fact):
    """Entries of the audit log were retired by policy: all before number `before`."""

    before: int
    keep_for_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AuditBroken(Fact):
    """The audit log was found not to be what was sealed."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class AuditAccepted(Fact):
    """Somebody wants the audit log gone on with as it is, though it was found broken. Seals of up to `sealed` entries hold it to nothing any
    more."""

    sealed: int
    by: str = ""
    reason: str = ""
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Gap(Fact):
    """A listener cannot be told everything that came after the event it has seen last."""

    reason: str
    after: int = 0
