"""Subjects: each agent has its own on a bus, so that the bus's server can restrict who may speak for which agent.

    heartbeat.<id>                              beats of one agent
    lifesigns.signal.<id>                       reports of one agent, sent once and not answered
    lifesigns.report.<relay>.<number>.<id>      reports of one agent, answered on lifesigns.kept.<relay>.<id> when stored
    heartbeat.<relay>                           beats of many agents of a process
    lifesigns.signal.<relay>.<number>           their reports, answered on lifesigns.kept.<relay>
    lifesigns.order.<id>                        the hub's orders for one agent

The id is always the end, so that ids with dots stay distinct: `lifesigns.report.*.*.coder-7` is coder-7 and no other
agent. A relay is one token of the subject, which begins with `relay:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

BEATS: Final = "heartbeat"
SIGNALS: Final = "lifesigns.signal"
REPORTS: Final = "lifesigns.report"
KEPT: Final = "lifesigns.kept"
ORDERS: Final = "lifesigns.order"
STOPPING: Final = "stopping"
"""The status of an agent's last beat on a bus: who listens without a hub knows its end only by that."""
APART: Final = b"apart"
"""The answer to a refused relay: each of its agents must speak under its own subject."""

_RELAY: Final = r"relay:[A-Za-z0-9_:-]{1,200}"
_relay: Final = re.compile(_RELAY).fullmatch
_numbered: Final = re.compile(rf"lifesigns\.signal\.({_RELAY})\.([0-9]{{1,18}})").fullmatch
_own: Final = re.compile(rf"lifesigns\.report\.({_RELAY})\.([0-9]{{1,18}})\.(.+)").fullmatch


class Place(NamedTuple):
    """What a subject says about its messages."""

    speaker: str | None
    """The only agent that the message may speak for; None on the subjects of relays."""
    relay: str = ""
    number: int | None = None
    """The number to answer by, if the sender wants an answer."""

    @property
    def kept_on(self) -> str:
        """Where its sender waits for the confirmation that it is stored."""
        return (
            f"{KEPT}.{self.relay}" if self.speaker is None else f"{KEPT}.{self.relay}.{ending(self.speaker)}"
        )


def ending(agent_id: str) -> str:
    """An id as the end of a subject. No token of a subject may be empty, so we write the dots of an id that has an
    empty part as `%2E`; no id has a percent sign."""
    if agent_id[:1] == "." or agent_id[-1:] == "." or ".." in agent_id:
        return agent_id.replace(".", "%2E")
    return agent_id


def of_beats(subject: str) -> Place:
    """The place of a message on `heartbeat.>`."""
    end = subject[len(BEATS) + 1 :]
    return Place(None, end) if _relay(end) else Place(_id(end))


def of_reports(subject: str) -> Place:
    """The place of a message on `lifesigns.signal.>` and `lifesigns.report.>`."""
    if own := _own(subject):
        return Place(_id(own[3]), own[1], int(own[2]))
    if numbered := _numbered(subject):
        return Place(None, numbered[1], int(numbered[2]))
    if not subject.startswith(SIGNALS):
        return Place("")  # No agent: a subject of `lifesigns.report` needs a relay and a number.
    end = subject[len(SIGNALS) + 1 :]
    return Place(None, end) if _relay(end) else Place(_id(end))


def sender(subject: str) -> str:
    """Who pays for a message on this subject: a relay, or the first part of the id that it names. A server's permissions are
    for a subject and those below it, so whoever may speak for `a.b` may often speak for `a.c`."""
    parts = subject.split(".", 5)
    place = 1 if parts[0] == BEATS else 4 if len(parts) > 4 and parts[1] == "report" else 2
    return parts[place].partition("%2E")[0] if len(parts) > place else ""


def of_senders(names: Iterable[str]) -> str:
    """A regular expression of the subjects of these senders, but for malformed ones."""
    before = r"(?:heartbeat|lifesigns\.signal|lifesigns\.report\.[^. \r\n]+\.[^. \r\n]+)"
    return rf"{before}\.(?:{'|'.join(map(re.escape, names))})(?:(?:\.|%2E)[^ \r\n]*+)?"


def _id(end: str) -> str:
    return end.replace("%2E", ".") if "%" in end else end
