"""Acting on agents: `nudge`, `escalate`, `terminate`, `pause`, `resume`, `clear`, `decide`.

Each is told when it is kept, with the id under which it is on record, and says who did it: the name of the token.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lifesigns.cli.requests import asking, asks_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say
from lifesigns.core.printable import spelled_out
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.views import AgentHealth
    from lifesigns.views.interventions import InterventionRecord

agent_argument = click.argument("agent_id", metavar="ID")
reason_option = click.option("--reason", required=True, help="Why; it is on record and told to the agent.")


@click.command()
@agent_argument
@click.argument("message", default="")
@prints_json
@asks_a_hub
def nudge(agent_id: str, message: str, as_json: bool, hub: str | None, token: str | None) -> None:
    """Tell an agent something at its next turn boundary; without a MESSAGE it is told the facts about itself."""
    with asking(hub, token) as client:
        _print_act(client.nudge(agent_id, message), as_json)


@click.command()
@agent_argument
@reason_option
@prints_json
@asks_a_hub
def escalate(agent_id: str, reason: str, as_json: bool, hub: str | None, token: str | None) -> None:
    """Ask the orchestrator or a person to decide about an agent."""
    with asking(hub, token) as client:
        _print_act(client.escalate(agent_id, reason), as_json)


@click.command()
@agent_argument
@reason_option
@click.option("--respawn", is_flag=True, help="Another life follows, from its last good checkpoint.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@prints_json
@asks_a_hub
def terminate(
    agent_id: str, reason: str, respawn: bool, yes: bool, as_json: bool, hub: str | None, token: str | None
) -> None:
    """End an agent: it is asked to save, and forced if it does not."""
    with asking(hub, token) as client:
        health = client.agent(agent_id)
        confirm(f"End {agent_id}, which is {health.state} and {health.doing}?", yes)
        _print_act(client.terminate(agent_id, reason, respawn=respawn), as_json)


@click.command()
@agent_argument
@click.option("--for", "pause_for", type=Duration(), help="How long: 30m, 2h.  [until it is resumed]")
@prints_json
@asks_a_hub
def pause(agent_id: str, pause_for: float | None, as_json: bool, hub: str | None, token: str | None) -> None:
    """Leave an agent alone: it is watched, but nothing is done about it."""
    with asking(hub, token) as client:
        health = client.pause(agent_id, pause_for)
    until = health.paused_until or "it is resumed"
    _print_health(health, f"is left alone until {until}", as_json)


@click.command()
@agent_argument
@prints_json
@asks_a_hub
def resume(agent_id: str, as_json: bool, hub: str | None, token: str | None) -> None:
    """End a pause."""
    with asking(hub, token) as client:
        health = client.resume(agent_id)
    _print_health(health, "is looked after again", as_json)


@click.command()
@agent_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@prints_json
@asks_a_hub
def clear(agent_id: str, yes: bool, as_json: bool, hub: str | None, token: str | None) -> None:
    """Begin anew with an agent: quarantine, open interventions and limits are lifted."""
    with asking(hub, token) as client:
        confirm(f"Lift quarantine, interventions and limits of {agent_id}?", yes)
        health = client.clear(agent_id)
    _print_health(health, "begins anew", as_json)


@click.command()
@click.argument("escalation", required=False)
@click.argument(
    "decision", required=False, type=click.Choice(["more_time", "handoff", "terminate", "ignore"])
)
@click.option("--note", default="", help="Why; it is on record.")
@prints_json
@asks_a_hub
def decide(
    escalation: str | None,
    decision: str | None,
    note: str,
    as_json: bool,
    hub: str | None,
    token: str | None,
) -> None:
    """Decide about an escalated agent; without arguments: list what waits for a decision.

    \b
      more_time   give it more time before anything else is done
      handoff     end it, and let another life go on with its task
      terminate   the same
      ignore      do nothing about it
    """
    with asking(hub, token) as client:
        if escalation is None:
            _print_open(client.interventions(rung="escalate", only_open=True).interventions, as_json)
        elif decision is None:
            raise UsageError("a decision is needed: more_time, handoff, terminate or ignore")
        else:
            _print_act(client.decide(escalation, decision, note=note), as_json)


def confirm(question: str, yes: bool) -> None:
    """Ask before what cannot be undone. Where nobody can answer, `--yes` is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to confirm it; say --yes")
    click.confirm(spelled_out(question), abort=True, err=True)


def _print_act(record: InterventionRecord, as_json: bool) -> None:
    from lifesigns.cli.showing import print_json
    from lifesigns.core.printable import clean

    if as_json:
        print_json(record)
    else:
        said = clean(f"{record.rung} of {record.agent_id} is {record.stage}: {record.reason}".rstrip(": "))
        say(f"{said}  ({record.id})")


def _print_health(health: AgentHealth, what: str, as_json: bool) -> None:
    from lifesigns.cli.showing import print_json
    from lifesigns.core.printable import clean

    if as_json:
        print_json(health)
    else:
        say(clean(f"{health.agent_id} {what}; it is {health.state} and {health.doing}."))


def _print_open(found: list[InterventionRecord], as_json: bool) -> None:
    from lifesigns.cli import showing
    from lifesigns.cli.showing import print_json, words

    if as_json:
        print_json({"interventions": found})
    elif not found:
        click.echo("Nothing waits for a decision.")
    else:
        rows = showing.table("escalation", "agent", "since", "why")
        for one in found:
            rows.add_row(words(one.id), words(one.agent_id), words(one.ordered_at), words(one.reason))
        showing.console().print(rows)
