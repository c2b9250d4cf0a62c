"""Wording: notices as people read them. They quote agents, so texts are cut to size and cannot carry control
characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lifesigns.core.words import duration
from lifesigns.ports import NoticeStage

LINE_MAX: Final = 200
PROSE_MAX: Final = 2000
AGENTS_MAX: Final = 20
"""Names in the notice of a group; the rest is a number."""

_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, writing directions, lone surrogates: all but the new line and the tab."""


def line(text: str) -> str:
    """One line, not too long."""
    return cut(" ".join(_CONTROL.sub(" ", text).split()), LINE_MAX)


def prose(text: str) -> str:
    """A few lines, not too long."""
    return cut(_CONTROL.sub(" ", text.replace("\r\n", "\n")).strip(), PROSE_MAX)


def cut(text: str, length_max: int) -> str:
    """The text, cut to this length."""
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"


def names(agents: Sequence[str], count: int) -> str:
    """`a, b, c and 497 more`."""
    shown = agents[:AGENTS_MAX]
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return ", ".join(shown) + more


def headline(stage: NoticeStage, title: str, since: float, now: float) -> str:
    """The title of a notice about one thing."""
    match stage:
        case NoticeStage.RESOLVED:
            return line(f"Resolved: {title}, after {duration(now - since)}")
        case NoticeStage.REMINDER:
            return line(f"Still, for {duration(now - since)}: {title}")
        case NoticeStage.ACKNOWLEDGED:
            return line(f"Acknowledged: {title}")
        case _:
            return title


def group_title(count: int, many: str, group: str) -> str:
    """The title of a group: `212 agents are unwell (host ws-1)`."""
    return line(f"{count} {many} ({'whole fleet' if group == 'fleet' else group})")
