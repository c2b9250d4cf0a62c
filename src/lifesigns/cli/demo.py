"""`lifesigns demo`: a hub and a live fleet that freezes, loops, crashes and recovers before your eyes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct

from lifesigns.cli import INTERRUPTED, output
from lifesigns.cli.output import print_json, words
from lifesigns.cli.requests import UNWELL, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say
from lifesigns.client import AsyncClient
from lifesigns.config.hub_locator import TOKEN_FILE
from lifesigns.core.printable import clean
from lifesigns.demo.fleet import FLEET, HUBS_FLEET
from lifesigns.demo.hubs import DemoHubs
from lifesigns.demo.narrator import FleetState, Narrator, StoryLine, clock
from lifesigns.demo.outcome import Outcome
from lifesigns.demo.processes import DemoProcesses
from lifesigns.demo.takeovers import TakeoverNarrator
from lifesigns.errors import AdapterError, UsageError
from lifesigns.views.hubs import HubState
from lifesigns.web import pages

LASTS: Final = 120.0
DRAW_EVERY: Final = 0.5


class Options(Struct, frozen=True):
    """What the user wants to see."""

    hubs: int
    go_on_for: float | None
    port: int | None
    turn: float
    keep: bool
    on_screen: bool
    in_lines: bool


@click.command()
@click.option(
    "--hubs",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    help="With 2 or more: real PostgreSQL and NATS servers (extra demo-servers), and hubs that are killed.",
)
@click.option(
    "--for", "go_on_for", type=Duration(), help="Go on for so long.  [until all are helped, 2m at most]"
)
@click.option("--port", type=click.IntRange(0, 65535), help="Where the hub listens.  [8710, or a free one]")
@click.option(
    "--turn", type=Duration(), default="2s", show_default=True, help="What a turn of an agent takes."
)
@click.option("--keep", is_flag=True, help="Keep the hub's folder: its database, its audit log, all logs.")
@click.option("--no-screen", is_flag=True, help="Tell it line by line, at a terminal too.")
@prints_json
def demo(
    hubs: int,
    go_on_for: float | None,
    port: int | None,
    turn: float,
    keep: bool,
    no_screen: bool,
    as_json: bool,
) -> None:
    """See a fleet freeze, loop, crash and recover.

    Starts a hub and seven agents, each a real process: one works, one freezes, one repeats itself, one crashes, one
    waits for a human, one meets a rate limit, one overspends. Tells what the hub finds and does about it. At the end
    there is a table, and the exit status is 0 if every trouble was found, named and helped, and no healthy agent was
    touched.

    With --hubs 3 there are three hubs on one database and one bus. The one that judges is killed, another one takes
    over, and no agent is harmed.

    Nothing stays behind. q or Ctrl-C ends it at once.
    """
    if os.name != "posix":
        raise UsageError("lifesigns demo needs processes as Unix has them")
    at_terminal = sys.stdout.isatty() and sys.stdin.isatty()
    on_screen = at_terminal and not (no_screen or as_json)
    options = Options(hubs, go_on_for, port, turn, keep, on_screen, in_lines=not (on_screen or as_json))
    performance = Performance(options)
    began_at = time.monotonic()
    try:
        interrupted = asyncio.run(performance.give())
    except AdapterError as error:
        say(f"Error: {clean(error)}", err=True)
        sys.exit(UNWELL)
    outcomes = list(performance.show.outcomes.values())
    if as_json:
        print_json(_as_json(outcomes, performance, time.monotonic() - began_at))
    else:
        _print_table(outcomes, performance)
    sys.exit(INTERRUPTED if interrupted else 0 if performance.show.is_right else UNWELL)


class Performance:
    """One run of the demo, from its first process to its last."""

    def __init__(self, options: Options) -> None:
        several = options.hubs > 1
        self.show = (
            TakeoverNarrator(options.turn, self._tell)
            if several
            else Narrator(FLEET, options.turn, self._tell)
        )
        self._fleet = HUBS_FLEET if several else FLEET
        self.folder = ""
        """The kept folder; empty if nothing is kept."""
        self.link = ""
        """The link to the dashboard; empty if there is none."""
        self._options = options
        self._story: list[StoryLine] = []
        self._stop = asyncio.Event()

    async def give(self) -> bool:
        """Run all of it; True if somebody interrupted it."""
        self._heed_signals()
        work = asyncio.create_task(self._perform())
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        interrupted = not work.done()
        work.cancel()
        stopping.cancel()
        with suppress(asyncio.CancelledError):
            await work
        return interrupted

    async def _perform(self) -> None:
        options = self._options
        made = self._processes()
        if not self._options.on_screen:
            self._say(f"{_hubs(options.hubs)} and {len(self._fleet)} agents are starting ...")
        async with made as processes:
            self.folder = str(processes.folder) if options.keep else ""
            async with AsyncClient(processes.url, processes.token) as client:
                self.link = (await client.sign_in_link()).url if pages.is_built() else ""
                self._say(*_welcome(processes, self.link))
                if options.on_screen:
                    await self._on_screen(processes, client)
                else:
                    await self._follow(processes, client)

    def _processes(self) -> DemoProcesses:
        options = self._options
        if options.hubs == 1:
            return DemoProcesses(self._fleet, turn=options.turn, port=options.port, keep=options.keep)
        return DemoHubs(self._fleet, options.hubs, turn=options.turn, port=options.port, keep=options.keep)

    async def _follow(
        self, processes: DemoProcesses, client: AsyncClient, see: Callable[[FleetState], None] | None = None
    ) -> None:
        lasts = self._options.go_on_for
        await self.show.follow(processes, client, lasts or LASTS, to_the_end=lasts is not None, see=see)

    async def _on_screen(self, processes: DemoProcesses, client: AsyncClient) -> None:
        from lifesigns.cli.demo_screen import StoryScreen
        from lifesigns.cli.watch_board import Board

        board = Board(processes.url)
        with StoryScreen(board, self._story, len(self._fleet), self.link) as screen:
            tasks = [
                asyncio.create_task(_repeatedly(screen.draw, DRAW_EVERY)),
                asyncio.create_task(_then(screen.ended(), self._stop.set)),
            ]
            try:
                await self._follow(
                    processes, client, lambda look: board.saw(look.agents, look.fleet, time.time())
                )
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        self._heed_signals()  # The screen had them.

    def _tell(self, line: StoryLine) -> None:
        self._story.append(line)
        self._say(f"{clock(line.at)}  {'  ' if line.own else ''}{clean(line.text)}")

    def _say(self, *lines: str) -> None:
        if self._options.in_lines:
            for line in lines:
                say(line)

    def _heed_signals(self) -> None:
        """The first signal ends everything cleanly; the second ends us at once, and the guardian process does the rest."""
        loop = asyncio.get_running_loop()

        def end(number: int) -> None:
            if self._stop.is_set():
                os._exit(128 + number)
            self._stop.set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup set it.
                loop.add_signal_handler(number, end, number)


async def _repeatedly(do: Callable[[], None], every: float) -> None:
    while True:
        do()
        await asyncio.sleep(every)


async def _then(first: Any, do: Callable[[], None]) -> None:
    await first
    do()


def _welcome(processes: DemoProcesses, link: str) -> Iterator[str]:
    if isinstance(processes, DemoHubs):
        yield from _several(processes)
        setting, commands = "", ["hubs", "watch", "show builder", "audit"]
    else:
        yield f"The hub listens on {processes.url}."
        setting, commands = f"LIFESIGNS_STATE={processes.folder} ", ["watch", "show indexer", "audit"]
    if link:
        yield f"See it in your browser (this link works once):\n  {link}"
    yield "Look around in another terminal, while it lasts:"
    if isinstance(processes, DemoHubs):
        yield f"  export LIFESIGNS_HUB={processes.url}"
        yield f"  export LIFESIGNS_TOKEN=$(cat {processes.hubs[0].state}/{TOKEN_FILE})"
    for command in (*commands, *(["open"] if link else [])):
        yield f"  {setting}{_program()} {command}"
    yield ""


def _program() -> str:
    """What another terminal has to type: `uv run`, and so `make demo`, runs a program that is not on its PATH."""
    program = Path(sys.argv[0]).absolute()
    return shlex.quote(str(program)) if "UV" in os.environ and os.access(program, os.X_OK) else "lifesigns"


def _several(processes: DemoHubs) -> Iterator[str]:
    for hub in processes.hubs:
        yield f"{hub.name} listens on {hub.url}."
    yield f"They share a PostgreSQL and a NATS server ({processes.bus})."


def _hubs(count: int) -> str:
    return "A hub" if count == 1 else f"PostgreSQL, NATS, {count} hubs"


# --- results ------------------------------------------------------------------------------------------


def _print_table(outcomes: list[Outcome], performance: Performance) -> None:
    rows = output.table(
        "agent", "what it does", "found", "after", "what was done", "is now", "as it should be"
    )
    for outcome in outcomes:
        member, after = outcome.member, outcome.found_after
        rows.add_row(
            member.id,
            member.does,
            _found(outcome),
            "" if after is None else f"{after:.1f} s",
            ", ".join(outcome.actions) or "nothing",
            words(outcome.state or "unknown", output.STYLES.get(outcome.state or "", "")),
            words("; ".join(outcome.missing) or "yes", "red" if outcome.missing else "green"),
        )
    click.echo()
    output.console().print(rows)
    wrong = [outcome.member.id for outcome in outcomes if outcome.missing]
    if isinstance(performance.show, TakeoverNarrator):
        wrong += _print_hubs(performance.show)
    several = isinstance(performance.show, TakeoverNarrator)
    good = (
        "Another hub took over, and nobody was harmed."
        if several
        else "Everybody was found, named and helped."
    )
    verdict = f"Not as it should be: {', '.join(wrong)}." if wrong else good
    say(f"\n{verdict}" + (f" Kept in {performance.folder}" if performance.folder else ""))


def _print_hubs(show: TakeoverNarrator) -> list[str]:
    """Print what became of the hubs; returns what is wrong with them."""
    click.echo()
    for kill in show.kills:
        say(f"{kill.hub} was killed, and {kill.successor} judged {kill.after_s} s later.")
    say(", ".join(f"{name} {state}" for name, state in sorted(show.states.items())) + ".")
    return ["the hubs"] if not show.kills or HubState.LOST in show.states.values() else []


def _found(outcome: Outcome) -> str:
    if outcome.found_at is None:
        return "nothing" if outcome.member.found is None else "not found"
    return str(outcome.member.found).replace("_", " ")


def _as_json(outcomes: list[Outcome], performance: Performance, took: float) -> dict[str, Any]:
    return {
        "right": performance.show.is_right,
        "took_s": round(took, 1),
        "kept_in": performance.folder or None,
        **_hubs_as_json(performance.show),
        "agents": [
            {
                "agent_id": outcome.member.id,
                "does": outcome.member.does,
                "expected": outcome.member.found,
                "found": outcome.found_at is not None,
                "found_after_s": None if outcome.found_after is None else round(outcome.found_after, 3),
                "done": outcome.actions,
                "checkpoint": outcome.checkpoint,
                "state": outcome.state,
                "missing": outcome.missing,
            }
            for outcome in outcomes
        ],
    }


def _hubs_as_json(show: Narrator) -> dict[str, Any]:
    if not isinstance(show, TakeoverNarrator):
        return {}
    return {"hubs": show.states, "kills": [kill._asdict() for kill in show.kills]}
