"""The channel: a way to tell people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from lifesigns.ports.not_taken import NotTaken


class NoticeStage(StrEnum):
    """How far the thing that is told about has come."""

    OPENED = "opened"
    WORSE = "worse"
    ACKNOWLEDGED = "acknowledged"
    REMINDER = "reminder"
    RESOLVED = "resolved"


class NoticeSeverity(StrEnum):
    """How loudly people are told."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Notice:
    """What people are told, once. Title and texts are plain text, and what an agent said may be in them."""

    key: str
    """The same from `opened` to `resolved`, and after a crash: who is told twice can know that it is the same."""
    stage: NoticeStage
    severity: NoticeSeverity
    kind: str
    """The name of the alert: `stuck_agent`, `needs_human` ..."""
    title: str
    """One line."""
    text: str
    since: float
    at: float
    agents: tuple[str, ...] = ()
    """Whom it is about: the first few of them."""
    count: int = 0
    """How many they are."""
    group: str = ""
    """`host ws-1`, `provider x`, `fleet`, if it is about all of a group; empty if about one."""
    link: str = ""
    details: Mapping[str, str | float] = field(default_factory=dict)


class NotDelivered(NotTaken):
    """A channel did not take a notice."""


class Channel(Protocol):
    """Tells people. No error and no log line of a channel ever holds its secrets."""

    async def tell(self, notice: Notice) -> None:
        """Return when the other side has taken it; raises `AdapterError` if not, as `NotDelivered` if it said when to come
        again. A notice that was taken and is told again must do no harm."""

    async def close(self) -> None: ...
