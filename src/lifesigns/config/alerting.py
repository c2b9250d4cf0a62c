"""Alerting: what is written about who is told of what, and when, read and checked.

alerting:     how often anybody is told anything
routes:       a list: which alerts go where; the first that fits decides
silences:     a list: what nobody wants to hear of, until when
maintenance:  a list: the same, once or every week
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from lifesigns.config import readers
from lifesigns.config.durations import DAY, MINUTE, WEEK
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.readers import Reader
from lifesigns.config.sections import Section, in_a_row, one_of

ALERTS: Final = tuple(
    """
    stuck_agent needs_human escalation circuit_breaker_open recovery_failed message_overdue agent_poisoned
    group_braked hub_blind hub_store_lost hub_bus_lost hub_tokens_refused hub_connections_full hub_rows_unreadable
    audit_broken channel_down
    """.split()
)
EVENTS: Final = tuple(
    """
    HEALTH_STATE_CHANGED NEEDS_HUMAN ESCALATION_TRIGGERED CIRCUIT_BREAKER_STATE_CHANGED RECOVERY_FAILED MESSAGE_OVERDUE
    AGENT_POISONED GROUP_BRAKED HUB_BLIND HUB_STORE_LOST HUB_BUS_LOST HUB_TOKENS_REFUSED HUB_CONNECTIONS_FULL
    HUB_ROWS_UNREADABLE AUDIT_BROKEN
    """.split()
)
"""Alerts may be named by the events they are made from."""

SEED_CHANNELS: Final = frozenset({"slack", "pagerduty"})
"""Named in the tree of IMPL-REQ-003, which is read as it stands whether or not there are such channels."""

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True)
class MatcherSettings:
    """Alerts by what they are about; what is empty fits all."""

    kinds: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """Which alerts go where."""

    channels: tuple[str, ...]
    which: MatcherSettings
    at_least: str = "info"
    severity: str | None = None


@dataclass(frozen=True, slots=True)
class SilenceSettings:
    """What nobody wants to hear of between two moments."""

    id: str
    which: MatcherSettings
    until_at: float
    by: str
    why: str
    from_at: float = 0.0


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """Maintenance that comes again every week."""

    name: str
    which: MatcherSettings
    days: frozenset[int]
    starts_after: float
    lasts_for: float
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class PacingSettings:
    """How often people are told anything."""

    hold_for: float = 5.0
    update_every: float = 30.0
    repeat_every: float = 60 * MINUTE
    group_from: int = 3


# --- readers of single values ------------------------------------------------------------------------------


def moment(value: object) -> float:
    """A moment, with its offset."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(f"needs a moment such as 2026-11-20T08:00:00Z, not {readers.said(value)}")
    return at.timestamp()


def time_of_day(value: object) -> float:
    """Seconds after midnight."""
    found = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"needs a time of day such as 02:30, not {readers.said(value)}")
    return int(found[1]) * 3600.0 + int(found[2]) * 60.0


def days(value: object) -> frozenset[int]:
    """Days of the week; 0 is Monday."""
    named = readers.words(value)
    if named == ("daily",):
        return frozenset(range(7))
    return frozenset(DAYS.index(one_of(name.lower()[:3], DAYS)) for name in named)


def zone(value: object) -> tzinfo:
    """A time zone by its name."""
    name = readers.text(value)
    if name.upper() == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # Nearly nobody needs it, and everybody waits for imports.

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"needs a time zone such as Europe/Berlin or UTC, not {readers.said(value)}"
        ) from None


def group_from(value: object) -> int:
    """So many alerts at once are told as one."""
    number = readers.whole(value)
    if number < 2:
        raise ValueError(f"needs at least 2, not {number}")
    return number


def kinds(value: object) -> tuple[str, ...]:
    """Names of alerts, or of the events they are made from."""
    named = readers.words(value)
    for name in named:
        if name not in ALERTS and name not in EVENTS:
            raise ValueError(f"{readers.said(name)} {unknown(name, (*ALERTS, *EVENTS))}")
    return named


def channel_list(value: object) -> tuple[str, ...]:
    """Names of channels; an empty list is nobody."""
    return () if value in ([], ()) else readers.words(value)


# --- what there is to write --------------------------------------------------------------------------------

_WHICH: Final[Mapping[str, Reader]] = {"alerts": kinds, "agents": readers.words, "roles": readers.words}

