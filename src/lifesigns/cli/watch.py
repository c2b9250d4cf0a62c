"""`lifesigns watch`: who needs me, live.

On a terminal a screen that is drawn anew when something happens, twice a second at most; only as many agents are asked
for as fit. Elsewhere a line for every change. Either way a hub that goes away is said, waited for and taken up again.
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

from lifesigns.cli.requests import explained, finds_a_hub, prints_json
from lifesigns.cli.say import say
from lifesigns.cli.showing import json_line, why
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
"""Between two looks, and between two drawings, whatever happens."""
RETRY_AFTER: Final = 1.0
TIMEOUT: Final = 5.0


@click.command()
@click.option("--lines", is_flag=True, help="A line for every change, at a terminal too.")
@prints_json
@finds_a_hub
def watch(lines: bool, as_json: bool, hub: str | None, token: str | None) -> None:
    """Watch the fleet, those who need somebody first. q or Ctrl-C ends it.

    Where there is no terminal it prints a line for every change; with --json an event for every line.
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
        pass  # This is how it is ended.
    if refused is not None:  # Raised in there, some Pythons would make a group of it.
        raise HubError(explained(refused, client.hub), status=refused.status) from refused


# --- a screen -----------------------------------------------------------------------------------------


async def _screen(client: AsyncClient) -> None:
    """Until somebody has seen enough. Looking, listening and drawing do not wait for each other."""
    from lifesigns.cli.watch_board import Board
    from lifesigns.cli.watch_screen import Screen

    board = Board(client.hub)
    async with client:
        with Screen(board) as screen:
            tasks = [
                asyncio.create_task(_look_on(client, board, lambda: screen.rows)),
                asyncio.create_task(_listen_on(client, board)),
                asyncio.create_task(_draw_on(board, screen.draw)),
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


async def _look_on(client: AsyncClient, board: Board, rows: Callable[[], int]) -> None:
    """See how everybody is, again and again. A hub that says no ends it; one that is away is waited for."""
    while True:
        board.happened.clear()
        try:
            found = await client.agent_list(sort="need", limit=rows())
            board.saw(found.agents, await client.fleet(), time.time())
        except HubError as error:
            if not error.transient:
                raise
            board.lost(str(error), time.time())
        await asyncio.sleep(GAP)
        await _for_at_most(LOOK_EVERY - GAP, board.happened)


async def _listen_on(client: AsyncClient, board: Board) -> None:
    """Whatever happens is a reason to look."""
    while True:
        with suppress(HubError):
            async for event in client.events():
                board.heard(event)
        await asyncio.sleep(RETRY_AFTER)


async def _draw_on(board: Board, draw: Callable[[], None]) -> None:
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
    """A line for everything that happens, for ever. A hub that is not there at the beginning is an error."""
    from lifesigns.cli.watch_board import told

    heard: asyncio.Queue[EventView] = asyncio.Queue()
    link = _Link(client.hub)
    async with client, asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(_hear(client, link, heard))
        if not as_json:
            await link.is_there.wait()  # What happens while we look is told after it: nothing falls between.
            await _say_who(client)
        while not listening.done():
            event = await heard.get()
            if as_json:
                click.echo(json_line(event))
            elif said := told(event):
                say(f"{event.at}  {clean(said)}")


async def _hear(client: AsyncClient, link: _Link, heard: asyncio.Queue[EventView]) -> None:
    async for event in client.events(on_link=link):
        heard.put_nowait(event)


async def _say_who(client: AsyncClient) -> None:
    """How it is at the beginning: all changes are changes of this."""
    from lifesigns.cli.watch_board import counts

    fleet = await client.fleet()
    states = ", ".join(f"{count} {state}" for state, count in counts(fleet.states)) or "no agents yet"
    say(f"{fleet.hub.at}  {client.hub}: {states}")
    page = await client.agent_list(sort="need", limit=100, state=[str(state) for state in UNWELL])
    for agent in page.agents:
        say(f"{agent.state_changed_at}  {clean(agent.agent_id)} is {agent.state}: {clean(why(agent))}")


class _Link:
    """Says once that the hub is away, and once that it is back."""

    def __init__(self, hub: str) -> None:
        self._hub = hub
        self._away = False
        self.is_there = asyncio.Event()

    def __call__(self, trouble: str | None) -> None:
        from lifesigns.views import moment

        self.is_there.set()
        if self._away != (trouble is not None):
            self._away = trouble is not None
            said = f"the hub is away: {clean(trouble)}" if trouble else f"the hub is back: {self._hub}"
            say(f"{moment(time.time())}  {said}")
