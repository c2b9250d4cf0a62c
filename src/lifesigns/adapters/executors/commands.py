"""Commands of the user's own, on the hub's machine: their words, their facts, and their output file.

A command is a template: `start-agent {agent_id} --from {checkpoint_id}`. We split it into words before we fill in the
facts, and no shell reads it unless one is configured. `core/commands.py` has the possible facts, and what is refused.

A command gets a small environment: the variables of `PASSED_ON` and `env:`, and its facts under the names that
`lifesigns run` uses. Nothing else of the hub's, which holds its tokens, its store's password and its channels' secrets.
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
"""With `-u` a missing fact ends the command, instead of vanishing from the path it was a part of."""
PASSED_ON: Final = frozenset(
    "HOME LANG LANGUAGE LIFESIGNS_INSECURE LOGNAME PATH SHELL SSL_CERT_DIR SSL_CERT_FILE TERM TMPDIR TZ USER".split()
)
"""Variables of the hub's environment; `LC_*` too."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command template. `env` names more variables of the hub's environment for it."""

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
        """The words to start. Raises `AdapterError` if a fact must not be in a command."""
        if wrong := commands.refusal(self.text, facts):
            raise AdapterError(f"the command is not started: {wrong}", transient=False)
        if self.shell:
            quoted = {name: shlex.quote(value) for name, value in facts.items()}
            return [*SHELL, templates.filled(self.text, quoted)]
        return [templates.filled(word, facts) for word in shlex.split(self.text)]

    def environment(self, facts: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
        """Its environment: facts and `extra` as `LIFESIGNS_NAME`, without empty ids."""
        named = {
            self.facts[name]: value for name, value in facts.items() if value or name in commands.FREE_TEXT
        }
        named |= {name: value for name, value in extra.items() if value}
        return inherited(self.env) | {f"LIFESIGNS_{name}": text(value) for name, value in named.items()}


def inherited(names: Sequence[str] = ()) -> dict[str, str]:
    """The part of the hub's environment that every child gets, and these names."""
    passed = PASSED_ON.union(names)
    return {name: value for name, value in os.environ.items() if name in passed or name.startswith("LC_")}


def text(value: str) -> str:
    """A text for the environment: without NUL, and cut to the limit."""
    return value.replace("\0", "").encode(errors="replace")[:FACT_MAX].decode(errors="ignore")


def output_in(folder: Path) -> Path:
    """The output file; rotated when it is too large."""
    path = folder / "output.log"
    if path.exists() and path.stat().st_size > OUTPUT_MAX:
        path.replace(path.with_suffix(".old"))
    return path


def how_ended(status: int) -> str:
    """An exit status in words."""
    return f"with status {status}" if status >= 0 else f"by signal {-status}"


def _unreadable(command: str) -> str:
    """What is wrong with a command that has to be split into words; empty if nothing is."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"cannot be taken apart: {error}"
    return "" if words else "is empty"
