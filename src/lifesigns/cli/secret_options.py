"""Options with secrets: tokens, and addresses with a password in them.

Every user of the machine sees a command line (`ps`, `/proc/PID/cmdline`), but only its owner the environment. So a
secret comes by the environment or as `@FILE`. If it is on the command line all the same, we overwrite it there as soon
as we read it: on Linux a process may write the memory that `ps` reads. That does not help against a look in the tenth
of a second before, the shell's history, a wrapper's own command line (`sudo`, `uv run`), and other systems, where we
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
from lifesigns.wire.addresses import INSECURE

F = TypeVar("F", bound=Callable[..., Any])

ARG_START: Final = 48
"""The field of /proc/self/stat (proc(5)) with the address of the command line; the next one has its end."""


class Secret(click.ParamType[str]):
    """A token or an address, as text or as `@FILE`."""

    name = "secret"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text.startswith("@"):
            try:
                return Path(text[1:]).expanduser().read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                self.fail(f"{text[1:]} cannot be read: {getattr(error, 'strerror', error)}", param, ctx)
        if ctx is not None and param is not None and is_secret(text):
            typed = ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
            if typed and not hide(text):
                way = f"LIFESIGNS_{param.name.upper()} or --{param.name} @FILE"
                say(f"Warning: everybody on this machine can see --{param.name}; use {way}.", err=True)
        return text


def is_secret(text: str) -> bool:
    """A token is secret; an address if it has a user or password."""
    _, separator, rest = text.partition("://")
    return not separator or "@" in rest


def hide(secret: str) -> bool:
    """Overwrite a word of our own command line; whether that succeeded."""
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

    def allow(_: click.Context, __: click.Parameter, allowed: bool) -> None:
        if allowed:
            os.environ[INSECURE] = "1"  # Also for the programs it starts.

    return click.option(
        "--insecure",
        is_flag=True,
        expose_value=False,
        callback=allow,
        help=f"Send the token to another machine without TLS.  [{INSECURE}=1]",
    )(command)
