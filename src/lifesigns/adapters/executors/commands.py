"""Commands of the user's own, on the hub's machine: as words, with their facts, and where what they put out is written.

A command is a template: `start-agent {agent_id} --from {checkpoint_id}`. It is taken apart into words before the facts are
put in, and no shell reads it, unless one is asked for. What may be a fact, and what is refused, is in `core/commands.py`.

A command gets a small environment: what `PASSED_ON` and `env:` name of the hub's own, and its facts, with the names
`lifesigns run` gives them. Nothing else of the hub's: its tokens, its store's password and its channels' secrets are there.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lifesigns.core import commands, templates
from lifesigns.errors import AdapterError, UsageError

FACT_MAX: Final = 4096
OUTPUT_MAX: Final = 10 * 1024 * 1024
SHELL: Final = ("/bin/sh", "-u", "-c")
"""With `-u` a fact that is not there ends the command, instead of vanishing from the path it was a part of."""
PASSED_ON: Final = frozenset(
    "HOME LANG LANGUAGE LIFESIGNS_INSECURE LOGNAME PATH SHELL SSL_CERT_DIR SSL_CERT_FILE TERM TMPDIR TZ USER".split()
)
"""Of the hub's environment, and `LC_*`."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command to be filled with facts. `env` names what else it gets of the hub's environment."""

    text: str
    facts: Mapping[str, str]
    shell: bool = False
    cwd: Path | None = None
    env: Sequence[str] = ()

    def __post_init__(self) -> None:
        wrong = commands.fault(self.text, self.facts, shell=self.shell) or _unreadable(self.text)
        if wrong:
            raise UsageError(f"the command {wrong}")

    def words(self, facts: Mapping[str, str]) -> list[str]:
        """The words to start. Raises `AdapterError` if a fact must not stand in a command."""
        if wrong := commands.refusal(self.text, facts):
            raise AdapterError(f"the command is not started: {wrong}", transient=False)
        if self.shell:
            quoted = {name: shlex.quote(value) for name, value in facts.items()}
            return [*SHELL, templates.filled(self.text, quoted)]
        return [templates.filled(word, facts) for word in shlex.split(self.text)]

    def environment(self, facts: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
        """What it finds there: facts and what else it is `told`, as `LIFESIGNS_NAME`; an id that is empty is not there."""
        named = {
            self.facts[name]: value for name, value in facts.items() if value or name in commands.FREE_TEXT
        }
        named |= {name: value for name, value in told.items() if value}
        return inherited(self.env) | {f"LIFESIGNS_{name}": text(value) for name, value in named.items()}


def inherited(names: Sequence[str] = ()) -> dict[str, str]:
    """What every child of the hub gets of its environment, and these."""
    passed = PASSED_ON.union(names)
    return {name: value for name, value in os.environ.items() if name in passed or name.startswith("LC_")}


def text(value: str) -> str:
    """A text in the environment: without what ends one, and no longer than one should be."""
    return value.replace("\0", "").encode(errors="replace")[:FACT_MAX].decode(errors="ignore")


def output_in(folder: Path) -> Path:
    """Where what they put out is written; not for ever."""
    path = folder / "output.log"
    if path.exists() and path.stat().st_size > OUTPUT_MAX:
        path.replace(path.with_suffix(".old"))
    return path


def how_ended(status: int) -> str:
    """An exit status in words."""
    return f"with status {status}" if status >= 0 else f"by signal {-status}"


def _unreadable(command: str) -> str:
    """What is wrong with a command that is to be taken apart into words; empty if nothing is."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"cannot be taken apart: {error}"
    return "" if words else "is empty"
