"""Output: text of hubs and agents on a terminal.

The law: no foreign text reaches the terminal unchanged. An id, a note or a reason may contain escape sequences;
`core/printable.py` removes them or spells them out, and we never read texts as markup. Every line goes through
`say.py`, `words` or `json_line`; `tests/security/test_terminals.py` checks that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from lifesigns.cli.say import say
from lifesigns.core.health import Health
from lifesigns.core.printable import TEXT_MAX, clean, spelled_out_json
from lifesigns.core.words import duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from lifesigns.views import AgentHealth, Moment

PIPE_WIDTH: Final = 400
"""Without a screen nothing is cut off to fit one."""
BARS: Final = "▁▂▃▄▅▆▇█"
GAP: Final = "·"

STYLES: Final[Mapping[str, str]] = {
    Health.DISCONNECTED: "bold red",
    Health.FAILING: "bold red",
    Health.STUCK: "bold magenta",
    Health.DEGRADED: "yellow",
    Health.STARTING: "cyan",
    Health.HEALTHY: "green",
    Health.TERMINATED: "dim",
}


def console(*, stderr: bool = False) -> Console:
    """The console: as wide as the terminal, or as the text."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr,
        highlight=False,
        emoji=False,
        width=None if stream.isatty() else PIPE_WIDTH,
        soft_wrap=False,
    )


def words(text: object, style: str = "", most: int = TEXT_MAX) -> Text:
    """A foreign text, safe to show."""
    from rich.text import Text

    return Text(clean(text, most), style=style)


def table(*headings: str, one_line: bool = False) -> Table:
    """A table without lines. At a terminal the last column gets the remaining width, and may take several lines."""
    from rich.table import Table

    at_terminal = sys.stdout.isatty()
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), expand=at_terminal)
    for heading in headings[:-1]:
        made.add_column(heading, no_wrap=True, overflow="ellipsis")
    made.add_column(
        headings[-1],
        no_wrap=one_line,
        overflow="ellipsis" if one_line else "fold",
        ratio=1 if at_terminal else None,
    )
    return made


def number_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table with labels at the left, numbers at the right."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        made.add_column(heading, justify="left" if heading == headings[0] else "right")
    for row in rows:
        made.add_row(*map(words, row))
    return made


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Text | object]], *, none: str = "") -> None:
    """Print a table of foreign texts; `none` is printed if there is no row."""
    from rich.text import Text

    made, empty = table(*headings), True
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else words(cell) for cell in row))
        empty = False
    if empty and none:
        say(none)
    else:
        console().print(made)


def answer(value: Any, in_words: str, *, as_json: bool) -> None:
    """Print the result of an act: as JSON, or as one line, in which foreign texts are `clean`."""
    if as_json:
        print_json(value)
    else:
        say(in_words)


def print_json(value: Any) -> None:
    """Print a value as the JSON of the API."""
    click.echo(spelled_out_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def json_line(value: Any) -> str:
    """A value as one line of JSON."""
    return spelled_out_json(msgspec.json.encode(value).decode())


def seconds(at: Moment) -> float:
    """A moment of an answer in seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def since(at: Moment | None, now: float) -> str:
    """How long ago, in words."""
    return "never" if at is None else duration(now - seconds(at))


def expiry(expires_at: Moment | None, now: float) -> str:
    """How soon a token or key expires, or how long ago it did."""
    if expires_at is None:
        return "never"
    left = seconds(expires_at) - now
    return f"in {duration(left)}" if left > 0 else f"expired {duration(-left)} ago"


def why(agent: AgentHealth) -> str:
    """Why an agent is in its state, in one line."""
    cause = f"{agent.cause}: " if agent.cause and agent.findings else ""
    left_alone = " Left alone for now." if agent.paused else ""
    again = f" Again after: lifesigns clear {agent.agent_id}" if agent.set_aside else ""
    return f"{cause}{agent.why}{left_alone}{again}".strip()


def sparkline(values: Sequence[float | None]) -> str:
    """Numbers as a row of bars, from 0 to the largest; a gap where there is none."""
    most = max((value for value in values if value is not None), default=0.0)
    top = len(BARS) - 1
    return "".join(
        GAP if value is None else BARS[round(value / most * top)] if most > 0 else BARS[0] for value in values
    )


def amount(value: float) -> str:
    """A number short enough for a column: `950`, `18.2k`, `3.4M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return f"{value:.0f}"


def counted(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
