"""Commands of the user's own, on the hub's machine: as words, with their facts, and where what they put out is written.

A command is a template: `start-agent {agent_id} --from {checkpoint_id}`. It is taken apart into words before the facts are
put in, and no shell reads it, unless one is asked for; then each fact is quoted. The facts are also in the environment,
with the names `lifesigns run` gives them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from lifesigns.core import templates
from lifesigns.errors import UsageError

FACT_MAX: Final = 4096
OUTPUT_MAX: Final = 10 * 1024 * 1024


def check(command: str, names: Iterable[str], *, shell: bool) -> None:
    """Whether a command can be filled with facts of these names. Raises `UsageError`."""
    if wrong := templates.fault(command, names) or ("" if shell else _unreadable(command)):
        raise UsageError(f"the command {wrong}")


def filled(command: str, facts: Mapping[str, str], *, shell: bool) -> list[str] | str:
    """The words to start; one line for a shell."""
    if shell:
        return templates.filled(command, {name: shlex.quote(value) for name, value in facts.items()})
    return [templates.filled(word, facts) for word in shlex.split(command)]


def fact(value: str) -> str:
    """A text as an argument: without what ends one, and no longer than one may be."""
    return value.replace("\0", "").encode()[:FACT_MAX].decode(errors="ignore")


def environment(told: Mapping[str, str]) -> dict[str, str]:
    """Ours, with these told as `LIFESIGNS_NAME`; what is empty is not there, whatever was told to us."""
    ours = {name: value for name, value in os.environ.items() if name.removeprefix("LIFESIGNS_") not in told}
    return ours | {f"LIFESIGNS_{name}": value for name, value in told.items() if value}


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
