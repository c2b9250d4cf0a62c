"""Prompts: whether a program asks its user something, by its screen and the way it waits. Pure.

A prompt is a line that stays open ("Proceed? [y/N] "), or a question with its choices below. The same words in a log
are no prompt, so the way the program waits counts as well. Both mistakes are bad, but not equally: a program that
only seems to wait is left alone, but a nudge typed into a prompt is an answer that no person gave. So we need less
evidence to hold a nudge back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from lifesigns.agent.supervise.reads_input import ReadsInput

LINES: Final = 12
"""How many lines of a screen we read: a question, its choices, and a frame around them."""
OTHERS_MAX: Final = 4
"""Lines below a question that are not choices: a frame, a hint about keys."""
QUESTION_MAX: Final = 200

_FRAME: Final = " \t│┃|╭╮╰╯─━┌┐└┘═║╔╗╚╝*"
_ASKS: Final = re.compile(
    r"\?\W*$|[\[(](?:y(?:es)?/n(?:o)?(?:/[^\])]*)?)[\])]|\b(?:password|passphrase|passcode)\b[^:]*:\s*$"
    r"|press (?:enter|return|any key)",
    re.IGNORECASE,
)
"""What an open line says if it asks something, in any program."""
_CHOICE: Final = re.compile(
    r"^(?:[❯>›▶→•○●◯◉]\s*)?(?:\d{1,2}[.):]|[a-z][.)]|\[[ xX*]?\]|\([ xX*]?\))\s+\S|^[❯›▶○●◯◉]\s+\S"
)


class Screen(Struct, frozen=True):
    """The end of a program's output, and its terminal."""

    lines: Sequence[str]
    """Without control codes, newest last."""
    open: bool
    """Whether the last line has no end yet."""
    tty: bool = False
    """Whether its input is a terminal."""
    raw: bool = False
    """Whether it reads single keys, or hides typed text: then it expects a person to type."""


def question(screen: Screen, reading: ReadsInput) -> str | None:
    """The question that waits for a human's answer; None if there is none."""
    match reading:
        case ReadsInput.YES:
            return _asked(screen) or (_open_line(screen) if screen.tty else None) or _last_asks(screen)
        case ReadsInput.MAYBE:
            return _asked(screen) if screen.raw else None
        case ReadsInput.UNKNOWN:
            return _asked(screen) if screen.raw else _open_question(screen)
        case ReadsInput.NO:
            return None


def may_ask(screen: Screen, reading: ReadsInput) -> bool:
    """Whether text typed now might answer something."""
    return question(screen, reading) is not None or _asked(screen) is not None


def _asked(screen: Screen) -> str | None:
    return _open_question(screen) or _menu(screen)


def _open_question(screen: Screen) -> str | None:
    """The open line, if it asks something."""
    line = _open_line(screen)
    return line if line is not None and _ASKS.search(line) else None


def _open_line(screen: Screen) -> str | None:
    """The open line, with the question above it if it is a mere `> `."""
    if not screen.open or not screen.lines or not screen.lines[-1].strip(_FRAME):
        return None
    line = screen.lines[-1].strip()
    above = screen.lines[-2].strip(_FRAME) if len(screen.lines) > 1 else ""
    return _cut(f"{above} {line}" if "?" in above and "?" not in line else line)


def _last_asks(screen: Screen) -> str | None:
    """A program that reads after such a line asks, even if the line has ended."""
    last = next((line.strip(_FRAME) for line in reversed(screen.lines) if line.strip(_FRAME)), "")
    return _cut(last) if last.endswith(("?", ":")) or _ASKS.search(last) else None


def _menu(screen: Screen) -> str | None:
    """A question with choices below it, at the end of the screen."""
    lines = [line.strip(_FRAME) for line in screen.lines[-LINES:]]
    at = max((place for place, line in enumerate(lines) if "?" in line), default=None)
    if at is None:
        return None
    below = [line for line in lines[at + 1 :] if line]
    choices = sum(_CHOICE.search(line) is not None for line in below)
    return _cut(lines[at]) if choices >= 2 and len(below) - choices <= OTHERS_MAX else None


def _cut(text: str) -> str:
    return text[:QUESTION_MAX]
