"""Subjects: where on a bus whose words are, so that its server can say who may speak for whom.

    heartbeat.<id>                              beats of one agent
    lifesigns.signal.<id>                       reports of one agent, said once and not answered
    lifesigns.report.<relay>.<number>.<id>      reports of one agent, answered on lifesigns.kept.<relay>.<id> when they are kept
    heartbeat.<relay>                           beats of many agents of a process
    lifesigns.signal.<relay>.<number>           their reports, answered on lifesigns.kept.<relay>
    lifesigns.order.<id>                        what the hub wants of one agent

The id is always the end, so that ids with dots cannot be mistaken for each other: `lifesigns.report.*.*.coder-7` is coder-7 and
nobody else. A relay is one word, which begins with `relay:`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

BEATS: Final = "heartbeat"
SIGNALS: Final = "lifesigns.signal"
REPORTS: Final = "lifesigns.report"
KEPT: Final = "lifesigns.kept"
ORDERS: Final = "lifesigns.order"
APART: Final = b"apart"
"""Answered to a relay that is not heard: each of its agents has to speak under its own subject."""

_RELAY: Final = r"relay:[A-Za-z0-9_:-]{1,200}"
_relay: Final = re.compile(_RELAY).fullmatch
_numbered: Final = re.compile(rf"lifesigns\.signal\.({_RELAY})\.([0-9]{{1,18}})").fullmatch
_own: Final = re.compile(rf"lifesigns\.report\.({_RELAY})\.([0-9]{{1,18}})\.(.+)").fullmatch


class Place(NamedTuple):
    """What a subject says of a message."""

    speaker: str | None
    """The only agent that may be spoken for; None on the subjects of relays."""
    relay: str = ""
    number: int | None = None
    """By which it is answered, if that is wished for."""

    @property
    def kept_on(self) -> str:
        """Where its sender waits to be told that it is kept."""
        return (
            f"{KEPT}.{self.relay}" if self.speaker is None else f"{KEPT}.{self.relay}.{ending(self.speaker)}"
        )


def ending(agent_id: str) -> str:
    """An id as the end of a subject. A word of a subject is never empty, so an id with an empty one has its dots written as
    `%2E`; no id has a percent sign."""
    if agent_id[:1] == "." or agent_id[-1:] == "." or ".." in agent_id:
        return agent_id.replace(".", "%2E")
    return agent_id


def of_beats(subject: str) -> Place:
    """Whose beats come on `heartbeat.>`."""
    end = subject[len(BEATS) + 1 :]
    return Place(None, end) if _relay(end) else Place(_id(end))


def of_reports(subject: str) -> Place:
    """Whose reports come on `lifesigns.signal.>` and `lifesigns.report.>`."""
    if found := _own(subject):
        return Place(_id(found[3]), found[1], int(found[2]))
    if found := _numbered(subject):
        return Place(None, found[1], int(found[2]))
    if not subject.startswith(SIGNALS):
        return Place("")  # Nobody's: what is on `lifesigns.report` names a relay and a number.
    end = subject[len(SIGNALS) + 1 :]
    return Place(None, end) if _relay(end) else Place(_id(end))


def _id(end: str) -> str:
    return end.replace("%2E", ".") if "%" in end else end
