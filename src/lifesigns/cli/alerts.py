"""`lifesigns alerts`: what people should know, its acknowledgements, and silences."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from lifesigns.cli.output import answer, print_json, print_table, since, words
from lifesigns.cli.requests import ListingGroup, asks_a_hub, exit_if, finds_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say
from lifesigns.core.printable import clean
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from lifesigns.client import Client
    from lifesigns.views import Alert
    from lifesigns.views.alerts import SilenceView

STYLES: Final = {"critical": "bold red", "error": "red", "warning": "yellow", "info": ""}
LIMIT: Final = 50

severity_option = click.option(
    "--severity", type=click.Choice(list(STYLES)[::-1]), default="info", help="At least this severe.  [info]"
)
all_option = click.option("--all", "everything", is_flag=True, help="Also what happened, the newest first.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 1000), default=LIMIT, help=f"Of what happened, at most.  [{LIMIT}]"
)


@click.group(cls=ListingGroup, invoke_without_command=True)
@severity_option
@all_option
@limit_option
@prints_json
@finds_a_hub
@click.pass_context
def alerts(ctx: click.Context, /, **_: Any) -> None:
    """Show what people should know; acknowledge and silence it. Without a command: `list`.

    \b
      lifesigns alerts --severity error
      lifesigns alerts ack escalation:coder-7
    """
    if ctx.invoked_subcommand is None:
        ctx.forward(list_)


@alerts.command("list")
@severity_option
@all_option
@limit_option
@prints_json
@asks_a_hub
def list_(client: Client, severity: str, everything: bool, limit: int, as_json: bool) -> None:
    """What is wrong right now, and with --all what happened. Exits with 1 if something is wrong that nobody has
    acknowledged."""
    listed = client.alerts(severity=severity, limit=limit)
    shown = [one for one in listed.alerts if one.standing or everything]
    if as_json:
        print_json({"alerts": shown, "before": listed.before if everything else None})
    else:
        _print(shown)
    exit_if(any(_calls_for_somebody(one) for one in shown))


@alerts.command(short_help="Acknowledge alerts: no more reminders.")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", default="", help="Why; it is on record and told to the others.")
@click.option(
    "--for", "lasts_for", type=Duration(), help="Remind people again after this long: 2h.  [do not]"
)
@prints_json
@asks_a_hub
def ack(client: Client, ids: Sequence[str], reason: str, lasts_for: float | None, as_json: bool) -> None:
    """Acknowledge alerts: the channels say who has them, and there are no more reminders.

    An ID is one that `lifesigns alerts` shows, the key of a notice, or that of a whole group (stuck_agent@host ws-1).

    \b
      lifesigns alerts ack escalation:coder-7
    """
    for one in ids:
        done = client.ack_alert(one, reason, for_=lasts_for)
        until = f" until {done.acknowledged.until}" if done.acknowledged.until else ""
        many = "" if len(done.keys) == 1 else f" ({len(done.keys)} alerts)"
        line = clean(f"{one}{many} is acknowledged by {done.acknowledged.by}{until}.")
        answer(done, line, as_json=as_json)


@alerts.command()
@click.option("--agent", "agents", multiple=True, metavar="PATTERN", help="An id, or 'build-*'; repeatable.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="As in stuck_agent; repeatable.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="Agents of this role; repeatable.")
@click.option("--for", "lasts_for", type=Duration(), required=True, help="How long: 30m, 2h.")
@click.option("--reason", required=True, help="Why; it is on record.")
@prints_json
@asks_a_hub
def silence(
    client: Client,
    agents: Sequence[str],
    kinds: Sequence[str],
    roles: Sequence[str],
    lasts_for: float,
    reason: str,
    as_json: bool,
) -> None:
    """Tell nobody of some alerts for a while. They are on record all the same, and told if they last longer.

    All given options have to match: --agent 'build-*' --kind stuck_agent is about build agents that are stuck.

    \b
      lifesigns alerts silence --agent 'build-*' --for 2h --reason "The build host is being moved."
    """
    if not (agents or kinds or roles):
        raise UsageError("what to silence is missing: --agent, --kind or --role; --agent '*' is everything")
    made = client.silence(lasts_for, reason, agents=agents, kinds=kinds, roles=roles)
    line = clean(f"{made.id}: nobody hears of {_which(made)} until {made.until_at}.")
    answer(made, line, as_json=as_json)


@alerts.command()
@prints_json
@asks_a_hub
def silences(client: Client, as_json: bool) -> None:
    """List silences: what, until when, and by whom."""
    listed = client.silences()
    if as_json:
        print_json(listed)
        return
    rows = [(one.id, _which(one), one.until_at or "for good", one.by, one.reason) for one in listed.silences]
    print_table(("id", "what", "until", "by", "why"), rows, none="Nothing is silenced.")


@alerts.command()
@click.argument("silence_id", metavar="ID")
@asks_a_hub
def unsilence(client: Client, silence_id: str) -> None:
    """End a silence: people are told now of what still lasts.

    \b
      lifesigns alerts unsilence 3f2a9c
    """
    client.unsilence(silence_id)
    say(f"{silence_id} is over.")


def _calls_for_somebody(alert: Alert) -> bool:
    return alert.standing and alert.acknowledged is None and not alert.silenced_by


def _which(silence: SilenceView) -> str:
    named = (("", silence.kinds), ("agents ", silence.agents), ("roles ", silence.roles))
    return "; ".join(f"{what}{', '.join(names)}" for what, names in named if names) or "everything"


def _print(shown: Sequence[Alert]) -> None:
    now = time.time()
    rows = [_row(some, now) for some in _together(shown)]
    none = "Nothing stands that people should know of."
    print_table(("id", "severity", "since", "taken on", "what"), rows, none=none)


def _row(some: list[Alert], now: float) -> tuple[Text | str, ...]:
    first = some[0]
    at = "" if first.at is None else since(first.at, now)
    return (
        words((first.group if len(some) > 1 else first.key) or first.id, most=80),
        words(first.severity, STYLES[first.severity]),
        at if first.standing else f"{at} ago",
        words(_acknowledged_by(some), most=60),
        first.text if len(some) == 1 else f"{len(some)} alerts: {first.text}",
    )


def _together(shown: Sequence[Alert]) -> Iterator[list[Alert]]:
    """Alerts that are sent together are one line, in the place of the first."""
    groups: dict[str, list[Alert]] = {}
    for one in shown:
        groups.setdefault(one.group if one.standing and one.group else one.id, []).append(one)
    yield from groups.values()


def _acknowledged_by(some: Sequence[Alert]) -> str:
    taken = [one.acknowledged.by for one in some if one.acknowledged is not None]
    if taken and len(taken) < len(some):
        return f"{len(taken)} of {len(some)}, by {taken[0]}"
    if taken:
        return f"by {taken[0]}"
    return some[0].silenced_by or ("nobody" if some[0].open else "")
