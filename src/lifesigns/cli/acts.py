"""Acts on agents: `nudge`, `escalate`, `terminate`, `pause`, `resume`, `clear`, `decide`.

Each returns when it is stored, prints the id of its record, and is recorded under the name of the token.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from lifesigns.cli.output import answer, print_json, print_table, since
from lifesigns.cli.requests import asks_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.core.printable import clean, spelled_out
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.client import Client
    from lifesigns.views import AgentHealth
    from lifesigns.views.interventions import InterventionRecord

agent_argument = click.argument("agent_id", metavar="ID")
reason_option = click.option("--reason", required=True, help="Why; it is on record and told to the agent.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
@agent_argument
@click.argument("message", default="")
@prints_json
@asks_a_hub
def nudge(client: Client, agent_id: str, message: str, as_json: bool) -> None:
    """Tell an agent something at its next turn boundary; without a MESSAGE it is told the facts about itself.

    \b
      lifesigns nudge coder-7 "The tests need a database: docker compose up -d db"
      lifesigns nudge coder-7
    """
    _print_act(client.nudge(agent_id, message), as_json)


@click.command()
@agent_argument
@reason_option
@prints_json
@asks_a_hub
def escalate(client: Client, agent_id: str, reason: str, as_json: bool) -> None:
    """Ask the orchestrator or a person to decide about an agent.

    \b
      lifesigns escalate coder-7 --reason "It rewrites the same file again and again."
    """
    _print_act(client.escalate(agent_id, reason), as_json)


@click.command()
@agent_argument
@reason_option
@click.option("--respawn", is_flag=True, help="Another life follows, from its last good checkpoint.")
@yes_option
@prints_json
@asks_a_hub
def terminate(client: Client, agent_id: str, reason: str, respawn: bool, yes: bool, as_json: bool) -> None:
    """End an agent: ask it to save, and force it if it does not.

    \b
      lifesigns terminate coder-7 --reason "It works on the wrong branch."
      lifesigns terminate coder-7 --reason "It is stuck." --respawn --yes
    """
    health = client.agent(agent_id)
    confirm(f"End {agent_id}, which is {health.state} and {health.doing}?", yes)
    _print_act(client.terminate(agent_id, reason, respawn=respawn), as_json)


@click.command()
@agent_argument
@click.option("--for", "pause_for", type=Duration(), help="How long: 30m, 2h.  [until it is resumed]")
@prints_json
@asks_a_hub
def pause(client: Client, agent_id: str, pause_for: float | None, as_json: bool) -> None:
    """Leave an agent alone: the hub watches it, but does nothing about it.

    \b
      lifesigns pause coder-7 --for 30m
    """
    health = client.pause(agent_id, pause_for)
    _print_health(health, f"is left alone until {health.paused_until or 'it is resumed'}", as_json)


@click.command()
@agent_argument
@prints_json
@asks_a_hub
def resume(client: Client, agent_id: str, as_json: bool) -> None:
    """End a pause.

    \b
      lifesigns resume coder-7
    """
    _print_health(client.resume(agent_id), "is looked after again", as_json)


@click.command()
@agent_argument
@yes_option
@prints_json
@asks_a_hub
def clear(client: Client, agent_id: str, yes: bool, as_json: bool) -> None:
    """Clear an agent: lift quarantine, open interventions and limits.

    \b
      lifesigns clear coder-7
    """
    confirm(f"Lift quarantine, interventions and limits of {agent_id}?", yes)
    _print_health(client.clear(agent_id), "begins anew", as_json)


@click.command()
@click.argument("escalation", required=False)
@click.argument(
    "decision", required=False, type=click.Choice(["more_time", "handoff", "terminate", "ignore"])
)
@click.option("--note", default="", help="Why; it is on record.")
@prints_json
@asks_a_hub
def decide(client: Client, escalation: str | None, decision: str | None, note: str, as_json: bool) -> None:
    """Decide about an escalated agent; without arguments: list what waits for a decision.

    \b
      more_time   give it more time before anything else is done
      handoff     end it, and let another life go on with its task
      terminate   the same
      ignore      do nothing about it

    \b
      lifesigns decide
      lifesigns decide 1795033914975-18 more_time --note "It waits for the build."
    """
    if escalation is None:
        _print_open(client.interventions(rung="escalate", only_open=True).interventions, as_json)
    elif decision is None:
        raise UsageError("a decision is needed: more_time, handoff, terminate or ignore")
    else:
        _print_act(client.decide(escalation, decision, note=note), as_json)


def confirm(question: str, yes: bool) -> None:
    """Ask before what cannot be undone. Without a terminal, `--yes` is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to confirm it; say --yes")
    click.confirm(spelled_out(question), abort=True, err=True)


def _print_act(record: InterventionRecord, as_json: bool) -> None:
    line = clean(f"{record.rung} of {record.agent_id} is {record.stage}: {record.reason}".rstrip(": "))
    answer(record, f"{line}  ({record.id})", as_json=as_json)


def _print_health(health: AgentHealth, what: str, as_json: bool) -> None:
    line = clean(f"{health.agent_id} {what}; it is {health.state} and {health.doing}.")
    answer(health, line, as_json=as_json)


def _print_open(records: list[InterventionRecord], as_json: bool) -> None:
    if as_json:
        print_json({"interventions": records})
        return
    now = time.time()
    rows = [(one.id, one.agent_id, since(one.ordered_at, now), one.reason) for one in records]
    print_table(("escalation", "agent", "for", "why"), rows, none="Nothing waits for a decision.")
