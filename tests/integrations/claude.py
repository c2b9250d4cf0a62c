"""The real Claude Code, offline: against a scripted model, with a home and a project folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integrations.scripted_model import ScriptedModel, Step, scripted_model
from tests.journeys.outside import Hub, Json, serving, until

VERSION = "2.1.325"
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".tools/coding-agents/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
KEY = "sk-ant-dummy"

needs_claude = [
    pytest.mark.skipif(not PROGRAM.is_file(), reason="Claude Code is not installed: make integrations"),
    pytest.mark.skipif(
        not os.environ.get("LIFESIGNS_INTEGRATIONS"), reason="with the real program: make integrations"
    ),
    pytest.mark.timeout(300),
]


@dataclass
class Claude:
    """Claude Code beside a hub that watches it."""

    hub: Hub
    model: ScriptedModel
    home: Path
    project: Path
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)
    _terminals: list[str] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "LIFESIGNS_HOOK_PATIENCE": "5",  # The machine may be busy.
        }

    def start(self, script: str, *options: str) -> subprocess.Popen[str]:
        """Without a terminal; the agent may do as it likes."""
        command = [str(PROGRAM), "-p", f"play {script}", "--output-format", "json"]
        options = options or ("--permission-mode", "bypassPermissions")
        process = subprocess.Popen(
            [*command, *options],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def run(self, script: str, *options: str) -> str:
        """The same, to its end; what it printed."""
        process = self.start(script, *options)
        out, error = process.communicate(timeout=120)
        return out + error

    def at_a_terminal(self, script: str) -> Terminal:
        """In a terminal of tmux, as a person starts it."""
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY], "rejected": []},
            "projects": {str(self.project): trusted},
        }
        (self.home / ".claude.json").write_text(json.dumps(known))
        name = f"lifesigns-{os.getpid()}-{len(self._terminals)}"
        terminal = Terminal(name)
        self._terminals.append(name)
        env = [f"{key}={value}" for key, value in self.environ.items()]
        terminal.tmux(
            *("new-session", "-d", "-s", name, "-x", "140", "-y", "40", "-c", str(self.project)),
            *("env", "-i", *env, str(PROGRAM), f"play {script}", "--permission-mode", "default"),
        )
        return terminal

    def agents(self) -> list[Json]:
        """Those of this project, oldest first."""
        found = self.hub.get("/api/v1/agents")["agents"]
        return sorted((one for one in found if one["agent_id"].startswith("claude/")), key=_path_length)

    def agent(self) -> Json:
        """The only session so far."""
        sessions = [one for one in self.agents() if one["agent_id"].count("/") == 2]
        assert len(sessions) == 1, sessions
        return sessions[0]

    def findings(self) -> list[tuple[str, str]]:
        """Kind and text of all that was ever found."""
        opened = self.hub.events("FINDING_OPENED")
        return [(one["data"]["finding"]["kind"], one["data"]["finding"]["text"]) for one in opened]

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for name in self._terminals:
            Terminal(name).tmux("kill-server", check=False)


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


def _path_length(agent: Json) -> int:
    return len(agent["agent_id"])


@contextmanager
def watched_claude(
    folder: Path, scripts: Mapping[str, Sequence[Step]], config: Json | None = None
) -> Iterator[Claude]:
    """Claude Code, its model, and a hub that hears its hooks: installed by the two commands of the README."""
    home, project = folder / "home", folder / "shop"
    home.mkdir()
    project.mkdir()
    before = os.environ["HOME"]
    os.environ["HOME"] = str(home)  # The hub's own, too: it reads transcripts below it.
    try:
        with serving(folder, config) as hub, scripted_model(scripts) as model:
            hub.cli("hooks", "install", "claude-code", HOME=str(home))
            claude = Claude(hub, model, home, project)
            try:
                yield claude
            finally:
                claude.end()
    finally:
        os.environ["HOME"] = before


__all__ = ["Claude", "needs_claude", "until", "watched_claude"]
