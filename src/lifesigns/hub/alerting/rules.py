"""Rules: who is told of what, what is silenced, and how often anybody is told anything. As they are configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from fnmatch import fnmatchcase
from typing import Final

from lifesigns.events.alert_kinds import LOUDNESS
from lifesigns.hub.alerting.alerts import Alert
from lifesigns.ports import NoticeSeverity

MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Matcher:
    """Alerts by what they are about; what is left empty fits all."""

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


@dataclass(frozen=True, slots=True)
class Route:
    """The first route that fits an alert says who is told, and how loudly."""

    channels: tuple[str, ...]
    """None: nobody is told."""
    which: Matcher = field(default_factory=Matcher)
    at_least: NoticeSeverity = NoticeSeverity.INFO
    """It fits alerts that are at least this loud by themselves."""
    severity: NoticeSeverity | None = None
    """How loudly its channels are told; None: as loudly as the alert is by itself."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Alerts nobody wants to hear of for a while."""

    id: str
    which: Matcher
    until_at: float
    by: str
    why: str
    from_at: float = 0.0

    def active(self, now: float) -> bool:
        return self.from_at <= now < self.until_at

    def said(self) -> str:
        """As it stands on record."""
        return f"silenced by {self.by}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True, slots=True)
class Window:
    """Maintenance that comes again: on these days (0 is Monday), from this time of day, for so long."""

    name: str
    which: Matcher
    days: frozenset[int]
    starts_after: float
    """Seconds after midnight, as the clock on the wall there shows them."""
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

    def said(self) -> str:
        """As it stands on record."""
        return f"maintenance: {self.name}"


@dataclass(frozen=True, slots=True)
class Pacing:
    """How often people are told anything."""

    hold_for: float = 5.0
    """An alert that passes sooner is told to nobody. Long enough for a reconnect, short enough for nobody to mind."""
    update_every: float = 30.0
    """What is told already and got worse is told again no oftener than this."""
    repeat_every: float = 60 * MINUTE
    """While it lasts; 0: never."""
    group_from: int = 3
    """So many alerts of a kind at once are told as one."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What one channel may be told at most."""

    per_minute: int = 20
    gap: float = 1.0
    """Seconds between two notices: Slack takes one a second."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that is configured about alerting."""

    channels: Mapping[str, Rate]
    """The channels there are."""
    routes: Sequence[Route] = ()
    by_kind: Mapping[str, Route] = field(default_factory=dict)
    """For alerts that no route fits; what is not here either goes to all channels."""
    silences: Sequence[Silence] = ()
    windows: Sequence[Window] = ()
    pacing: Pacing = field(default_factory=Pacing)
    link: str = ""
    """Where the hub's page is."""

    def told(self, alert: Alert) -> Mapping[str, NoticeSeverity]:
        """Who is told of an alert, and how loudly. Channels that are not there are told nothing; if none of those that
        the tree names for a kind is there, all are told: better one bell too many than none."""
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
    """Why nobody is told of an alert now; empty if somebody is."""
    for silence in by:
        if silence.which.fits(alert) and silence.active(now):
            return silence.said()
    return ""
