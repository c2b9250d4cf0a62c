"""The coding agents that lifesigns watches: how each is started against a scripted model, and where it differs from the others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.journeys.outside import Json

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
    failures_told: bool = True
    """Whether it tells that a call failed; otherwise a failure looks like a result, and a loop is found at four."""
    goes_on_alone: bool = True
    """Whether it waits for a model that refuses also without a terminal."""

    @property
    def family(self) -> str:
        """What the ids of its sessions begin with."""
        return "claude" if self.name == "claude-code" else self.name


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


CLAUDE_KEY = "sk-ant-dummy"
CODEX_CONFIG = """
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[features]
plugins = false
apps = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[projects."{project}"]
trust_level = "trusted"
"""


def _claude(home: Path, _: str) -> None:
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
    write(
        home / ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [CLAUDE_KEY], "rejected": []},
            "projects": {str(home.parent / "shop"): trusted},
        },
    )


def _codex(home: Path, url: str) -> None:
    config = home / ".codex/config.toml"
    config.parent.mkdir()
    config.write_text(CODEX_CONFIG.format(url=url, project=home.parent / "shop"))


CLAUDE = Coder(
    name="claude-code",
    program=MODULES / "@anthropic-ai/claude-code-linux-x64/claude",
    alone=lambda prompt: [
        *("-p", prompt, "--output-format", "json", "--permission-mode", "bypassPermissions"),
    ],
    asking=lambda prompt: [prompt, "--permission-mode", "default"],
    environ=lambda url, _: {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": CLAUDE_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    },
    prepare=_claude,
    shell="Bash",
    goes_on_alone=False,
)
CODEX = Coder(
    name="codex",
    program=MODULES / ".bin/codex",
    alone=lambda prompt: [
        *("exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox", prompt),
    ],
    asking=lambda prompt: ["-a", "on-request", "-s", "read-only", prompt],
    environ=lambda *_: {"SCRIPTED_KEY": "dummy"},
    prepare=_codex,
    shell="Bash",
    failures_told=False,
    goes_on_alone=False,
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
CODERS = {one.name: one for one in (CLAUDE, CODEX, GEMINI, QWEN, COPILOT, OPENCODE)}
