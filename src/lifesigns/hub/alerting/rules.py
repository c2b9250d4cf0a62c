"""Rules: which alerts go to which channels, what is silenced, and how often notices go out. As configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct, field

from lifesigns.events.alert_kinds import LOUDNESS
from lifesigns.hub.alerting.alerts import Alert
from lifesigns.ports import NoticeSeverity

MINUTE: Final = 60.0


class Matcher(Struct, frozen=True):
    """Selects alerts by their subject; an empty field fits all."""

    kinds: tuple[str, ...] = ()
    """Names of alerts, or of the events they are made from."""
    agents: tuple[str, ...] = ()
    """Ids or patterns."""
    roles: tuple[str, ...] = ()

    def fits(self, alert: Alert) -> bool:
        return (
            (not self.kinds or not alert.sort.names.isdisjoint(self.kinds))
            and (not self.agents or any(fnmatchcase(alert.agent_id, pattern) for pattern in self.agents))
            and (not self.roles or alert.role in self.roles)
        )


class Route(Struct, frozen=True):
    """The first route that fits an alert names its channels and severity."""

    channels: tuple[str, ...]
    """Empty: no notice goes out."""
    which: Matcher = field(default_factory=Matcher)
    at_least: NoticeSeverity = NoticeSeverity.INFO
    """It fits alerts with at least this severity of their own."""
    severity: NoticeSeverity | None = None
    """The severity for its channels; None: the alert's own."""


class Silence(Struct, frozen=True):
    """Alerts that cause no notice for a while."""

    id: str
    which: Matcher
    until_at: float
    by: str
    why: str
    from_at: float = 0.0

    def active(self, now: float) -> bool:
        return self.from_at <= now < self.until_at

    def text(self) -> str:
        """As it stands on record."""
        return f"silenced by {self.by}" + (f": {self.why}" if self.why else "")


class Window(Struct, frozen=True):
    """Recurring maintenance: on these days (0 is Monday), from this time of day, for so long."""

    name: str
    which: Matcher
    days: frozenset[int]
    starts_after: float
    """Seconds after midnight, local time."""
    lasts_for: float
    zone: tzinfo = UTC

    def active(self, now: float) -> bool:
        today = datetime.fromtimestamp(now, self.zone)
        for back in range(int(self.lasts_for // 86400) + 2):
            day = today.date() - timedelta(days=back)
            if day.weekday() in self.days:
                hours, minutes = divmod(int(self.starts_after // MINUTE), 60)
                began = datetime(day.year, day.month, day.day, hours, minutes, tzinfo=self.zone).timestamp()
                if began <= now < began + self.lasts_for:
                    return True
        return False

    def text(self) -> str:
        """As it stands on record."""
        return f"maintenance: {self.name}"


class Pacing(Struct, frozen=True):
    """How often notices go out."""

    hold_for: float = 5.0
    """A shorter alert causes no notice. Long enough for a reconnect, short enough to matter to no one."""
    update_every: float = 30.0
    """The least time between a notice and the next one that it got worse."""
    repeat_every: float = 60 * MINUTE
    """While it lasts; 0: never."""
    group_from: int = 3
    """So many alerts of a kind at once share a notice."""


class Rate(Struct, frozen=True):
    """The most notices that one channel gets."""

    per_minute: int = 20
    gap: float = 1.0
    """Seconds between two notices: Slack takes one a second."""


class Rules(Struct, frozen=True):
    """The whole configuration of alerting."""

    channels: Mapping[str, Rate]
    """The configured channels."""
    routes: Sequence[Route] = ()
    by_kind: Mapping[str, Route] = field(default_factory=dict)
    """For alerts that fit no route; a kind that is missing here goes to all channels."""
    silences: Sequence[Silence] = ()
    windows: Sequence[Window] = ()
    pacing: Pacing = field(default_factory=Pacing)
    link: str = ""
    """The address of the dashboard."""

    def channels_for(self, alert: Alert) -> Mapping[str, NoticeSeverity]:
        """The channels of an alert, and the severity for each. Unknown channels are skipped; if none of those
        configured for a kind exists, all get it: better one bell too many than none."""
        loud = alert.severity or alert.sort.severity
        for route in self.routes:
            if LOUDNESS[loud] >= LOUDNESS[route.at_least] and route.which.fits(alert):
                return self._through(route, loud, alert)
        route = self.by_kind.get(alert.kind, Route(tuple(self.channels)))
        through = self._through(route, loud, alert)
        if not through and route.channels:
            return self._through(Route(tuple(self.channels), severity=route.severity), loud, alert)
        return through

    def _through(self, route: Route, loud: NoticeSeverity, alert: Alert) -> dict[str, NoticeSeverity]:
        severity = route.severity or loud
        down = alert.details.get("channel") if alert.kind == "channel_down" else None
        return {name: severity for name in route.channels if name in self.channels and name != down}


def silenced(alert: Alert, by: Sequence[Silence | Window], now: float) -> str:
    """Why an alert is silenced now; empty if it is not."""
    for silence in by:
        if silence.which.fits(alert) and silence.active(now):
            return silence.text()
    return ""
