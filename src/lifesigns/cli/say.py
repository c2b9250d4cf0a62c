"""Prints lines of text on the terminal, parts of which may come from elsewhere."""

from __future__ import annotations

import click

from lifesigns.core.printable import spelled_out


def say(text: object = "", *, err: bool = False) -> None:
    """One line or several. Control characters are spelled out. Not for JSON with foreign text: see `output.json_line`."""
    click.echo("\n".join(map(spelled_out, str(text).split("\n"))), err=err)
