"""Options with secrets: tokens, and addresses with a password in them.

A command line is seen by everybody on the machine (`ps`, `/proc/PID/cmdline`), the environment by its owner alone. So a secret
comes by the environment or as `@FILE`. One that is on the command line all the same is overwritten there as soon as we
read it: on Linux a process may write the memory that `ps` reads. What that does not help against: whoever looked in the
tenth of a second before, the shell's history, a wrapper's own command line (`sudo`, `uv run`), and other systems, where we
only warn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from lifesigns.cli.say import say

F = TypeVar("F", bound=Callable[..., Any])

INSECURE: Final = "LIFESIGNS_INSECURE"
ARG_START: Final = 48
"""The field of /proc/self/stat (proc(5)) with the address of the command line; the next one has its end."""


class Secret(click.ParamType[str]):
    """A token or an address, as it is or as `@FILE`."""

    name = "secret"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        said = str(value)
        if said.startswith("@"):
            try:
                return Path(said[1:]).expanduser().read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                self.fail(f"{said[1:]} cannot be read: {getattr(error, 'strerror', error)}", param, ctx)
        if ctx is not None and param is not None and is_secret(said):
            typed = ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
            if typed and not hide(said):
                way = f"LIFESIGNS_{param.name.upper()} or --{param.name} @FILE"
                say(f"Warning: everybody on this machine can see --{param.name}; use {way}.", err=True)
        return said


def is_secret(said: str) -> bool:
    """A token is one; an address if there is a user or password in it."""
    _, separator, rest = said.partition("://")
    return not separator or "@" in rest


def hide(secret: str) -> bool:
    """Overwrite a word of our own command line; whether nobody can read it there any more."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        begin, end = (int(field) for field in fields[ARG_START - 3 : ARG_START - 1])
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(begin)
            words = memory.read(end - begin)
            word = os.fsencode(secret)
            memory.seek(begin)
            memory.write(words.replace(word, b"*" * len(word)))
    except (OSError, ValueError):
        return False
    return True


def allows_insecure(command: F) -> F:
    """A command with `--insecure`."""

    def allow(_: click.Context, __: click.Parameter, said: bool) -> None:
        if said:
            os.environ[INSECURE] = "1"  # For whom it starts, too.

    return click.option(
        "--insecure",
        is_flag=True,
        expose_value=False,
        callback=allow,
        help=f"Send the token to another machine without TLS.  [{INSECURE}=1]",
    )(command)
