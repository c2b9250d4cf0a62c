"""The processes of the demo: a hub and the fleet, in their own folder; all of it is gone after the block.

    async with DemoProcesses(FLEET, turn=2.0) as processes:
        processes.url, processes.folder
        async for agent_id, line in processes.lines(): ...

Each process has its own session, so that Ctrl-C reaches us alone and we end them in order: agents first, so that the
hub hears their good-byes, then the hub. If we are killed, a small guardian (a shell that waits on a pipe) does it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final, Self

import psutil

from lifesigns.config.hub_locator import TOKEN_FILE, URL_FILE
from lifesigns.demo.fleet import DemoAgent
from lifesigns.errors import AdapterError

POLICY: Final = Path(__file__).with_name("lifesigns.yaml")
PORT: Final = 8710
START_WITHIN: Final = 60.0
ASK_FOR: Final = 3.0
"""How long a process may take to end after SIGTERM; then a second one, and then SIGKILL."""
INSIST_FOR: Final = 10.0
"""Long, because one that is killed leaves a folder behind, and on a busy machine to clean up takes seconds."""
TAIL: Final = 3
"""Lines of a log in an error."""

_GUARDIAN: Final = """
pids=; while read -r pid; do pids="$pids $pid"; done
kill -TERM $pids; sleep 1; kill -TERM $pids; sleep 1
rm -rf "$0"
"""
"""Two SIGTERMs: after the first one `lifesigns run` gives its child time to save."""


class DemoProcesses:
    """Starts everything when it is entered. `port` None: the default if it is free, else any."""

    def __init__(
        self, fleet: Sequence[DemoAgent], *, turn: float, port: int | None = None, keep: bool = False
    ) -> None:
        self.url = ""
        self.token = ""
        self.folder = Path()
        self.ended: asyncio.Event = asyncio.Event()
        """Set if a hub has ended, which it should not."""
        self.lost = "hub"
        """The name of that hub."""
        self._fleet = fleet
        self._turn = turn
        self._port = port
        self._keep = keep
        self._agents: dict[str, Process] = {}
        self._hubs: list[Process] = []
        self._servers: list[Process] = []
        """What the hubs need, and so ends after them."""
        self._heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._environ: dict[str, str] = {}
        """Set for all processes."""
        self._tasks: list[asyncio.Task[None]] = []
        self._guardian: Process | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with self._stack as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="lifesigns-demo-"))
            stack.callback(self._clean_up)
            stack.push_async_callback(self._end_all)
            self._guardian = await self._start_guardian()
            await self._start_hubs()
            for member in self._fleet:
                await self._start_agent(member)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def lines(self) -> AsyncIterator[tuple[str, str]]:
        """The agents' output, line by line, for ever."""
        while True:
            yield await self._heard.get()

    def last_words(self, name: str) -> str:
        """The end of a process's log."""
        with suppress(OSError):
            lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
            return " | ".join(line.strip() for line in lines[-TAIL:] if line.strip())
        return ""

    # --- beginning ------------------------------------------------------------------------------------

    async def _start_guardian(self) -> Process:
        return await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _GUARDIAN,
            str(self.folder),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
        )

    async def _start_hubs(self) -> None:
        port = _free_port() if self._port is None else self._port
        hub = await self._start_hub("hub", self.folder, port)
        self._tasks.append(asyncio.create_task(self._watch_hub(hub)))
        self.url = (self.folder / URL_FILE).read_text().strip()
        self.token = (self.folder / TOKEN_FILE).read_text().strip()

    async def _start_hub(self, name: str, state: Path, port: int, *options: str) -> Process:
        """Return when it answers, be it that it stands by."""
        announced = state / URL_FILE
        announced.unlink(missing_ok=True)  # Of an earlier life.
        where = ("--state", str(state), "--config", str(POLICY), "--host", "127.0.0.1", "--port", str(port))
        hub = await self._start(name, "serve", *where, "--log-level", "warning", *options)
        self._hubs.append(hub)
        await self._until(announced.exists, name, hub)
        return hub

    async def _until(self, ready: Callable[[], bool], name: str, process: Process) -> None:
        """Wait until a process is ready. Raises `AdapterError` if it ends, or takes too long."""
        try:
            async with asyncio.timeout(START_WITHIN):
                while not ready():
                    if process.returncode is not None:
                        raise AdapterError(
                            f"the {name} did not start: {self.last_words(name)}", transient=False
                        )
                    await asyncio.sleep(0.05)
        except TimeoutError:
            waited = f"the {name} did not start within {START_WITHIN:g} s"
            raise AdapterError(f"{waited}: {self.last_words(name)}", transient=True) from None

    async def _watch_hub(self, hub: Process) -> None:
        await hub.wait()
        self.ended.set()

    async def _start_agent(self, member: DemoAgent) -> None:
        program = (sys.executable, "-m", f"lifesigns.demo.agents.{member.program}", f"{self._turn:g}")
        options = ("--id", member.id, "--task", member.task, "--hub", self._hub_for(member))
        watched = ("--restart", "on-failure", "--nudge", "file")
        agent = await self._start(member.id, "run", *options, *watched, "--", *program)
        self._agents[member.id] = agent
        self._tasks.append(asyncio.create_task(self._listen(member.id, agent)))

    def _hub_for(self, _member: DemoAgent) -> str:
        """The address that an agent speaks to."""
        return self.url

    async def _start(self, name: str, *command: str) -> Process:
        ours = (sys.executable, "-m", "lifesigns", *command)
        return await self._spawn(name, *ours, stdout=PIPE if command[0] == "run" else None)

    async def _spawn(self, name: str, *command: str, stdout: int | None = None) -> Process:
        """Start a program that outlives neither us nor the block. It writes to a log of this name."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                cwd=self.folder,
                env={**environment(os.environ, self.folder), **self._environ},
                start_new_session=True,
            )
        if self._guardian is not None and self._guardian.stdin is not None:
            self._guardian.stdin.write(f"{process.pid}\n".encode())
        return process

    async def _listen(self, agent_id: str, agent: Process) -> None:
        assert agent.stdout is not None
        async for line in agent.stdout:
            self._heard.put_nowait((agent_id, line.decode(errors="replace").rstrip()))

    # --- end ------------------------------------------------------------------------------------------

    async def _end_all(self) -> None:
        """End the agents, then the hub, then what it needs; then kill whatever is left."""
        offspring: set[psutil.Process] = set()
        for processes in (list(self._agents.values()), self._hubs, self._servers):
            offspring |= await _ended(processes)
        for process in offspring:
            with suppress(psutil.Error):
                process.kill()
        await asyncio.to_thread(psutil.wait_procs, offspring, INSIST_FOR)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._guardian is not None:
            self._guardian.kill()
            await self._guardian.communicate()

    def _clean_up(self) -> None:
        if not self._keep:
            shutil.rmtree(self.folder, ignore_errors=True)


async def _ended(processes: Sequence[Process]) -> set[psutil.Process]:
    """Ask them to end, twice, and kill the rest. Returns all their children, collected each time again: on a busy
    machine one may start a child just when it is asked to end."""
    offspring: set[psutil.Process] = set()
    ends = [asyncio.create_task(process.wait()) for process in processes]
    for number, wait_for in ((signal.SIGTERM, ASK_FOR), (signal.SIGTERM, INSIST_FOR), (signal.SIGKILL, None)):
        left = [process for process in processes if process.returncode is None]
        if not left:
            break
        offspring |= _offspring(left)
        for process in left:
            with suppress(ProcessLookupError):
                process.send_signal(number)
        # Not `asyncio.timeout`: after Ctrl-C, before Python 3.11.4, it ends with the cancellation and not with a `TimeoutError`.
        await asyncio.wait(ends, timeout=wait_for)
    return offspring


def _offspring(processes: Sequence[Process]) -> set[psutil.Process]:
    """All descendants of these. psutil identifies them by their start time, so that no other process is hit later."""
    descendants: set[psutil.Process] = set()
    for process in processes:
        with suppress(psutil.Error):
            descendants |= set(psutil.Process(process.pid).children(recursive=True))
    return descendants


def environment(ours: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Our environment without other lifesigns settings: the demo is the same everywhere."""
    kept = {name: value for name, value in ours.items() if not name.startswith("LIFESIGNS_")}
    return {**kept, "LIFESIGNS_STATE": str(folder), "LIFESIGNS_CONFIG": str(POLICY)}


def _free_port() -> int:
    """The default port, if it is free; else 0, for any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
    return PORT
