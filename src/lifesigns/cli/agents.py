"""`lifesigns agents`: the agents, the neediest first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import click

from lifesigns.cli import output
from lifesigns.cli.output import words
from lifesigns.cli.requests import asks_a_hub, exit_if, prints_json
from lifesigns.cli.say import say
from lifesigns.core.health import Doing, Health

if TYPE_CHECKING:
    from lifesigns.client import Client
    from lifesigns.views import AgentHealth

LIMIT: Final = 50
LIMIT_MAX: Final = 999


@click.command()
@click.option("--state", multiple=True, help="Only those in this state; may be repeated.")
@click.option("--doing", multiple=True, help="Only those who do this; may be repeated.")
@click.option("--task", help="Only those who work on this task, or hold it.")
@click.option("--role", help="Only those of this role.")
@click.option("--host", help="Only those on this host.")
@click.option("-q", "q", metavar="TEXT", help="Only those with this in id, task, role or host.")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=LIMIT, show_default=True, help="At most.")
@click.option("--all", "everybody", is_flag=True, help="Everybody, however many they are.")
@prints_json
@asks_a_hub
def agents(client: Client, limit: int, everybody: bool, as_json: bool, **which: Any) -> None:
    """List agents, the neediest first.

    Exits with 1 if one of them is stuck, failing, disconnected or not judged any more.

    \b
      lifesigns agents --state stuck --state failing
      lifesigns agents -q coder --all --json
    """
    conditions = {name: value for name, value in which.items() if value}
    _check(which["state"], which["doing"])
    shown, more = _all(client, conditions) if everybody else _neediest(client, conditions, limit)
    if missing := client.fleet().missing if everybody else ():
        _say_missing(missing)
    if as_json:
        output.print_json({"agents": shown, "more": more})
    else:
        _print(shown, more, filtered=bool(conditions))
    exit_if(any(agent.unwell for agent in shown))


def _neediest(client: Client, which: dict[str, Any], limit: int) -> tuple[list[AgentHealth], bool]:
    """Fetches one more than it shows, to know whether there are more."""
    found = client.agent_list(sort="need", limit=limit + 1, **which)
    if found.missing:
        _say_missing(found.missing)
    return list(found.agents[:limit]), len(found.agents) > limit


def _say_missing(slots: Sequence[int]) -> None:
    named = ", ".join(map(str, slots))
    say(
        f"Nobody judges slot {named} right now: its agents are missing here. lifesigns hubs shows who is there.",
        err=True,
    )


def _all(client: Client, which: dict[str, Any]) -> tuple[list[AgentHealth], bool]:
    by_need = attrgetter("need", "state_changed_at", "agent_id")
    return sorted(client.agents(**which), key=by_need), False


def _check(states: tuple[str, ...], doings: tuple[str, ...]) -> None:
    """A state that does not exist has no agents, which looks like good news."""
    for name, given, valid in (("--state", states, Health), ("--doing", doings, Doing)):
        for word in given:
            if word not in list(valid):
                raise click.BadParameter(f"{word!r} is none of {', '.join(valid)}", param_hint=name)


def _print(shown: list[AgentHealth], more: bool, *, filtered: bool) -> None:
    now = time.time()
    rows = [
        (
            agent.agent_id,
            words(agent.state, output.STYLES[agent.state]),
            output.since(agent.state_changed_at, now),
            agent.doing,
            words(agent.task_id or "", most=40),
            output.since(agent.last_heartbeat, now),
            output.why(agent),
        )
        for agent in shown
    ]
    headings = ("agent", "state", "for", "doing", "task", "last beat", "why")
    none = "Nobody like that." if filtered else "No agent has been heard of yet."
    output.print_table(headings, rows, none=none)
    if more:
        say(f"The {len(shown)} who need somebody most. There are more: --limit, --all.")
