"""`lifesigns recover`: have a task go on in a new life of its agent, and print how that went."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from lifesigns.cli.acts import confirm, yes_option
from lifesigns.cli.output import print_json
from lifesigns.cli.requests import asking, exit_if, finds_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say

if TYPE_CHECKING:
    from lifesigns.client import Client
    from lifesigns.views.recovery import RecoveryView

LOOK_EVERY: Final = 0.5


@click.command()
@click.argument("task_id", metavar="TASK")
@click.option("--agent", "agent_id", metavar="ID", help="Whose life ended, if several worked on it.")
@click.option("--reason", default="", help="Why; it is on record and told to the new life.")
@click.option("--wait", is_flag=True, help="Until it speaks; exits with 1 if it does not.")
@click.option("--timeout", type=Duration(), default="15m", show_default=True, help="With --wait: how long.")
@yes_option
@prints_json
@finds_a_hub
def recover(
    task_id: str,
    agent_id: str | None,
    reason: str,
    wait: bool,
    timeout: float,
    yes: bool,
    as_json: bool,
    hub: str | None,
    token: str | None,
) -> None:
    """Respawn the agent of a task from its newest valid checkpoint. Limits, review and quarantine are lifted; a
    recovery that is already on its way is the one. A living agent has to be terminated first.

    \b
      lifesigns recover t-19 --wait
    """
    with asking(hub, token, retry_for=10.0) as client:
        client.recovery(task_id)  # Fails for an unknown task, before the question.
        confirm(f"Start the agent of {task_id} anew, whatever its limits are?", yes)
        before = client.recover(task_id, agent_id, reason=reason).recoveries
        recovery = _theirs(before, agent_id)
        if wait:
            recovery = _awaited(client, task_id, recovery, time.monotonic() + timeout, quiet=as_json)
    if as_json:
        print_json({"task_id": task_id, "recovery": recovery})
    else:
        _say(task_id, recovery)
    exit_if(wait and recovery.phase not in GONE_WELL)


GONE_WELL: Final = ("probation", "idle")
"""The new life beats; or the old one came back by itself, or probation is over already."""


def _theirs(recoveries: tuple[RecoveryView, ...], agent_id: str | None) -> RecoveryView:
    """The named agent's recovery, or the one under way."""
    named = [one for one in recoveries if one.agent_id == agent_id]
    under_way = [one for one in recoveries if one.on_its_way]
    return (named or under_way or list(recoveries))[0]


def _awaited(
    client: Client, task_id: str, recovery: RecoveryView, until: float, *, quiet: bool
) -> RecoveryView:
    """The recovery when it is decided, or the time is over; prints each new phase on the way."""
    while recovery.on_its_way and time.monotonic() < until:
        time.sleep(LOOK_EVERY)
        before, recovery = recovery, _theirs(client.recovery(task_id).recoveries, recovery.agent_id)
        if not quiet and recovery.on_its_way and _stage(recovery) != _stage(before):
            _say(task_id, recovery)
    return recovery


def _stage(recovery: RecoveryView) -> tuple[str, int, int]:
    return recovery.phase, recovery.attempt, recovery.failures


def _say(task_id: str, recovery: RecoveryView) -> None:
    from lifesigns.core.printable import clean

    say(clean(f"{task_id}: {recovery.agent_id} {_words(recovery)}"))


def _words(recovery: RecoveryView) -> str:
    place = f"from checkpoint {recovery.checkpoint_id}" if recovery.checkpoint_id else "from the task's start"
    match recovery.phase:
        case "waiting":
            when = f", not before {recovery.next_at}" if recovery.next_at else ""
            return f"is to be started anew{when} ({recovery.reason})"
        case "verifying":
            return "is to be started anew: its checkpoints are read back"
        case "starting":
            return f"is started anew {place}, attempt {recovery.attempt}; it has not spoken yet"
        case "probation":
            return f"lives again, {place}, as {recovery.new_incarnation}; it is watched closely"
        case "idle":
            return "lives again"
        case _:
            return f"was not recovered, {recovery.phase}: {recovery.reason}"
