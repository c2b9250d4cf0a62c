"""Repetition: whether a program's output says anything new. Pure.

A line is new if we have not seen it lately. Times, durations, ids and attempt numbers are left out before we compare;
percents and line numbers are kept, because they are how a progress bar advances. So a spinner, the frames of a
bouncing bar, a screen that is drawn again and a block of lines in a circle all become known after their first round,
and a test runner, a compiler or a log that goes on never does.

What only repeats itself may still be all there is to say: one line of a health check, every ten seconds. So it needs
many rounds, and an error, at least three lines, or no line at all (a spinner only draws its own one again).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct

from lifesigns.agent.supervise.tail import CONTROL
from lifesigns.core.digests import steady

KNOWN_MAX: Final = 512
"""How many lines we remember: a longer circle is not seen."""
PIECES_MAX: Final = 400
"""How many of the newest lines we read at one look."""
PIECE_MAX: Final = 400
ROUNDS: Final = 10
"""How often a line must have come since anything new."""
CIRCLE_MIN: Final = 3
"""Lines in a circle that are more than a routine message, and the one it answers."""

_BREAK: Final = re.compile(r"[\r\n\x08]|\x1b\[[0-9;?]*[A-HJKSTfdsu]")
"""Where another line begins on a screen: the cursor moves, or something is erased."""
_ADVANCING: Final = re.compile(r"(?<=\d)(?= ?%)|(?<=\b[Ll]ine)(?=[ =:#])|(?<=\b[Ll]ines)(?=[ =:#])")
"""Inside of numbers that `steady` would leave out, but that are progress."""
_ERROR: Final = re.compile(
    r"(?<!\bno )(?<!\b0 )(?:errors?\b|exception|traceback|fail(?:ed|ure|ures)?\b|fatal|panic|denied|refused"
    r"|cannot|could not|unable to|timed out|not found)|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)


class Novelty(StrEnum):
    """What a program's newest output says."""

    NEW = "new"
    ROUTINE = "routine"
    """It repeats itself, but not so often or not in such a way that it means anything."""
    REPETITION = "repetition"
    REPEATED_ERROR = "repeated_error"


class Look(Struct, frozen=True):
    """The result of one look at the output, and the line that shows it."""

    novelty: Novelty
    line: str = ""


class Repetition:
    """Remembers the lines of one program, within bounds."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._rounds: dict[str, int] = {}
        """How often each line came since anything new."""
        self._error = self._line = ""
        self._ends_lines = False

    def look(self, fresh: str) -> Look:
        """The output since the last look, from the beginning of its first line."""
        pieces = list(_pieces(fresh))
        if self._learn(pieces):
            self._begin_anew()
            return Look(Novelty.NEW)
        self._ends_lines = self._ends_lines or "\n" in fresh
        for same, piece in pieces:
            if same in self._rounds or len(self._rounds) < KNOWN_MAX:
                self._rounds[same] = self._rounds.get(same, 0) + 1
            if not self._error and _ERROR.search(piece):
                self._error = piece
            self._line = piece
        if max(self._rounds.values(), default=0) < ROUNDS:
            return Look(Novelty.ROUTINE)
        if self._error:
            return Look(Novelty.REPEATED_ERROR, self._error)
        if self._ends_lines and len(self._rounds) < CIRCLE_MIN:
            return Look(Novelty.ROUTINE)
        return Look(Novelty.REPETITION, self._line)

    def _begin_anew(self) -> None:
        self._rounds = {}
        self._error = self._line = ""
        self._ends_lines = False

    def _learn(self, pieces: list[tuple[str, str]]) -> bool:
        """Whether one of them is new. All of them are known from now on."""
        new = False
        for same, _ in pieces:
            new = new or same not in self._known
            self._known.pop(same, None)
            self._known[same] = None
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        return new


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Its newest lines, each as it is compared and as it is shown."""
    for piece in _BREAK.split(text)[-PIECES_MAX:]:
        whole = CONTROL.sub("", piece).strip()
        if shown := whole[:PIECE_MAX]:
            grows = (
                "" if len(whole) <= PIECE_MAX else f" {len(whole)}"
            )  # A row of dots, one more for each test.
            yield steady(_ADVANCING.sub("\N{MIDDLE DOT}", shown)) + grows, shown
