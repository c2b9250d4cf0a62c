"""Saying: lines of text on the terminal, of which parts may come from somewhere else."""

from __future__ import annotations

import click

from lifesigns.core.printable import spelled_out


def say(text: object = "", *, err: bool = False) -> None:
    """One line or several. What a terminal would obey is spelled out. Not for JSON of others' words: see `showing.json_line`."""
    click.echo("\n".join(map(spelled_out, str(text).split("\n"))), err=err)
