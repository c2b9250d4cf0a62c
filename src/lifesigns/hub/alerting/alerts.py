"""Alerts: what is open now.

A closed alert stays for a moment (`hold_for`): if it opens again within it, it is the same alert and causes no notice.
One without a notice so far ends without one. So a short flap disturbs no one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from lifesigns.events.alert_kinds import KINDS, Kind
from lifesigns.hub.alerting.reading import AlertClosing, AlertOpening
from lifesigns.hub.alerting.wording import line
from lifesigns.ports import NoticeSeverity

OPEN_MAX: Final = 5_000
"""Alerts held one by one: five megabytes, and 50 ms to go through. Beyond that they are only counted, by kind."""

LAPSE_AFTER: Final = 4 * 3600.0
"""When an alert without an ending event counts as settled: half a working day without news."""

OTHERS: Final = "(others)"


class AlertSubject(Struct, frozen=True):
    """The attributes of an agent that matter for alerts."""

    role: str = ""
    host: str = ""
    provider: str = ""


NOBODY: Final = AlertSubject()


class Ack(Struct, frozen=True):
    """A person has acknowledged an alert: no reminders, unless it gets worse."""

    by: str
    at: float
    why: str = ""
    until_at: float = float("inf")
    """From then on there are reminders again."""

    def text(self) -> str:
        """As text for people."""
        return f"by {self.by}" + (f": {self.why}" if self.why else "")


@dataclass(slots=True)
class Alert:
    """Something people should know of, as long as it lasts."""

    key: str
    kind: str
    agent_id: str
    title: str
    text: str
    since: float
    news_at: float
    rank: int = 0
    news: int = 1
    """Rises with everything worth a notice."""
    severity: NoticeSeverity | None = None
    role: str = ""
    host: str = ""
    provider: str = ""
    closed_at: float | None = None
    ending: str = ""
    silenced_by: str = ""
    """Why it is silenced; empty if it is not."""
    ack: Ack | None = None
    count: int = 1
    """How many alerts this stands for: itself, or those beyond `OPEN_MAX`."""
    alert_groups: dict[str, str] = field(default_factory=dict)
    """By channel the group it is in there."""
    details: dict[str, str | float] = field(default_factory=dict)
    level: NoticeSeverity | None = None
    """How urgent it is on lists and screens; None: as its notices."""
    sentence: str = ""
    """Its sentence on lists and screens."""

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    @property
    def sort(self) -> Kind:
        return KINDS[self.kind]

    @property
    def groups(self) -> Iterator[str]:
        """The groups it may go into, the smallest first."""
        if self.host:
            yield f"host {self.host}"
        if self.provider:
            yield f"provider {self.provider}"
        yield "fleet"

    def due_at(self, hold_for: float) -> float:
        """When it has lasted long enough for a notice."""
        return self.since if self.sort.at_once else self.since + hold_for

    def gone_at(self, hold_for: float) -> float:
        """When it has been over for long enough."""
        return float("inf") if self.closed_at is None else self.closed_at + hold_for


class Alerts:
    """The open alerts, and those just closed. `changed` gets the key of each that changes."""

    def __init__(self, who: Callable[[str], AlertSubject | None], changed: Callable[[str], None]) -> None:
        self._who = who
        self._changed = changed
        self._alerts: dict[str, Alert] = {}
        self._closing: dict[str, None] = {}
        """Closed and not yet gone: an index, to avoid a search of all."""

    def __iter__(self) -> Iterator[Alert]:
        return iter(self._alerts.values())

    def __len__(self) -> int:
        return len(self._alerts)

    def get(self, key: str) -> Alert | None:
        return self._alerts.get(key)

    def put(self, alert: Alert) -> None:
        """Restore one from the store."""
        self._alerts[alert.key] = alert
        if not alert.is_open:
            self._closing[alert.key] = None

    @property
    def closing(self) -> list[Alert]:
        """Closed and not yet gone."""
        return [self._alerts[key] for key in self._closing]

    def open(self, change: AlertOpening) -> None:
        """Open an alert, or update it."""
        alert = self._alerts.get(change.key)
        if alert is not None:
            self._news(alert, change)
        elif len(self._alerts) >= OPEN_MAX:
            self._crowd(change)
        else:
            who = self._who(change.agent_id) or NOBODY
            self._alerts[change.key] = Alert(
                change.key,
                change.kind,
                change.agent_id,
                change.title,
                change.text,
                change.at,
                change.at,
                change.rank,
                severity=change.severity,
                role=line(who.role),
                host=line(who.host),
                provider=line(who.provider),
                details=dict(change.details),
                level=change.level,
                sentence=change.sentence,
            )
            self._changed(change.key)

    def close(self, change: AlertClosing) -> None:
        """Close alerts. One beyond `OPEN_MAX` is subtracted from the count of the others."""
        for key in change.keys:
            alert = self._alerts.get(key)
            if alert is not None:
                self._end(alert, change.at, change.ending)
        crowd = self._alerts.get(f"{change.keys[0].partition(':')[0]}:{OTHERS}")
        if crowd is not None and crowd.is_open and change.keys[0] not in self._alerts:
            crowd.count -= 1
            self._changed(crowd.key)
            if crowd.count <= 0:
                self._end(crowd, change.at, "the others are over")

    def lapse(self, now: float) -> None:
        """Close after a while the alerts that no event will close."""
        for alert in self._alerts.values():
            lapses = alert.sort.lapses or alert.key.endswith(OTHERS)
            if lapses and alert.is_open and now - alert.news_at >= LAPSE_AFTER:
                self._end(alert, now, f"{alert.title}: nothing more was heard of it")

    def drop_gone(self, now: float, hold_for: float) -> list[Alert]:
        """Drop those that have been over for long enough."""
        gone = [alert for alert in self.closing if alert.gone_at(hold_for) <= now]
        for alert in gone:
            del self._alerts[alert.key], self._closing[alert.key]
            self._changed(alert.key)
        return gone

    def _news(self, alert: Alert, change: AlertOpening) -> None:
        if not alert.is_open:
            self._reopen(alert)
        if change.rank > alert.rank or alert.sort.at_once:
            alert.news += 1
            alert.ack = None  # The acknowledgement was for less than this.
        alert.rank, alert.news_at, alert.severity = change.rank, change.at, change.severity
        alert.title, alert.text, alert.details = change.title, change.text, dict(change.details)
        alert.level, alert.sentence = change.level, change.sentence
        self._changed(alert.key)

    def _crowd(self, change: AlertOpening) -> None:
        key = f"{change.kind}:{OTHERS}"
        crowd = self._alerts.get(key)
        if crowd is None:
            title = line(f"{change.title}, and others")
            crowd = Alert(key, change.kind, "", title, change.text, change.at, change.at, count=0)
            self._alerts[key] = crowd
        if not crowd.is_open:
            self._reopen(crowd)
            crowd.count = 0
        crowd.count += 1
        crowd.news_at = change.at
        self._changed(key)

    def _end(self, alert: Alert, at: float, ending: str) -> None:
        if alert.is_open:
            alert.closed_at, alert.ending = max(at, alert.since), ending
            self._closing[alert.key] = None
            self._changed(alert.key)

    def _reopen(self, alert: Alert) -> None:
        alert.closed_at, alert.ending = None, ""
        self._closing.pop(alert.key, None)
