"""`lifesigns memory`: what is known of workers by key, in an MCP memory server or at the hub."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lifesigns.assembly.memories import FILE, memory_in
from lifesigns.cli.requests import asking, finds_a_hub
from lifesigns.cli.say import say
from lifesigns.errors import HubError

if TYPE_CHECKING:
    from lifesigns.ports.memory import Memory

_FILE = click.option("--file", help="The file of the memory server; by default MEMORY_FILE_PATH.")

NOT_FOUND = 404
LISTED_MAX = 10_000


@click.group("memory")
def memory() -> None:
    """Look up what is known of workers, by the keys of Task Sentinel: task-sentinel/workers/WORKER/heartbeat.

    With --file or MEMORY_FILE_PATH in an MCP memory server, which is started for the question, as npx -y
    @modelcontextprotocol/server-memory, or by LIFESIGNS_MEMORY_COMMAND. Without one, at the hub: the last heartbeats,
    a series of them (task-sentinel/metrics/heartbeats/WORKER/TIMESTAMP), locks and their recoveries.
    """


@memory.command("get")
@click.argument("key")
@_FILE
@finds_a_hub
def get(key: str, file: str | None, hub: str | None, token: str | None) -> None:
    """Print the value of KEY.

    \b
      lifesigns memory get task-sentinel/workers/coder-7/heartbeat
    """
    if _is_at_hub(file, hub):
        value = _value_at_hub(key, hub, token)
    else:
        with _memory(file) as known:
            value = known.get(key)
    if value is None:
        say(f"There is no {key}.", err=True)
        raise click.exceptions.Exit(1)
    say(value)


@memory.command("list", short_help="List the keys that match PATTERN.")
@click.argument("pattern", default="*")
@_FILE
@finds_a_hub
def list_keys(pattern: str, file: str | None, hub: str | None, token: str | None) -> None:
    """List the keys that match PATTERN, such as 'task-sentinel/workers/*/heartbeat'."""
    if _is_at_hub(file, hub):
        with asking(hub, token) as client:
            found = client.memory_keys(pattern, limit=LISTED_MAX)
        for key in found.keys:
            say(key)
        if found.workers_left_out:
            say(
                f"The series of {found.workers_left_out} workers more were not looked at: narrow the pattern.",
                err=True,
            )
        elif not found.complete:
            say("There are more: narrow the pattern.", err=True)
        return
    with _memory(file) as known:
        for key in known.keys(pattern):
            say(key)


@memory.command("put", short_help="Set the value of KEY in a memory server.")
@click.argument("key")
@click.argument("value")
@_FILE
def put(key: str, value: str, file: str | None) -> None:
    """Set the value of KEY in a memory server: a quick look whether it takes anything.

    \b
      lifesigns memory put task-sentinel/try works --file memory.json
    """
    with _memory(file) as known:
        known.put(key, value)


def _is_at_hub(file: str | None, hub: str | None) -> bool:
    """A file that is typed counts before a hub that is, and that before the environment."""
    if file is not None:
        return False
    return hub is not None or not os.environ.get(FILE)


def _value_at_hub(key: str, hub: str | None, token: str | None) -> str | None:
    with asking(hub, token) as client:
        try:
            return json.dumps(client.memory_value(key).value)
        except HubError as error:
            if error.status == NOT_FOUND:
                return None
            raise


@contextmanager
def _memory(file: str | None) -> Iterator[Memory]:
    known = memory_in(file)
    try:
        yield known
    finally:
        known.close()
