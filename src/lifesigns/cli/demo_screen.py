"""The screen of `demo`: that of `watch`, with the story below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from lifesigns.cli.output import words
from lifesigns.cli.watch_board import Board
from lifesigns.cli.watch_screen import OTHER_LINES, Screen
from lifesigns.demo.narrator import StoryLine, clock

STORY_MIN: Final = 4


class StoryScreen(Screen):
    """Draws a board, and as much of the story's end as fits below it. `agents`: how many the board will have; `link`:
    to the dashboard, if there is one."""

    def __init__(self, board: Board, story: Sequence[StoryLine], agents: int, link: str) -> None:
        super().__init__(board)
        self._story = story
        self._agents = agents
        self._ways = [words(f"In your browser (once): {link}", "bold")] if link else []

    def _event_lines(self) -> list[Text]:
        room = self._console.size.height - OTHER_LINES - self._agents - 1 - len(self._ways)
        return [*self._ways, Text(), *(_line(line) for line in self._story[-max(STORY_MIN, room) :])]


def _line(line: StoryLine) -> Text:
    return Text.assemble((clock(line.at), "dim"), "  ", words(line.text, "italic dim" if line.own else ""))
