"""`lifesigns breakers`: circuit breakers of all agents; `reset`, `open` and `close` turn one in its agent's process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from lifesigns.cli.acts import confirm, yes_option
from lifesigns.cli.output import print_json, print_table, words
from lifesigns.cli.requests import ListingGroup, asking, exit_if, finds_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say
from lifesigns.core.printable import clean
from lifesigns.core.words import duration

if TYPE_CHECKING:
    from lifesigns.client import Client
    from lifesigns.views import BreakerList, BreakerView
    from lifesigns.views.interventions import InterventionRecord

LOOK_EVERY: Final = 0.2
OFTEN_HARMLESS: Final = frozenset({"reset", "close"})
"""For one agent these need no confirmation: they let calls through again, and a failing one opens again by itself."""


@click.group(cls=ListingGroup, invoke_without_command=True)
@click.option("--open", "only_open", is_flag=True, help="Only those that let nothing through.")
@prints_json
@finds_a_hub
@click.pass_context
def breakers(ctx: click.Context, only_open: bool, as_json: bool, hub: str | None, token: str | None) -> None:
    """List the circuit breakers of all agents, open ones first. Exits with 1 if one is open.

    \b
      lifesigns breakers --open
      lifesigns breakers reset search-api --agent coder-7
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = (hub, token)
        return
    from lifesigns.core.signals import BreakerState

    refusing = (BreakerState.OPEN, BreakerState.FORCED_OPEN)
    with asking(hub, token) as client:
        every_one = sorted(
            _pages(client.breakers), key=lambda one: (one.state not in refusing, one.name, one.agent_id)
        )
    shown = [one for one in every_one if one.state in refusing or not only_open]
    if as_json:
        print_json({"breakers": shown})
    else:
        _print(shown, refusing, only_open=only_open)
    exit_if(any(one.state in refusing for one in shown))


def _pages(ask: Callable[..., BreakerList], *which: str) -> Iterator[BreakerView]:
    cursor = None
    while True:
        page = ask(*which, cursor=cursor)
        yield from page.breakers
        cursor = page.cursor
        if cursor is None:
            return


def _print(shown: list[BreakerView], refusing: tuple[str, ...], *, only_open: bool) -> None:
    rows = []
    for one in shown:
        style = "bold red" if one.state in refusing else "green" if one.state == "closed" else "yellow"
        rows.append((one.name, words(one.state, style), one.agent_id, one.failures, _tried_again(one)))
    none = "No breaker is open." if only_open else "No agent has reported a breaker."
    print_table(("breaker", "state", "agent", "failures", "tried again"), rows, none=none)


def _tried_again(one: BreakerView) -> str:
    """When an open one lets a call through."""
    if one.state == "forced_open":
        return "when somebody turns it"
    if one.half_open_in_s is None:
        return ""
    return f"in {duration(one.half_open_in_s)}" if one.half_open_in_s > 0 else "with the next call"


# --- turning -----------------------------------------------------------------------------------------------


def _turning(act: Callable[..., None]) -> Callable[..., None]:
    """The options that the three commands share."""
    options: tuple[Callable[..., Callable[..., None]], ...] = (
        click.pass_context,
        finds_a_hub,
        prints_json,
        yes_option,
        click.option(
            "--timeout", type=Duration(), default="1m", show_default=True, help="With --wait: how long."
        ),
        click.option(
            "--wait", is_flag=True, help="Until the agents have done it; exits with 1 if one has not."
        ),
        click.option("--reason", default="", help="Why; it is on record."),
        click.option("--agent", metavar="ID", help="Whose.  [of every agent that has a breaker NAME]"),
        click.argument("name"),
    )
    for option in options:
        act = option(act)
    return act


@breakers.command()
@_turning
def reset(ctx: click.Context, **options: Any) -> None:
    """Close the breakers NAME and reset their history, as if new.

    \b
      lifesigns breakers reset search-api --agent coder-7
    """
    _turn(ctx, "reset", **options)


@breakers.command("open", short_help="Open the breakers NAME as if they had failed.")
@_turning
def open_(ctx: click.Context, **options: Any) -> None:
    """Open the breakers NAME as if they had failed: calls are refused until their wait is over.

    \b
      lifesigns breakers open search-api --reason "It is being moved."
    """
    _turn(ctx, "open", **options)


@breakers.command()
@_turning
def close(ctx: click.Context, **options: Any) -> None:
    """Close the breakers NAME; they count from zero.

    \b
      lifesigns breakers close search-api --wait
    """
    _turn(ctx, "close", **options)


def _turn(
    ctx: click.Context,
    act: str,
    *,
    name: str,
    agent: str | None,
    reason: str,
    wait: bool,
    timeout: float,
    yes: bool,
    as_json: bool,
    hub: str | None,
    token: str | None,
) -> None:
    hub, token = hub or ctx.obj[0], token or ctx.obj[1]
    with asking(hub, token) as client:
        owners = [agent] if agent is not None else [one.agent_id for one in _pages(client.breaker, name)]
        if act not in OFTEN_HARMLESS or len(owners) > 1:
            confirm(f"{act.capitalize()} breaker {name!r} of {_named(owners)}?", yes)
        turn = {"reset": client.reset_breaker, "open": client.open_breaker, "close": client.close_breaker}[
            act
        ]
        records = turn(name, agent=agent, reason=reason).interventions
        if wait:
            records = _awaited(client, records, timeout)
    _print_turns(records, as_json)
    exit_if(wait and any(one.stage != "done" for one in records))


def _named(owners: list[str]) -> str:
    return clean(owners[0]) if len(owners) == 1 else f"{len(owners)} agents"


def _awaited(client: Client, records: list[InterventionRecord], timeout: float) -> list[InterventionRecord]:
    """The records when all of them are over, or as far as they came in time."""
    until = time.monotonic() + timeout
    while any(one.open for one in records) and time.monotonic() < until:
        time.sleep(LOOK_EVERY)
        records = [client.intervention(one.id) if one.open else one for one in records]
    return records


def _print_turns(records: list[InterventionRecord], as_json: bool) -> None:
    if as_json:
        print_json({"interventions": records})
        return
    for one in records:
        why = one.stages[-1].text if one.stage in ("failed", "dropped") else ""
        line = f"{one.agent_id}: {one.reason}, {one.stage}{': ' + why if why else ''}"
        say(f"{clean(line)}  ({one.id})")
