"""Showing: what hubs and agents say, on a terminal.

The law: nothing that came from somewhere else reaches the terminal as it came. An id, a note or a reason may contain
escape sequences; `clean` takes out everything that is not seen, and texts are never read as markup.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from lifesigns.core.effects import Flip
from lifesigns.core.health import Health
from lifesigns.core.words import duration
from lifesigns.events import CATALOGUE, fact_told
from lifesigns.views import AgentHealth, EventView, Moment
from lifesigns.views.agents import NEED

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

TEXT_MAX: Final = 500
PIPE_WIDTH: Final = 400
"""Where nobody looks nothing is cut off to fit a screen."""
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


_UNSEEN: Final = re.compile(
    r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)
"""What a terminal obeys or hides, of what JSON leaves as it is: controls, and marks that turn or join text."""


def clean(text: object, most: int = TEXT_MAX) -> str:
    """A text without anything that is not seen, in one line."""
    said = " ".join(str(text)[: most * 4].split())
    seen = "".join(sign for sign in said if sign.isprintable())
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


def console(*, stderr: bool = False) -> Console:
    """Where things are shown: as wide as the terminal, or as wide as they are."""
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
    """A text of somebody else, to be shown."""
    from rich.text import Text

    return Text(clean(text, most), style=style)


def table(*headings: str, one_line: bool = False) -> Table:
    """A table without lines. At a terminal the last column has what the others leave, and may take several lines."""
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


def print_json(value: Any) -> None:
    """A value as the API would say it."""
    click.echo(_safe(msgspec.json.format(msgspec.json.encode(value), indent=2)))


def json_line(value: Any) -> str:
    """A value as one line of JSON."""
    return _safe(msgspec.json.encode(value))


def _safe(written: bytes) -> str:
    """What is not seen is spelled out, as JSON can: it may end on a terminal."""
    return _UNSEEN.sub(_spelled_out, written.decode())


def _spelled_out(unseen: re.Match[str]) -> str:
    units = unseen[0].encode("utf-16-be")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))


def seconds(at: Moment) -> float:
    """A moment of an answer in seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def since(at: Moment | None, now: float) -> str:
    """How long ago, in words."""
    return "never" if at is None else duration(now - seconds(at))


def why(agent: AgentHealth) -> str:
    """Why an agent is as it is, in one line."""
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


def counts(states: Mapping[Health, int]) -> Iterable[tuple[Health, int]]:
    """Who there is, the neediest first; nobody is left out."""
    return ((state, states[state]) for state in sorted(NEED, key=NEED.__getitem__) if states.get(state))


def told(event: EventView) -> str:
    """What happened, in a sentence; empty for what people need not read."""
    row = CATALOGUE.get(event.type)
    if row is None or row.sentence is None:
        return ""
    fact = fact_told(event.type, seconds(event.at), event.agent_id, event.data)
    if fact is None:
        return f"{event.type} {event.agent_id}"  # A hub of another version says it with other words.
    if isinstance(fact, Flip):
        cause = f" ({fact.cause})" if fact.cause else ""
        return f"{fact.agent_id}: {fact.was} → {fact.now}{cause}: {fact.reason}"
    quiet = row.level is not None and row.level(fact) is None
    return "" if quiet else row.sentence(fact)
