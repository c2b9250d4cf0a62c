"""`lifesigns watch`: the fleet live, the neediest agents first.

On a terminal it draws a screen, again when something happens, twice a second at most, and asks only for as many agents
as fit. Elsewhere it prints a line for every change. Either way it reports an absent hub, waits for it and continues.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from lifesigns.cli.output import json_line, why
from lifesigns.cli.requests import explained, finds_a_hub, prints_json
from lifesigns.cli.say import say
from lifesigns.core.health import UNWELL
from lifesigns.core.printable import clean
from lifesigns.errors import HubError

if TYPE_CHECKING:
    from lifesigns.cli.watch_board import Board
    from lifesigns.client import AsyncClient
    from lifesigns.views import EventView

LOOK_EVERY: Final = 2.0
"""Without any event: rates and times go on."""
DRAW_EVERY: Final = 1.0
GAP: Final = 0.5
"""Between two requests, and between two drawings, whatever happens."""
RETRY_AFTER: Final = 1.0
TIMEOUT: Final = 5.0


@click.command()
@click.option("--lines", is_flag=True, help="A line for every change, at a terminal too.")
@prints_json
@finds_a_hub
def watch(lines: bool, as_json: bool, hub: str | None, token: str | None) -> None:
    """Watch the fleet, the neediest agents first. q or Ctrl-C ends it.

    Without a terminal it prints a line for every change; with --json an event for every line.

    \b
      lifesigns watch
      lifesigns watch --json | jq .type
    """
    from lifesigns.client import AsyncClient

    client = AsyncClient(hub, token, retry_for=0.0, timeout=TIMEOUT)
    at_terminal = os.name == "posix" and sys.stdout.isatty() and sys.stdin.isatty()
    on_screen = at_terminal and not (lines or as_json)
    refused: HubError | None = None
    try:
        asyncio.run(_screen(client) if on_screen else _lines(client, as_json=as_json))
    except* HubError as errors:
        error = errors.exceptions[0]
        assert isinstance(error, HubError)
        refused = error
    except* KeyboardInterrupt:
        pass  # The usual way to end it.
    if refused is not None:  # Raised in there, some Pythons would make a group of it.
        raise HubError(explained(refused, client.hub), status=refused.status) from refused


# --- a screen -----------------------------------------------------------------------------------------


async def _screen(client: AsyncClient) -> None:
    """Run until the user ends it. Requests, the stream and drawing do not wait for each other."""
    from lifesigns.cli.watch_board import Board
    from lifesigns.cli.watch_screen import Screen

    board = Board(client.hub)
    async with client:
        with Screen(board) as screen:
            tasks = [
                asyncio.create_task(_poll(client, board, lambda: screen.rows)),
                asyncio.create_task(_listen(client, board)),
                asyncio.create_task(_redraw(board, screen.draw)),
                asyncio.create_task(screen.ended()),
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def _poll(client: AsyncClient, board: Board, rows: Callable[[], int]) -> None:
    """Fetch the agents, again and again. A refusing hub ends it; an absent one is waited for."""
    while True:
        board.happened.clear()
        try:
            page = await client.agent_list(sort="need", limit=rows())
            board.saw(page.agents, await client.fleet(), time.time())
        except HubError as error:
            if not error.transient:
                raise
            board.lost(str(error), time.time())
        await asyncio.sleep(GAP)
        await _for_at_most(LOOK_EVERY - GAP, board.happened)


async def _listen(client: AsyncClient, board: Board) -> None:
    """Every event is a reason to fetch."""
    while True:
        with suppress(HubError):
            async for event in client.events():
                board.heard(event)
        await asyncio.sleep(RETRY_AFTER)


async def _redraw(board: Board, draw: Callable[[], None]) -> None:
    while True:
        board.changed.clear()
        draw()
        await asyncio.sleep(GAP)
        await _for_at_most(DRAW_EVERY - GAP, board.changed)


async def _for_at_most(wait_for: float, event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_for):
            await event.wait()


# --- lines --------------------------------------------------------------------------------------------


async def _lines(client: AsyncClient, *, as_json: bool) -> None:
    """A line for everything that happens, for ever. An absent hub at the beginning is an error."""
    from lifesigns.cli.watch_board import sentence_of

    heard: asyncio.Queue[EventView] = asyncio.Queue()
    link = _Link(client.hub)
    async with client, asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(_hear(client, link, heard))
        if not as_json:
            await (
                link.is_there.wait()
            )  # Events that come meanwhile are printed after it: nothing is missed in between.
            await _print_fleet(client)
        while not listening.done():
            event = await heard.get()
            if as_json:
                click.echo(json_line(event))
            elif sentence := sentence_of(event):
                say(f"{event.at}  {clean(sentence)}")


async def _hear(client: AsyncClient, link: _Link, heard: asyncio.Queue[EventView]) -> None:
    async for event in client.events(on_link=link):
        heard.put_nowait(event)


async def _print_fleet(client: AsyncClient) -> None:
    """The state at the beginning: all changes are changes of this."""
    from lifesigns.cli.watch_board import counts

    fleet = await client.fleet()
    states = ", ".join(f"{count} {state}" for state, count in counts(fleet.states)) or "no agents yet"
    say(f"{fleet.hub.at}  {client.hub}: {states}")
    page = await client.agent_list(sort="need", limit=100, state=[str(state) for state in UNWELL])
    for agent in page.agents:
        say(f"{agent.state_changed_at}  {clean(agent.agent_id)} is {agent.state}: {clean(why(agent))}")


class _Link:
    """Prints once that the hub is away, and once that it is back."""

    def __init__(self, hub: str) -> None:
        self._hub = hub
        self._away = False
        self.is_there = asyncio.Event()

    def __call__(self, trouble: str | None) -> None:
        from lifesigns.views import moment

        self.is_there.set()
        if self._away != (trouble is not None):
            self._away = trouble is not None
            line = f"the hub is away: {clean(trouble)}" if trouble else f"the hub is back: {self._hub}"
            say(f"{moment(time.time())}  {line}")
