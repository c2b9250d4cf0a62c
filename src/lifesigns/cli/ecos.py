"""`lifesigns ecos`: the health files that the Emasoft Chief of Staff keeps, from a hub and back."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lifesigns.cli.output import print_json, seconds
from lifesigns.cli.requests import asks_a_hub, prints_json
from lifesigns.cli.say import say
from lifesigns.core.profiles import ROLES
from lifesigns.errors import UsageError
from lifesigns.integrations import ecos as files
from lifesigns.integrations.ecos import EcosAgent, EcosTask

if TYPE_CHECKING:
    from lifesigns.client import Client
    from lifesigns.views import AgentHealth, TaskView

OPEN = frozenset({"in_progress", "overdue", "stalled", "blocked", "pending", "assigned"})
"""Statuses of tasks that are not over."""
PING_WAIT_SHARE = 0.1


def folder_argument(command: Any) -> Any:
    """Where the files are."""
    return click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)(command)


@click.group()
def ecos() -> None:
    """Write and read the health files of ECOS, `.ecos/agent-health/*.json`.

    FOLDER is the folder with these files; without one it is `.ecos/agent-health` in $CLAUDE_PROJECT_DIR, or here.
    """


@ecos.command(short_help="Write what the hub knows into these files.")
@folder_argument
@prints_json
@asks_a_hub
def export(client: Client, folder: Path | None, as_json: bool) -> None:
    """Write what the hub knows: heartbeat-config.json and task-tracking.json. What is there is replaced."""
    place = _place(folder)
    agents = [_agent(client, agent) for agent in client.agents() if agent.state != "terminated"]
    tasks = [_task(task) for task in _tasks(client) if task.due is not None]
    files.write(place, agents, tasks)
    _tell(place, agents, tasks, "written", as_json)


@ecos.command("import", short_help="Tell the hub what stands in these files.")
@folder_argument
@prints_json
@asks_a_hub
def import_(client: Client, folder: Path | None, as_json: bool) -> None:
    """Tell the hub of the agents and open tasks in these files: how often each beats, and when its tasks should be done.

    If anything in them is wrong, nothing is told.
    """
    place = _place(folder)
    agents, tasks = files.read(place)
    tasks = [task for task in tasks if task.status in OPEN]
    signals = [_registration(agent) for agent in agents]
    signals += [_assignment(task) for task in tasks]
    if signals:
        receipt = client.signals(signals)
        if receipt.rejected:
            first = receipt.rejected[0]
            raise UsageError(
                f"the hub refused {len(receipt.rejected)} of them; the first: {first.field}: {first.detail}"
            )
    _tell(place, agents, tasks, "read", as_json)


def _place(folder: Path | None) -> Path:
    return folder or Path(os.environ.get("CLAUDE_PROJECT_DIR") or ".") / files.FOLDER


def _tell(place: Path, agents: list[EcosAgent], tasks: list[EcosTask], done: str, as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(place), "agents": len(agents), "tasks": len(tasks)})
    else:
        say(f"{place}: {len(agents)} agents and {len(tasks)} tasks {done}.")


def _agent(client: Client, agent: AgentHealth) -> EcosAgent:
    rhythm = client.rhythm(agent.agent_id)
    return EcosAgent(
        agent.agent_id,
        agent.role,
        rhythm.wanted_interval_s,
        rhythm.missed_max,
        None if agent.last_heartbeat is None else seconds(agent.last_heartbeat),
        agent.metrics.missed_heartbeats,
    )


def _tasks(client: Client) -> list[TaskView]:
    found: list[TaskView] = []
    cursor = None
    while True:
        page = client.tasks(limit=999, cursor=cursor)
        found += page.tasks
        cursor = page.cursor
        if cursor is None:
            return found


def _task(task: TaskView) -> EcosTask:
    due = task.due
    assert due is not None
    return EcosTask(
        task.task_id,
        due.agent_id,
        due.description,
        None if due.assigned_at is None else seconds(due.assigned_at),
        seconds(due.expected_at),
        None if due.progress_at is None else seconds(due.progress_at),
        due.percent,
        due.status,
    )


def _registration(agent: EcosAgent) -> dict[str, Any]:
    """How often it beats. What its role says by itself need not be said again."""
    said: dict[str, Any] = {"type": "registered", "agent_id": agent.agent_id}
    if agent.role is not None:
        said["role"] = agent.role
    usual = ROLES.get(agent.role or "", {}).get("silence", {})
    interval, missed = agent.interval_seconds, agent.missed_threshold
    if (usual.get("interval"), usual.get("missed_max")) != (interval, missed):
        wait = PING_WAIT_SHARE * interval
        silence = {
            "interval": interval,
            "missed_max": missed,
            "ping_wait": wait,
            "timeout": (missed + 0.5) * interval + 2 * wait,
        }
        said["policy"] = {"silence": silence}
    return said


def _assignment(task: EcosTask) -> dict[str, Any]:
    assigned: dict[str, Any] = {
        "type": "task_assigned",
        "agent_id": task.agent,
        "task_id": task.task_id,
        "description": task.description,
    }
    if task.expected_completion is not None:
        assigned["expected_for"] = max(0.0, task.expected_completion - time.time())
    if task.progress_percentage is not None:
        assigned["percent"] = task.progress_percentage
    return assigned
