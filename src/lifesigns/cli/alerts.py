"""`lifesigns alerts`: what people should know, who has taken it on, and what nobody wants to hear of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from lifesigns.cli.requests import UNWELL, asking, asks_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say
from lifesigns.errors import UsageError

if TYPE_CHECKING:
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


@click.group(invoke_without_command=True)
@severity_option
@all_option
@limit_option
@prints_json
@asks_a_hub
@click.pass_context
def alerts(ctx: click.Context, /, **_: Any) -> None:
    """Show what people should know; acknowledge and silence it. Without a command: `list`."""
    if ctx.invoked_subcommand is None:
        ctx.forward(list_)


@alerts.command("list")
@severity_option
@all_option
@limit_option
@prints_json
@asks_a_hub
@click.pass_context
def list_(
    ctx: click.Context,
    severity: str,
    everything: bool,
    limit: int,
    as_json: bool,
    hub: str | None,
    token: str | None,
) -> None:
    """What stands right now, and with --all what happened. Exits with 1 if something stands that nobody has taken on."""
    from lifesigns.cli.showing import print_json

    with asking(hub, token) as client:
        found = client.alerts(severity=severity, limit=limit)
    shown = [one for one in found.alerts if one.standing or everything]
    if as_json:
        print_json({"alerts": shown, "before": found.before if everything else None})
    else:
        _print(shown)
    ctx.exit(UNWELL if any(_calls_for_somebody(one) for one in shown) else 0)


@alerts.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", default="", help="Why; it is on record and told to the others.")
@click.option(
    "--for", "lasts_for", type=Duration(), help="Remind people again after this long: 2h.  [do not]"
)
@prints_json
@asks_a_hub
def ack(
    ids: Sequence[str],
    reason: str,
    lasts_for: float | None,
    as_json: bool,
    hub: str | None,
    token: str | None,
) -> None:
    """Take alerts on: those who were told of them are told who has them, and nobody is reminded.

    An ID is one that `lifesigns alerts` shows, the key of a notice, or that of a whole group (stuck_agent@host ws-1).
    """
    from lifesigns.cli.showing import print_json
    from lifesigns.core.printable import clean

    with asking(hub, token) as client:
        for one in ids:
            done = client.ack_alert(one, reason, for_=lasts_for)
            if as_json:
                print_json(done)
            else:
                until = f" until {done.acknowledged.until}" if done.acknowledged.until else ""
                many = "" if len(done.keys) == 1 else f" ({len(done.keys)} alerts)"
                say(clean(f"{one}{many} is acknowledged by {done.acknowledged.by}{until}."))


@alerts.command()
@click.option("--agent", "agents", multiple=True, metavar="PATTERN", help="An id, or 'build-*'; repeatable.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="As in stuck_agent; repeatable.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="Agents of this role; repeatable.")
@click.option("--for", "lasts_for", type=Duration(), required=True, help="How long: 30m, 2h.")
@click.option("--reason", required=True, help="Why; it is on record.")
@prints_json
@asks_a_hub
def silence(
    agents: Sequence[str],
    kinds: Sequence[str],
    roles: Sequence[str],
    lasts_for: float,
    reason: str,
    as_json: bool,
    hub: str | None,
    token: str | None,
) -> None:
    """Tell nobody of some alerts for a while. They are on record all the same, and told if they last longer.

    Everything that is given has to fit: --agent 'build-*' --kind stuck_agent is about build agents that are stuck.
    """
    from lifesigns.cli.showing import print_json
    from lifesigns.core.printable import clean

    if not (agents or kinds or roles):
        raise UsageError("what to silence is missing: --agent, --kind or --role; --agent '*' is everything")
    with asking(hub, token) as client:
        made = client.silence(lasts_for, reason, agents=agents, kinds=kinds, roles=roles)
    if as_json:
        print_json(made)
    else:
        say(clean(f"{made.id}: nobody hears of {_which(made)} until {made.until_at}."))


@alerts.command()
@prints_json
@asks_a_hub
def silences(as_json: bool, hub: str | None, token: str | None) -> None:
    """What nobody wants to hear of, until when, and who wants that."""
    from lifesigns.cli import showing
    from lifesigns.cli.showing import words

    with asking(hub, token) as client:
        found = client.silences()
    if as_json:
        showing.print_json(found)
    elif not found.silences:
        click.echo("Nothing is silenced.")
    else:
        rows = showing.table("id", "what", "until", "by", "why")
        for one in found.silences:
            rows.add_row(*map(words, (one.id, _which(one), one.until_at or "for good", one.by, one.reason)))
        showing.console().print(rows)


@alerts.command()
@click.argument("silence_id", metavar="ID")
@asks_a_hub
def unsilence(silence_id: str, hub: str | None, token: str | None) -> None:
    """End a silence: what it kept from people and still lasts is told now."""
    with asking(hub, token) as client:
        client.unsilence(silence_id)
    say(f"{silence_id} is over.")


def _calls_for_somebody(alert: Alert) -> bool:
    return alert.standing and alert.acknowledged is None and not alert.silenced_by


def _which(silence: SilenceView) -> str:
    named = (("", silence.kinds), ("agents ", silence.agents), ("roles ", silence.roles))
    return "; ".join(f"{what}{', '.join(names)}" for what, names in named if names) or "everything"


def _print(shown: Sequence[Alert]) -> None:
    from lifesigns.cli import showing
    from lifesigns.cli.showing import words

    if not shown:
        click.echo("Nothing stands that people should know of.")
        return
    rows, now = showing.table("id", "severity", "since", "taken on", "what"), time.time()
    for some in _together(shown):
        first = some[0]
        since = "" if first.at is None else showing.since(first.at, now)
        rows.add_row(
            words((first.group if len(some) > 1 else first.key) or first.id, most=80),
            words(first.severity, STYLES[first.severity]),
            since if first.standing else f"{since} ago",
            words(_taken_on(some), most=60),
            words(first.text if len(some) == 1 else f"{len(some)} alerts: {first.text}"),
        )
    showing.console().print(rows)


def _together(shown: Sequence[Alert]) -> Iterator[list[Alert]]:
    """Alerts that people are told of as one are one line, in the place of the first."""
    groups: dict[str, list[Alert]] = {}
    for one in shown:
        groups.setdefault(one.group if one.standing and one.group else one.id, []).append(one)
    yield from groups.values()


def _taken_on(some: Sequence[Alert]) -> str:
    taken = [one.acknowledged.by for one in some if one.acknowledged is not None]
    if taken and len(taken) < len(some):
        return f"{len(taken)} of {len(some)}, by {taken[0]}"
    if taken:
        return f"by {taken[0]}"
    return some[0].silenced_by or ("nobody" if some[0].open else "")
