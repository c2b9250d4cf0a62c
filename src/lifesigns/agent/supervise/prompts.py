"""Prompts: whether a program asks its user something, by what stands on its screen and how it waits. Pure.

A prompt is a line that stays open ("Proceed? [y/N] "), or a question with its choices below. The same words in a log are
none, so how the program waits counts as well. Both mistakes are bad, and not equally: whoever is wrongly taken to wait is
left alone, but a nudge that is typed into a prompt is an answer nobody gave. So less is needed to refuse that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lifesigns.agent.supervise.reading import Reading

LINES: Final = 12
"""As many lines of a screen are looked at: a question, its choices, and a frame around them."""
OTHERS_MAX: Final = 4
"""Lines below a question that are no choices: a frame, a hint which keys to press."""
QUESTION_MAX: Final = 200

_FRAME: Final = " \t│┃|╭╮╰╯─━┌┐└┘═║╔╗╚╝*"
_ASKS: Final = re.compile(
    r"\?\W*$|[\[(](?:y(?:es)?/n(?:o)?(?:/[^\])]*)?)[\])]|\b(?:password|passphrase|passcode)\b[^:]*:\s*$"
    r"|press (?:enter|return|any key)",
    re.IGNORECASE,
)
"""What a line that stays open says if it asks something, whoever wrote the program."""
_CHOICE: Final = re.compile(
    r"^(?:[❯>›▶→•○●◯◉]\s*)?(?:\d{1,2}[.):]|[a-z][.)]|\[[ xX*]?\]|\([ xX*]?\))\s+\S|^[❯›▶○●◯◉]\s+\S"
)


@dataclass(frozen=True, slots=True)
class Screen:
    """The end of what a program put out, and the terminal it has."""

    lines: Sequence[str]
    """Without control codes, newest last."""
    open: bool
    """Whether the last line has no end yet."""
    tty: bool = False
    """Whether its input is a terminal."""
    raw: bool = False
    """Whether it takes single keys, or hides what is typed: then somebody is expected to type."""


def question(screen: Screen, reading: Reading) -> str | None:
    """What the program waits for a human to answer; None if it does not."""
    match reading:
        case Reading.YES:
            return _asked(screen) or (_open_line(screen) if screen.tty else None) or _last_asks(screen)
        case Reading.MAYBE:
            return _asked(screen) if screen.raw else None
        case Reading.UNKNOWN:
            return _asked(screen) if screen.raw else _open_question(screen)
        case Reading.NO:
            return None


def may_ask(screen: Screen, reading: Reading) -> bool:
    """Whether what is typed now might answer something."""
    return question(screen, reading) is not None or _asked(screen) is not None


def _asked(screen: Screen) -> str | None:
    return _open_question(screen) or _menu(screen)


def _open_question(screen: Screen) -> str | None:
    """The line that stays open, if it asks something."""
    line = _open_line(screen)
    return line if line is not None and _ASKS.search(line) else None


def _open_line(screen: Screen) -> str | None:
    """The line that stays open, with the question above it if it is a mere `> `."""
    if not screen.open or not screen.lines or not screen.lines[-1].strip(_FRAME):
        return None
    line = screen.lines[-1].strip()
    above = screen.lines[-2].strip(_FRAME) if len(screen.lines) > 1 else ""
    return _cut(f"{above} {line}" if "?" in above and "?" not in line else line)


def _last_asks(screen: Screen) -> str | None:
    """Who reads after such a line asks, even if the line has its end."""
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
