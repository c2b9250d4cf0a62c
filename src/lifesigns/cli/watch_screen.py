"""The screen of `watch`: draws a board on a terminal, reads keys, and restores the terminal at the end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from lifesigns.cli import output
from lifesigns.cli.output import words
from lifesigns.cli.watch_board import Board, counts, sentence_of
from lifesigns.core.health import Doing
from lifesigns.core.words import duration
from lifesigns.views import AgentHealth, FleetView

STALE_AFTER: Final = 6.0
"""Three requests without an answer."""
OTHER_LINES: Final = 3
"""Two above the table, and its heading."""
EVENT_LINES: Final = 4
LATE_FROM: Final = 0.25
LOUD: Final = "bold white on red"


class Screen:
    """Draws a board. Use it in a `with`, which restores the terminal."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._console = output.console()
        self._ended = asyncio.Event()
        self._stack = ExitStack()
        self._live = Live(
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    @property
    def rows(self) -> int:
        """How many agents fit."""
        return max(1, min(999, self._console.size.height - OTHER_LINES - len(self._event_lines())))

    async def ended(self) -> None:
        """Wait until the user ends it."""
        await self._ended.wait()

    def draw(self) -> None:
        self._live.update(Group(*self._lines(time.time())), refresh=True)

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        with self._stack as stack:
            stack.enter_context(_keys(self._key))
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self._ended.set)
                stack.callback(loop.remove_signal_handler, number)
            loop.add_signal_handler(signal.SIGWINCH, self._resized)
            stack.callback(loop.remove_signal_handler, signal.SIGWINCH)
            stack.enter_context(self._live)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _key(self, key: str) -> None:
        if key in ("q", "Q", "\x03", "\x04", ""):
            self._ended.set()

    def _resized(self) -> None:
        self._board.changed.set()
        self._board.happened.set()

    # --- drawing --------------------------------------------------------------------------------------

    def _lines(self, now: float) -> Iterator[RenderableType]:
        board = self._board
        yield _headline(board)
        yield self._state(now)
        if board.fleet is not None:
            yield self._table(now)
        for line in self._event_lines():
            yield _fitted(line)

    def _event_lines(self) -> list[Text]:
        """The last events."""
        sentences = ((event, sentence_of(event)) for event in self._board.events)
        return [words(f"{event.at[11:19]}  {text}", "dim") for event, text in sentences if text][
            -EVENT_LINES:
        ]

    def _state(self, now: float) -> Text:
        """How far the data can be trusted; troubles are loud."""
        board = self._board
        if board.seen_at is None:
            if board.away_since is None:
                return Text("asking ...", style="dim")
            waited = duration(now - board.away_since)
            line = f" No hub answers for {waited}: {board.trouble}. Start one with: lifesigns serve "
            return _fitted(words(line, LOUD))
        if board.away_since is not None or now - board.seen_at > STALE_AFTER:
            waited = duration(now - board.seen_at)
            why = f": {board.trouble}" if board.trouble else ""
            return _fitted(words(f" The hub is away for {waited}. This is how it was{why} ", LOUD))
        assert board.fleet is not None
        return _hub_line(board.fleet)

    def _table(self, now: float) -> RenderableType:
        wide = self._console.size.width >= 100
        headings = ["agent", "state", "for", "doing", "task"]
        headings += ["beat", "tok/min", "$/h"] if wide else ["beat"]
        rows = output.table(*headings, "why", one_line=True)
        for agent in self._board.agents[: self.rows]:
            rows.add_row(*self._row(agent, now, wide=wide))
        return rows

    def _row(self, agent: AgentHealth, now: float, *, wide: bool) -> list[Text | str]:
        style = output.STYLES[agent.state]
        row: list[Text | str] = [
            words(agent.agent_id, style, most=40),
            words(agent.state, style),
            output.since(agent.state_changed_at, now),
            words(agent.doing, "bold yellow" if agent.doing is Doing.WAITING_FOR_HUMAN else ""),
            words(agent.task_id or "", most=24),
            output.since(agent.last_heartbeat, now),
        ]
        if wide:
            rate = self._board.rate(agent.agent_id)
            row.append("·" if rate is None else output.amount(rate.tokens_per_minute))
            row.append("·" if rate is None else f"{rate.cost_per_hour:.2f}")
        return [*row, words(output.why(agent))]


def _headline(board: Board) -> Text:
    line = Text.assemble(("lifesigns", "bold"), "  ", words(board.hub, "dim"))
    if board.fleet is not None:
        line.append(f"   {board.fleet.agents:,} agents")
        for state, count in counts(board.fleet.states):
            line.append(f"  {count:,} {state}", style=output.STYLES[state])
        if waiting := board.fleet.doing.get(Doing.WAITING_FOR_HUMAN):
            line.append(f"  {waiting:,} waiting for a human", style="bold yellow")
    line.append("   q quits", style="dim")
    return _fitted(line)


def _hub_line(fleet: FleetView) -> Text:
    hub = fleet.hub
    wrong = list(_wrong(fleet))
    if wrong:
        return _fitted(words(f" {'; '.join(wrong)} ", LOUD))
    bus = "" if hub.bus == "none" else f", bus {hub.bus}"
    doubt = f", doubts itself {hub.score} of 8" if hub.score else ""
    return _fitted(
        words(
            f"hub ok, store {hub.store}{bus}, deadlines seen {hub.look_late_s * 1000:.1f} ms late{doubt}",
            "dim",
        )
    )


def _wrong(fleet: FleetView) -> Iterator[str]:
    for alert in fleet.needs:
        if alert.need is not None and not alert.agent_id:
            yield f"{alert.need.title}: {alert.need.text}"
    if fleet.hub.look_late_s > LATE_FROM:
        yield f"the hub is overloaded: it sees deadlines {fleet.hub.look_late_s:.1f} s late"


def _fitted(line: Text) -> Text:
    """Cut to one line."""
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


# --- keys ---------------------------------------------------------------------------------------------


@contextmanager
def _keys(press: Callable[[str], None]) -> Iterator[None]:
    """Report every key at once, without an echo; Ctrl-C stays a signal, Ctrl-Z does nothing."""
    import termios
    import tty

    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(stdin)

    def read() -> None:
        with suppress(BlockingIOError):
            pressed = os.read(stdin, 64).decode(errors="replace")
            for key in pressed or ("",):
                press(key)

    try:
        tty.setcbreak(stdin)
        modes = termios.tcgetattr(stdin)
        modes[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(stdin, termios.TCSANOW, modes)
        loop.add_reader(stdin, read)
        yield
    finally:
        loop.remove_reader(stdin)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