_ROUTE: Final[Mapping[str, Reader]] = {
    **_WHICH,
    "channels": channel_list,
    "at_least": readers.severity,
    "severity": readers.severity,
}
_SILENCE: Final[Mapping[str, Reader]] = {
    **_WHICH,
    "from": moment,
    "until": moment,
    "by": readers.text,
    "why": readers.text,
}
_WINDOW: Final[Mapping[str, Reader]] = {
    **_WHICH,
    "name": readers.text,
    "from": moment,
    "until": moment,
    "days": days,
    "at": time_of_day,
    "for": readers.seconds,
    "zone": zone,
}
PACING: Final[Mapping[str, Reader]] = {
    "hold_for": readers.seconds,
    "update_every": readers.seconds,
    "repeat_every": readers.seconds,
    "group_from": group_from,
}
"""What can be written under `alerting`. For the schema."""


def routes(
    given: Sequence[Mapping[str, object]], known: Iterable[str], complaints: ErrorCollector, where: str = ""
) -> tuple[RouteSettings, ...]:
    """The routes in order. `known` are the names of all channels that are written down."""
    made = []
    for number, said in enumerate(given, 1):
        section = Section(complaints, f"routes[{number}]", where)
        read = section.read(said, _ROUTE)
        if "channels" not in read:
            if "channels" not in said:
                section.complain("channels", "is missing; an empty list tells nobody")
            continue
        check_channels(read["channels"], known, section)
        made.append(
            RouteSettings(read["channels"], _which(read), read.get("at_least", "info"), read.get("severity"))
        )
    return tuple(made)


def silences(
    given: Sequence[Mapping[str, object]], complaints: ErrorCollector, where: str = ""
) -> tuple[SilenceSettings, ...]:
    """Silences; each needs an end and somebody who wants it."""
    made = []
    for number, said in enumerate(given, 1):
        section = Section(complaints, f"silences[{number}]", where)
        read = section.read(said, _SILENCE)
        if section.complete(said, read, ("until", "by", "why")) and _in_order(read, section):
            made.append(
                SilenceSettings(
                    f"config-{number}",
                    _which(read),
                    read["until"],
                    read["by"],
                    read["why"],
                    read.get("from", 0.0),
                )
            )
    return tuple(made)


def maintenance(
    given: Sequence[Mapping[str, object]], complaints: ErrorCollector, where: str = ""
) -> tuple[SilenceSettings | WindowSettings, ...]:
    """Maintenance: once (`from`, `until`), or again and again (`days`, `at`, `for`, `zone`)."""
    made: list[SilenceSettings | WindowSettings] = []
    for number, said in enumerate(given, 1):
        section = Section(complaints, f"maintenance[{number}]", where)
        read = section.read(said, _WINDOW)
        name = read.get("name", f"maintenance {number}")
        once, again = {"from", "until"} & set(said), {"days", "at", "for", "zone"} & set(said)
        if once and again:
            section.complain(
                "",
                f"is either once (from, until) or again and again (days, at, for), not {in_a_row(once | again)}",
            )
        elif once:
            if section.complete(said, read, ("from", "until")) and _in_order(read, section):
                which = _which(read)
                made.append(
                    SilenceSettings(
                        f"maintenance-{number}", which, read["until"], "maintenance", name, read["from"]
                    )
                )
        elif section.complete(said, read, ("at", "for")) and _lasts(read["for"], section):
            every = read.get("days", frozenset(range(7)))
            made.append(
                WindowSettings(name, _which(read), every, read["at"], read["for"], read.get("zone", UTC))
            )
    return tuple(made)


def check_channels(named: Sequence[str], known: Iterable[str], section: Section) -> None:
    """Complains about names of channels that are nowhere written down."""
    names = set(known)
    for name in named:
        if name not in names and name not in SEED_CHANNELS:
            section.complain(
                "channels",
                f"{readers.said(name)} is none of the channels: {in_a_row(names) or 'there are none'}",
            )


def _in_order(read: Mapping[str, Any], section: Section) -> bool:
    if read.get("from", 0.0) >= read["until"]:
        section.complain("until", "is not after from")
        return False
    return True


def _lasts(lasts_for: float, section: Section) -> bool:
    if not 0 < lasts_for <= WEEK:
        section.complain("for", f"needs more than nothing and at most a week, not {lasts_for / DAY:g} days")
        return False
    return True


def _which(read: Mapping[str, Any]) -> MatcherSettings:
    return MatcherSettings(read.get("alerts", ()), read.get("agents", ()), read.get("roles", ()))
