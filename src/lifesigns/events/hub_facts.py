"""Facts of the hub itself and of its users. The engine does not know them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lifesigns.core.effects import Fact

OLD_SECRET: Final = ".old"  # noqa: S105 -- no password
"""After the id of a token: its secret before it was rotated, for as long as that is still good."""


class HubPart(StrEnum):
    """What may be wrong with the hub."""

    STORE = "STORE"
    BUS = "BUS"
    TOKENS = "TOKENS"
    CONNECTIONS = "CONNECTIONS"
    ROWS = "ROWS"
    TRUCE = "TRUCE"
    SPEAKERS = "SPEAKERS"
    TOKEN_ROWS = "TOKEN_ROWS"  # noqa: S105 -- no password
    WITNESSES = "WITNESSES"
    TRACKER = "TRACKER"
    HUBS = "HUBS"
    MEMORY = "MEMORY"
    MESSENGER = "MESSENGER"
    NEIGHBOURS = "NEIGHBOURS"
    DEAD_MAN_SWITCH = "DEAD_MAN_SWITCH"


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
class TokenRotated(Fact):
    """Somebody gave a token a new secret. The old one is valid until then, as text for people."""

    id: str
    by: str = ""
    old_until: str = ""


@dataclass(frozen=True, slots=True)
class TokenExpiring(Fact):
    """A token or key that is in use will be refused soon."""

    id: str
    role: str = ""
    name: str = ""
    agents: str = ""
    expires_in_s: float = 0.0

    @property
    def days_left(self) -> int:
        """Whole ones."""
        return int(self.expires_in_s // 86400.0)


@dataclass(frozen=True, slots=True)
class TokenNotExpiring(Fact):
    """It has a new secret, is revoked or is not used any more; or it has expired."""

    id: str
    expired: bool = False


@dataclass(frozen=True, slots=True)
class RefusalBurst(Fact):
    """Many wrong tokens, codes or sessions within a minute, from these addresses among others."""

    count: int
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SignedIn(Fact):
    """Somebody opened a link to the dashboard, and is signed in."""

    id: str
    by: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class SessionEnded(Fact):
    """Somebody signed out, or ended the session of somebody else."""

    id: str
    by: str = ""
    whose: str = ""


@dataclass(frozen=True, slots=True)
class AlertAcknowledged(Fact):
    """Somebody acknowledged an alert, or all of a group. `until` is text for people."""

    key: str
    by: str = ""
    reason: str = ""
    until: str | None = None
    count: int = 1
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class SilenceMade(Fact):
    """Somebody silenced some alerts until then."""

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
class HubForgotten(Fact):
    """Somebody forgot a hub that is lost and will not come back."""

    name: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class AuditRetired(Fact):
    """The policy retired entries of the audit log: all before number `before`."""

    before: int
    keep_for_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AuditBroken(Fact):
    """The audit log differs from what was sealed."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class AuditAccepted(Fact):
    """Somebody wants the audit log gone on with as it is. Seals of up to `sealed` entries that do not fit, these changed entries, and events
    that are gone from the history before this one are no faults any more."""

    sealed: int
    changed: tuple[str, ...] = ()
    """Of each its number, and the hash of what it says now."""
    by: str = ""
    reason: str = ""
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class HistoryForgotten(Fact):
    """Events with a smaller id than `first_event` are dropped, because they are older than `keep_for_s`."""

    first_event: int
    keep_for_s: float


@dataclass(frozen=True, slots=True)
class Gap(Fact):
    """A listener cannot get everything that came after the last event it has seen."""

    reason: str
    after: int = 0


@dataclass(frozen=True, slots=True)
class LockRecovered(Fact):
    """The lock of a worker that is gone was released in the issue tracker, and its task is back in the queue."""

    agent_id: str
    """The worker that was heard last of those that may have held it."""
    task_id: str
    lock: str
    """`org/repo#12`."""
    assignees: tuple[str, ...] = ()
    silent_for_s: float = 0.0
    comment_url: str = ""
