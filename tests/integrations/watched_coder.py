"""A real coding agent beside a hub that watches it, offline: with a home and a project folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from tests.integrations.coders import Coder
from tests.integrations.scripted_model import ScriptedModel, Step, scripted_model
from tests.journeys.outside import Hub, Json, serving

HANG = "timeout 100 tail -f /dev/null"
"""Claude Code refuses to sleep."""
IMPATIENT = {"health_monitoring": {}, "agents": {"*": {"stall": {"call_max": 3}}}}
"""A call may take three seconds: so that a hang is found while a test waits."""
STARTS_WITHIN = 400.0
"""Seconds until such a program has called its model, on a machine that has other things to do: with twenty others that wanted its two
processors, 200 were too few."""

PATIENCE = "1.8"
"""Seconds a hook waits for a hub on a busy machine: less than the two after which a program ends the hook."""

needs_coders = [
    pytest.mark.skipif(
        not os.environ.get("LIFESIGNS_INTEGRATIONS"), reason="with the real program: make integrations"
    ),
    pytest.mark.timeout(1200),
]


@dataclass
class Terminal:
    """A terminal of a tmux server of its own."""

    name: str

    def tmux(self, *args: str, check: bool = True) -> str:
        done = subprocess.run(["tmux", "-L", self.name, *args], capture_output=True, text=True, check=check)
        return done.stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", self.name)

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.name, *keys)

    def end(self) -> None:
        pid = self.tmux("list-panes", "-F", "#{pane_pid}", check=False).strip()
        self.tmux("kill-server", check=False)
        if pid:
            with suppress(ProcessLookupError):  # Gemini outlives its terminal.
                os.killpg(int(pid), signal.SIGKILL)


@dataclass
class Watched:
    """A program beside a hub that watches it."""

    coder: Coder
    hub: Hub
    model: ScriptedModel
    home: Path
    project: Path
    further: dict[str, str] = field(default_factory=dict)
    """Variables that its user has set, beside those that every program needs."""
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)
    _terminals: list[Terminal] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        basic = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "xterm-256color"}
        basic["LIFESIGNS_HOOK_PATIENCE"] = PATIENCE
        return {**basic, **self.further, **self.coder.environ(self.model.url, self.home)}

    def start(self, script: str, *options: str) -> subprocess.Popen[str]:
        """Without a terminal; the agent may do as it likes. What it prints is shown when a wait fails, and never fills a pipe."""
        name = f"{self.coder.name}-{len(self._processes)}"
        with (
            (self.hub.folder / f"{name}.out.log").open("w") as out,
            (self.hub.folder / f"{name}.err.log").open("w") as err,
        ):
            process = subprocess.Popen(
                [str(self.coder.program), *self.coder.alone(f"play {script}"), *options],
                cwd=self.project,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                text=True,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def run(self, script: str, *options: str) -> str:
        """The same, to its end; what it printed."""
        return self.wait(self.start(script, *options))

    def wait(self, process: subprocess.Popen[str]) -> str:
        """Until it has ended by itself; what it printed."""
        out = self.hub.folder / f"{self.coder.name}-{self._processes.index(process)}.out.log"
        self.hub.until(lambda: process.poll() is not None, f"{self.coder.name} has ended", STARTS_WITHIN)
        return out.read_text()

    def at_a_terminal(self, script: str) -> Terminal:
        """In a terminal of tmux, as a person starts it."""
        terminal = Terminal(f"lifesigns-{os.getpid()}-{self.coder.name}-{len(self._terminals)}")
        self._terminals.append(terminal)
        env = [f"{key}={value}" for key, value in self.environ.items()]
        terminal.tmux(
            *("new-session", "-d", "-s", terminal.name, "-x", "140", "-y", "40", "-c", str(self.project)),
            *("env", "-i", *env, str(self.coder.program), *self.coder.asking(f"play {script}")),
        )
        return terminal

    def agents(self) -> list[Json]:
        """Its sessions and their subagents, those with short names first."""
        found = self.hub.get("/api/v1/agents")["agents"]
        ours = [one for one in found if one["agent_id"].startswith(f"{self.coder.family}/")]
        return sorted(ours, key=lambda one: len(one["agent_id"]))

    def agent(self) -> Json:
        """The only session so far."""
        sessions = [one for one in self.agents() if one["agent_id"].count("/") == 2]
        assert len(sessions) == 1, sessions
        return sessions[0]

    def doing(self) -> str:
        return str(self.agent()["doing"]) if self.agents() else ""

    def until_it_works(self, calls: int) -> None:
        """Wait until it has made so many calls."""
        self.hub.until(
            lambda: self.agents() and self.agent()["metrics"]["tool_call_count"] >= calls,
            f"it made {calls} calls",
            within=STARTS_WITHIN,
        )

    def until_it_does(self, doing: str) -> None:
        self.hub.until(lambda: self.doing() == doing, f"it is {doing}", within=STARTS_WITHIN)

    def until_found(self, kind: str, begins: str) -> None:
        """Wait for a finding of this kind whose text begins so."""
        self.hub.until(
            lambda: any(text.startswith(begins) for text in self.findings(kind)),
            f"{kind} is found: {begins}",
            within=STARTS_WITHIN,
        )

    def pid(self) -> int:
        path = self.agent()["agent_id"].replace("/", "%2F")
        return int(self.hub.get(f"/api/v1/agents/{path}/heartbeat")["beat"]["pid"])

    def findings(self, kind: str = "") -> list[str]:
        """The texts of all that was ever found, of this kind."""
        opened = [one["data"]["finding"] for one in self.hub.events("FINDING_OPENED")]
        return [one["text"] for one in opened if kind in ("", one["kind"])]

    def end(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for terminal in self._terminals:
            terminal.end()
        for left in psutil.process_iter(["exe"]):
            if (left.info["exe"] or "").startswith(f"{self.home}/"):  # Codex keeps a server of its own there.
                left.kill()


W = TypeVar("W", bound=Watched)


@contextmanager
def watched(
    coder: Coder, folder: Path, scripts: Mapping[str, Sequence[Step]], config: Json | None = None
) -> Iterator[Watched]:
    """A program, its model, and a hub that hears its hooks: installed by the command of its page."""
    with beside_a_hub(Watched, coder, folder, scripts, config) as one:
        path = f"{coder.program.parent}{os.pathsep}{os.environ['PATH']}"  # Codex is asked to trust our hooks.
        done = one.hub.cli(
            "hooks", "install", coder.name, within=STARTS_WITHIN, HOME=str(one.home), PATH=path
        )
        assert coder.name != "codex" or "Codex trusts 14 hooks of lifesigns" in done.stdout
        yield one


@contextmanager
def beside_a_hub(
    kind: type[W],
    coder: Coder,
    folder: Path,
    scripts: Mapping[str, Sequence[Step]],
    config: Json | None = None,
) -> Iterator[W]:
    """The same, without hooks."""
    home, project = folder / "home", folder / "shop"
    home.mkdir()
    project.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))  # The hub's own, too: it reads transcripts below it.
        with serving(folder, config) as hub, scripted_model(scripts) as model:
            coder.prepare(home, model.url)
            one = kind(coder, hub, model, home, project)
            try:
                yield one
            finally:
                one.end()
