"""`lifesigns tasks`: what is worked on, how far it is, and when it should be done."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from lifesigns.cli import output
from lifesigns.cli.output import seconds, since, words
from lifesigns.cli.requests import asks_a_hub, exit_if, prints_json
from lifesigns.cli.say import say
from lifesigns.core.words import duration

if TYPE_CHECKING:
    from lifesigns.client import Client
    from lifesigns.views import TaskView

LIMIT: Final = 100
LIMIT_MAX: Final = 999
LATE: Final = frozenset({"overdue", "stalled", "blocked"})


@click.command()
@click.argument("task_id", metavar="[ID]", required=False)
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=LIMIT, show_default=True, help="At most.")
@prints_json
@asks_a_hub
def tasks(client: Client, task_id: str | None, limit: int, as_json: bool) -> None:
    """List tasks, or show the one with this ID: its agent, progress, and when it should be done.

    Exits with 1 if one of them is overdue, stalled or blocked.

    \b
      lifesigns tasks
      lifesigns tasks t-19
    """
    if task_id is not None:
        shown, more = [client.task(task_id)], False
    else:
        found = client.tasks(limit=limit)
        shown, more = list(islice(found.tasks, limit)), found.cursor is not None
    if as_json:
        output.print_json(shown[0] if task_id is not None else {"tasks": shown, "more": more})
    else:
        _print(shown, more)
    exit_if(any(task.due is not None and task.due.status in LATE for task in shown))


def _print(shown: Iterable[TaskView], more: bool) -> None:
    now, rows = (
        time.time(),
        output.table("task", "agent", "status", "done", "last progress", "expected", "description"),
    )
    for task in shown:
        due, holder = task.due, task.claim.agent_id if task.claim is not None else ""
        agent = due.agent_id if due is not None else ", ".join(task.agents) or holder
        if due is None:
            rows.add_row(words(task.task_id), words(agent), "", "", "", "", "")
            continue
        left = seconds(due.expected_at) - now
        rows.add_row(
            words(task.task_id),
            words(agent),
            words(due.status, "yellow" if due.status in LATE else ""),
            "" if due.percent is None else f"{due.percent:.0f} %",
            f"{since(due.progress_at, now)} ago" if due.progress_at else "never",
            f"in {duration(left)}" if left >= 0 else f"{duration(-left)} ago",
            words(due.description),
        )
    if rows.row_count:
        output.console().print(rows)
    else:
        say("No task is worked on, held or expected.")
    if more:
        say("There are more: --limit")
