"""Alerting: the settings that say who is told what, and when.

alerting:     how often people are told anything
routes:       which alerts go where; the first match decides
silences:     alerts that nobody is told about, until when
maintenance:  the same, once or every week
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Final

from msgspec import Struct

from lifesigns.config import readers
from lifesigns.config.durations import MINUTE, WEEK
from lifesigns.config.errors import unknown
from lifesigns.config.schema import Schema, Section, entry, keys
from lifesigns.events.alert_kinds import EVENTS, KINDS

SEED_CHANNELS: Final = frozenset({"slack", "pagerduty"})
"""The tree of IMPL-REQ-003 names these; it is valid with or without such channels."""

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


# --- readers of single values ------------------------------------------------------------------------------


def moment(value: object) -> float:
    """A moment with its UTC offset."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(f"needs a moment such as 2026-11-20T08:00:00Z, not {readers.shown(value)}")
    return at.timestamp()


def time_of_day(value: object) -> float:
    """Seconds after midnight."""
    time = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", value) if isinstance(value, str) else None
    if time is None:
        raise ValueError(f"needs a time of day such as 02:30, not {readers.shown(value)}")
    return int(time[1]) * 3600.0 + int(time[2]) * 60.0


def week_days(value: object) -> frozenset[int]:
    """Days of the week; 0 is Monday."""
    named = readers.words(value)
    if named == ("daily",):
        return frozenset(range(7))
    return frozenset(DAYS.index(readers.one_of(*DAYS)(name.lower()[:3])) for name in named)


def time_zone(value: object) -> tzinfo:
    """A time zone by its name."""
    name = readers.text(value)
    if name.upper() == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # Few need it, and every import slows the start.

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"needs a time zone such as Europe/Berlin or UTC, not {readers.shown(value)}"
        ) from None


def kinds(value: object) -> tuple[str, ...]:
    """Names of alerts, or of the events they are made from."""
    named = readers.words(value)
    for name in named:
        if name not in KINDS and name not in EVENTS:
            raise ValueError(f"{readers.shown(name)} {unknown(name, (*KINDS, *EVENTS))}")
    return named


def channel_list(value: object) -> tuple[str, ...]:
    """Names of channels; an empty list tells nobody."""
    return () if value in ([], ()) else readers.words(value)


group_from = readers.within(readers.whole, lambda number: number >= 2, "at least 2")
lasts_for = readers.within(
    readers.seconds, lambda seconds: 0 < seconds <= WEEK, "more than nothing and at most a week"
)


# --- settings ----------------------------------------------------------------------------------------------


class MatcherSettings(Struct, frozen=True, kw_only=True):
    """Selects alerts; an empty field matches all."""

    alerts: Annotated[tuple[str, ...], kinds] = ()
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


class RouteSettings(MatcherSettings, frozen=True, kw_only=True):
    """Which alerts go where."""

    channels: Annotated[tuple[str, ...], channel_list, "an empty list tells nobody"]
    at_least: Annotated[str, readers.severity] = "info"
    severity: Annotated[str | None, readers.severity] = None


class SilenceSettings(MatcherSettings, frozen=True, kw_only=True):
    """Alerts that nobody is told about between two moments."""

    from_: Annotated[float, moment] = 0.0
    until: Annotated[float, moment]
    by: str
    why: str


class MaintenanceSettings(MatcherSettings, frozen=True, kw_only=True):
    """Maintenance, either once (`from_`, `until`), or every week (`days`, `at`, `for_`, `zone`)."""

    name: str = ""
    from_: Annotated[float | None, moment] = None
    until: Annotated[float | None, moment] = None
    days: Annotated[frozenset[int], week_days] = frozenset(range(7))
    at: Annotated[float | None, time_of_day] = None
    for_: Annotated[float | None, lasts_for] = None
    zone: Annotated[tzinfo, time_zone] = UTC


class PacingSettings(Struct, frozen=True):
    """How often people are told anything."""

    hold_for: float = 5.0
    update_every: float = 30.0
    repeat_every: float = 60 * MINUTE
    group_from: Annotated[int, group_from] = 3


DEFAULT_ALERTING: Final[Mapping[str, RouteSettings]] = {
    "stuck_agent": RouteSettings(channels=("slack", "pagerduty")),
    "circuit_breaker_open": RouteSettings(channels=("slack",), severity="warning"),
    "recovery_failed": RouteSettings(channels=("slack", "pagerduty"), severity="critical"),
}
"""The defaults of IMPL-REQ-003 section 7. A channel that is not configured gets nothing."""


def _check_route(section: Section, route: RouteSettings, _: Mapping[str, object]) -> None:
    """Check that every channel is configured."""
    file = section.document.value
    channels = file.get("channels") if isinstance(file, Mapping) else None
    known = set(channels) if isinstance(channels, Mapping) else set()
    for name in route.channels:
        if name not in known | SEED_CHANNELS:
            there = ", ".join(sorted(known)) or "there are none"
            section.add_error("channels", f"{readers.shown(name)} is none of the channels: {there}")


def _check_silence(
    section: Section, made: SilenceSettings | MaintenanceSettings, _: Mapping[str, object]
) -> None:
    if made.until is not None and (made.from_ or 0.0) >= made.until:
        section.add_error("until", "is not after from")


def _check_maintenance(section: Section, made: MaintenanceSettings, given: Mapping[str, object]) -> None:
    once, again = given.keys() & {"from", "until"}, given.keys() & {"days", "at", "for", "zone"}
    if once and again:
        both = ", ".join(sorted(once | again))
        section.add_error("", f"is either once (from, until) or again and again (days, at, for), not {both}")
        return
    for key in ("from", "until") if once else ("at", "for"):
        if key not in given:
            section.add_error(key, "is missing")
    _check_silence(section, made, given)


SECTIONS: Final[Schema] = {
    "alerting": keys(PacingSettings),
    "routes": [entry(RouteSettings, _check_route)],
    "silences": [entry(SilenceSettings, _check_silence)],
    "maintenance": [entry(MaintenanceSettings, _check_maintenance)],
}
