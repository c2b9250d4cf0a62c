"""`lifesigns memory`: what workers keep in an MCP memory server, by key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lifesigns.assembly.memories import memory_in
from lifesigns.cli.say import say

if TYPE_CHECKING:
    from lifesigns.ports.memory import Memory

_FILE = click.option("--file", help="The file of the memory server; by default MEMORY_FILE_PATH.")


@click.group("memory")
def memory() -> None:
    """Look up what workers keep in an MCP memory server, or put something there.

    Keys are as in Task Sentinel: task-sentinel/workers/WORKER/heartbeat. The server is started for the question, as
    npx -y @modelcontextprotocol/server-memory, or by LIFESIGNS_MEMORY_COMMAND.
    """


@memory.command("get")
@click.argument("key")
@_FILE
def get(key: str, file: str | None) -> None:
    """Print the value of KEY."""
    with _memory(file) as known:
        value = known.get(key)
    if value is None:
        say(f"There is no {key}.", err=True)
        raise click.exceptions.Exit(1)
    say(value)


@memory.command("list")
@click.argument("pattern", default="*")
@_FILE
def list_keys(pattern: str, file: str | None) -> None:
    """List the keys that match PATTERN, such as 'task-sentinel/workers/*/heartbeat'."""
    with _memory(file) as known:
        for key in known.keys(pattern):
            say(key)


@memory.command("put")
@click.argument("key")
@click.argument("value")
@_FILE
def put(key: str, value: str, file: str | None) -> None:
    """Set the value of KEY: a quick look whether the memory takes anything."""
    with _memory(file) as known:
        known.put(key, value)


@contextmanager
def _memory(file: str | None) -> Iterator[Memory]:
    known = memory_in(file)
    try:
        yield known
    finally:
        known.close()
