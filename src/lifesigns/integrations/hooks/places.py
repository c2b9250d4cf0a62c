"""Places: where each program has its hooks, and how ours are put there and taken away.

Two kinds. In a settings file that is the user's our hooks stand beside everything else (`settings.py`). Or the program takes
every file of a folder: then one file is ours alone, and a file of that name that is not ours is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from lifesigns.errors import UsageError
from lifesigns.integrations.hooks import settings
from lifesigns.integrations.hooks.programs import PROGRAMS
from lifesigns.integrations.hooks.settings import MARK


class HookFile(Protocol):
    """What a program's file is, with our hooks and without."""

    def fragment(self, client: Path | None) -> str:
        """What is put in, to be shown; `client` is None in a file that several people share."""

    def put(self, text: str, path: str, client: Path | None) -> str:
        """The file with our hooks, each once. Raises `UsageError` if it cannot be read."""

    def taken(self, text: str, path: str) -> str:
        """The file without our hooks; empty if there is nothing left of it."""

    def missing(self, text: str, path: str) -> list[str] | None:
        """The hooks of ours that are not in it; None if none is there."""

    def disabled(self, text: str, path: str) -> bool:
        """Whether the program runs no hook at all because of this file."""


class SettingsFile(Struct, frozen=True):
    """Hooks in settings that are the user's."""

    program: str
    timeout: int = settings.TIMEOUT

    def fragment(self, client: Path | None) -> str:
        hooks = settings.hooks_of(self._events, self._command(client), self.timeout)
        return json.dumps({"hooks": hooks}, indent=2)

    def put(self, text: str, path: str, client: Path | None) -> str:
        return settings.with_hooks(text, path, self._events, self._command(client), self.timeout)

    def taken(self, text: str, path: str) -> str:
        return settings.without_hooks(text, path)

    def missing(self, text: str, path: str) -> list[str] | None:
        has = settings.installed(text, path)
        return [event for event in self._events if event not in has] if has else None

    def disabled(self, text: str, path: str) -> bool:
        return settings.disabled(text, path)

    @property
    def _events(self) -> tuple[str, ...]:
        return PROGRAMS[self.program].events

    def _command(self, client: Path | None) -> str:
        if client is None:
            return settings.shared_command(self.program)
        return settings.command(self.program, str(client))


class OwnFile(Struct, frozen=True):
    """A file of ours among others."""

    program: str

    def fragment(self, client: Path | None) -> str:
        raise NotImplementedError

    def put(self, text: str, path: str, client: Path | None) -> str:
        self._refuse_others(text, path)
        return self.fragment(client)

    def taken(self, text: str, path: str) -> str:
        self._refuse_others(text, path)
        return ""

    def missing(self, text: str, path: str) -> list[str] | None:
        return [] if MARK in text else None

    def disabled(self, text: str, path: str) -> bool:
        return False

    def _refuse_others(self, text: str, path: str) -> None:
        if text.strip() and MARK not in text:
            raise UsageError(f"{path} is not a file of lifesigns, so it is left as it is; move it away first")


class CopilotFile(OwnFile, frozen=True):
    """Copilot takes each file of its folder for hooks."""

    def fragment(self, client: Path | None) -> str:
        shared = settings.shared_command(self.program)
        command = shared if client is None else settings.command(self.program, str(client))
        hook: dict[str, Any] = {"type": "command", "bash": command, "timeoutSec": settings.TIMEOUT}
        hooks = {event: [hook] for event in PROGRAMS[self.program].events}
        return json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"


class OpencodeFile(OwnFile, frozen=True):
    """A plugin of opencode: it speaks to the hub by itself."""

    def fragment(self, client: Path | None) -> str:
        plugin = files("lifesigns.integrations.hooks").joinpath("opencode.js").read_text()
        state = "null" if client is None else json.dumps(str(client.parents[1]))
        return plugin.replace("const STATE = null", f"const STATE = {state}", 1)


class Place(Struct, frozen=True):
    """Where a program has its hooks: below a user's home, and below a project."""

    file: HookFile
    user: str
    project: str
    home: str = ""
    """The variable that names another folder instead of the first one of `user`."""
    below: int = 1
    """How many folders of `user` that variable stands for."""

    def path(self, scope: str, environ: Mapping[str, str]) -> Path:
        if scope == "project":
            return Path.cwd() / self.project
        own = environ.get(self.home) if self.home else None
        return Path(own, *Path(self.user).parts[self.below :]) if own else Path.home() / self.user


PLACES: Final[Mapping[str, Place]] = {
    "claude-code": Place(
        SettingsFile("claude-code"), ".claude/settings.json", ".claude/settings.json", "CLAUDE_CONFIG_DIR"
    ),
    "codex": Place(SettingsFile("codex"), ".codex/hooks.json", ".codex/hooks.json", "CODEX_HOME"),
    "gemini": Place(  # Its timeouts are milliseconds.
        SettingsFile("gemini", settings.TIMEOUT * 1000),
        ".gemini/settings.json",
        ".gemini/settings.json",
        "GEMINI_CLI_HOME",
        below=0,
    ),
    "qwen": Place(SettingsFile("qwen"), ".qwen/settings.json", ".qwen/settings.json", "QWEN_HOME"),
    "copilot": Place(
        CopilotFile("copilot"),
        ".copilot/hooks/lifesigns.json",
        ".github/hooks/lifesigns.json",
        "COPILOT_HOME",
    ),
    "opencode": Place(
        OpencodeFile("opencode"),
        ".config/opencode/plugins/lifesigns.js",
        ".opencode/plugins/lifesigns.js",
        "XDG_CONFIG_HOME",
    ),
}
