"""The real Gemini CLI, Qwen Code, Copilot CLI and opencode, offline: each against a scripted model, with a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.integrations.claude import Terminal
from tests.integrations.scripted_model import ScriptedModel, Step, scripted_model
from tests.journeys.outside import Hub, Json, serving

MODULES = Path(__file__).parents[2] / ".tools/coding-agents/node_modules"
NODE = MODULES / "node/bin"


@dataclass(frozen=True)
class Coder:
    """How one program is started, without a terminal and at one, and told where its model is."""

    name: str
    program: Path
    alone: Callable[[str], Sequence[str]]
    """Its arguments without a terminal, where it may do as it likes; the prompt is given."""
    asking: Callable[[str], Sequence[str]]
    """The same at a terminal, where it asks before it does something."""
    environ: Callable[[str, Path], Mapping[str, str]]
    """What it needs to find its model, whose address is given, and its home."""
    prepare: Callable[[Path, str], None]
    """What must be in its home."""
    shell: str
    """What it calls its shell."""
    tokens: int = 21 * 1050
    """Of a run of twenty calls, at least."""


ALLOWED = {"bash": "allow", "doom_loop": "allow", "external_directory": "allow"}
"""opencode asks by itself when a call is made over and over; we want to see that it is found here."""


def write(path: Path, what: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(what))


def _settings(name: str, auth: str) -> Callable[[Path, str], None]:
    def prepare(home: Path, _: str) -> None:
        settings = {
            "security": {"auth": {"selectedType": auth}, "folderTrust": {"enabled": False}},
            # They end a loop by themselves, at the fifth call; we want to see that it is found here.
            "model": {"disableLoopDetection": True, "skipLoopDetection": True},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "disableUpdateNag": True},
        }
        write(home / f".{name}/settings.json", settings)

    return prepare


def _copilot(home: Path, _: str) -> None:
    write(home / ".copilot/config.json", {"trustedFolders": [str(home.parent / "shop")]})


def _opencode(home: Path, url: str) -> None:
    models = {"scripted": {"name": "scripted", "limit": {"context": 200000, "output": 8000}}}
    options = {"baseURL": f"{url}/v1", "apiKey": "dummy"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "local", "options": options, "models": models}
    config = {"model": "local/scripted", "small_model": "local/scripted", "autoupdate": False}
    write(
        home / ".config/opencode/opencode.json",
        {**config, "share": "disabled", "permission": ALLOWED, "provider": {"local": provider}},
    )


GEMINI = Coder(
    name="gemini",
    program=MODULES / ".bin/gemini",
    alone=lambda prompt: ["-m", "gemini-2.5-flash", "-p", prompt, "--approval-mode", "yolo"],
    asking=lambda prompt: ["-m", "gemini-2.5-flash", "-i", prompt],
    environ=lambda url, _: {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "dummy",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
    prepare=_settings("gemini", "gemini-api-key"),
    shell="run_shell_command",
)
QWEN = Coder(
    name="qwen",
    program=MODULES / ".bin/qwen",
    alone=lambda prompt: ["-p", prompt, "--approval-mode", "yolo"],
    asking=lambda prompt: ["-i", prompt],
    environ=lambda url, _: {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "dummy",
        "OPENAI_MODEL": "scripted",
        "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}",
    },
    prepare=_settings("qwen", "openai"),
    shell="run_shell_command",
)
COPILOT = Coder(
    name="copilot",
    program=MODULES / "@github/copilot-linux-x64/copilot",
    alone=lambda prompt: ["-p", prompt, "--allow-all-tools", "--no-color"],
    asking=lambda prompt: ["-i", prompt],
    environ=lambda url, _: {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "dummy",
        "COPILOT_MODEL": "scripted",
        "COPILOT_OFFLINE": "true",
    },
    prepare=_copilot,
    shell="Bash",
    tokens=1050,  # It writes them down about once a second, and the last ones after its end.
)
OPENCODE = Coder(
    name="opencode",
    program=MODULES / "opencode-linux-x64/bin/opencode",
    alone=lambda prompt: ["run", prompt],
    asking=lambda prompt: ["--prompt", prompt],
    environ=lambda _, home: {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    },
    prepare=_opencode,
    shell="bash",
)
CODERS = {one.name: one for one in (GEMINI, QWEN, COPILOT, OPENCODE)}


@dataclass
class Watched:
    """A program beside a hub that watches it."""

    coder: Coder
    hub: Hub
    model: ScriptedModel
    home: Path
    project: Path
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)
    _terminals: list[Terminal] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        basic = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "xterm-256color"}
        basic["LIFESIGNS_HOOK_PATIENCE"] = "5"  # The machine may be busy.
        return {**basic, **self.coder.environ(self.model.url, self.home)}

    def start(self, script: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(self.coder.program), *self.coder.alone(f"play {script}")],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def run(self, script: str) -> str:
        return self.start(script).communicate(timeout=180)[0]

    def at_a_terminal(self, script: str) -> Terminal:
        terminal = Terminal(f"lifesigns-{os.getpid()}-{self.coder.name}-{len(self._terminals)}")
        self._terminals.append(terminal)
        env = [f"{key}={value}" for key, value in self.environ.items()]
        terminal.tmux(
            *("new-session", "-d", "-s", terminal.name, "-x", "140", "-y", "40", "-c", str(self.project)),
            *("env", "-i", *env, str(self.coder.program), *self.coder.asking(f"play {script}")),
        )
        return terminal

    def agents(self) -> list[Json]:
        found = self.hub.get("/api/v1/agents")["agents"]
        return [one for one in found if one["agent_id"].startswith(f"{self.coder.name}/")]

    def agent(self) -> Json:
        (only,) = self.agents()
        return only

    def doing(self) -> str:
        return str(self.agent()["doing"]) if self.agents() else ""

    def pid(self) -> int:
        path = self.agent()["agent_id"].replace("/", "%2F")
        return int(self.hub.get(f"/api/v1/agents/{path}/heartbeat")["beat"]["pid"])

    def findings(self, kind: str = "") -> list[str]:
        opened = [one["data"]["finding"] for one in self.hub.events("FINDING_OPENED")]
        return [one["text"] for one in opened if kind in ("", one["kind"])]

    def end(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        for terminal in self._terminals:
            pid = terminal.tmux("list-panes", "-F", "#{pane_pid}", check=False).strip()
            terminal.tmux("kill-server", check=False)
            if pid:
                with suppress(ProcessLookupError):  # Gemini outlives its terminal.
                    os.killpg(int(pid), signal.SIGKILL)


@contextmanager
def watched(
    coder: Coder, folder: Path, scripts: Mapping[str, Sequence[Step]], config: Json | None = None
) -> Iterator[Watched]:
    """A program, its model, and a hub that hears its hooks: installed by the command of its page."""
    home, project = folder / "home", folder / "shop"
    home.mkdir()
    project.mkdir()
    before = os.environ["HOME"]
    os.environ["HOME"] = str(home)  # The hub's own, too: it reads transcripts below it.
    try:
        with serving(folder, config) as hub, scripted_model(scripts) as model:
            coder.prepare(home, model.url)
            hub.cli("hooks", "install", coder.name, HOME=str(home))
            one = Watched(coder, hub, model, home, project)
            try:
                yield one
            finally:
                one.end()
    finally:
        os.environ["HOME"] = before
