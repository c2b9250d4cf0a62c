"""The channel: a way to tell people."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from lifesigns.ports.not_taken import NotTaken


class NoticeStage(StrEnum):
    """How far the alert has come."""

    OPENED = "opened"
    WORSE = "worse"
    ACKNOWLEDGED = "acknowledged"
    REMINDER = "reminder"
    RESOLVED = "resolved"


class NoticeSeverity(StrEnum):
    """How urgent a notice is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Notice(Struct, frozen=True):
    """One notice to people. Title and texts are plain text, and may quote an agent."""

    key: str
    """The same from `opened` to `resolved`, and after a crash, so that receivers can recognize a repetition."""
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
    """The agents it is about: the first few of them."""
    count: int = 0
    """How many agents it is about."""
    group: str = ""
    """`host ws-1`, `provider x`, `fleet`, if it is about a whole group; empty if about one agent."""
    link: str = ""
    details: Mapping[str, str | float] = field(default_factory=dict)


class NotDelivered(NotTaken):
    """A channel did not take a notice."""


class Channel(Protocol):
    """Tells people. A channel never puts its secrets into an error or a log line."""

    async def tell(self, notice: Notice) -> None:
        """Return when the other side has accepted it; raise `AdapterError` if not, as `NotDelivered` if it said when to
        retry. A repeated notice must do no harm."""

    async def close(self) -> None: ...
