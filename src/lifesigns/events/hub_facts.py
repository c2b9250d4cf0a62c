"""Facts of the hub itself and of its users. The engine does not know them."""

from __future__ import annotations

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


class HubTroubleBegan(Fact, frozen=True):
    """Something is wrong with the hub itself."""

    part: HubPart
    reason: str = ""


class HubTroubleOver(Fact, frozen=True):
    """It is right again."""

    part: HubPart
    reason: str = ""
    away_for_s: float = 0.0


class TokenCreated(Fact, frozen=True):
    """Somebody made a token."""

    id: str
    role: str = ""
    name: str = ""
    agents: str = ""
    by: str = ""


class TokenRevoked(Fact, frozen=True):
    """Somebody revoked a token."""

    id: str
    by: str = ""


class TokenRotated(Fact, frozen=True):
    """Somebody gave a token a new secret. The old one is valid until then, as text for people."""

    id: str
    by: str = ""
    old_until: str = ""


class TokenExpiring(Fact, frozen=True):
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


class TokenNotExpiring(Fact, frozen=True):
    """It has a new secret, is revoked or is not used any more; or it has expired."""

    id: str
    expired: bool = False


class RefusalBurst(Fact, frozen=True):
    """Many wrong tokens, codes or sessions within a minute, from these addresses among others."""

    count: int
    addresses: tuple[str, ...] = ()


class SignedIn(Fact, frozen=True):
    """Somebody opened a link to the dashboard, and is signed in."""

    id: str
    by: str = ""
    address: str = ""


class SessionEnded(Fact, frozen=True):
    """Somebody signed out, or ended the session of somebody else."""

    id: str
    by: str = ""
    whose: str = ""


class AlertAcknowledged(Fact, frozen=True):
    """Somebody acknowledged an alert, or all of a group. `until` is text for people."""

    key: str
    by: str = ""
    reason: str = ""
    until: str | None = None
    count: int = 1
    agent_id: str = ""


class SilenceMade(Fact, frozen=True):
    """Somebody silenced some alerts until then."""

    id: str
    by: str = ""
    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    reason: str = ""
    until: str | None = None


class SilenceEnded(Fact, frozen=True):
    """Somebody ended a silence."""

    id: str
    by: str = ""


class HubForgotten(Fact, frozen=True):
    """Somebody forgot a hub that is lost and will not come back."""

    name: str
    by: str = ""


class HubDrained(Fact, frozen=True):
    """Somebody let a hub hand over, and not judge until it is resumed or started anew."""

    name: str
    by: str = ""


class HubResumed(Fact, frozen=True):
    """Somebody let a drained hub judge again when it is its turn."""

    name: str
    by: str = ""


class AuditRetired(Fact, frozen=True):
    """The policy retired entries of the audit log: all before number `before`."""

    before: int
    keep_for_s: float = 0.0


class AuditBroken(Fact, frozen=True):
    """The audit log differs from what was sealed."""

    reason: str = ""


class AuditAccepted(Fact, frozen=True):
    """Somebody wants the audit log gone on with as it is. Seals of up to `sealed` entries that do not fit, these changed entries, and events
    that are gone from the history before this one are no faults any more."""

    sealed: int
    changed: tuple[str, ...] = ()
    """Of each its number, and the hash of what it says now."""
    by: str = ""
    reason: str = ""
    wrong: str = ""


class HistoryForgotten(Fact, frozen=True):
    """Events with a smaller id than `first_event` are dropped, because they are older than `keep_for_s`."""

    first_event: int
    keep_for_s: float


class Gap(Fact, frozen=True):
    """A listener cannot get everything that came after the last event it has seen."""

    reason: str
    after: int = 0


class LockRecovered(Fact, frozen=True):
    """The lock of a worker that is gone was released in the issue tracker, and its task is back in the queue."""

    agent_id: str
    """The worker that was heard last of those that may have held it."""
    task_id: str
    lock: str
    """`org/repo#12`."""
    assignees: tuple[str, ...] = ()
    silent_for_s: float = 0.0
    comment_url: str = ""
