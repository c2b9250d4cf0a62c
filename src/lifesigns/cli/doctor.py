"""`lifesigns doctor`: what is wrong with a set-up, and how to mend it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from lifesigns.cli import output
from lifesigns.cli.output import words
from lifesigns.cli.requests import exit_if, finds_a_hub, prints_json
from lifesigns.cli.say import say

if TYPE_CHECKING:
    from lifesigns.cli.doctor_checks import Check

MARKS: Final = {"ok": ("✓", "green"), "warn": ("!", "bold yellow"), "bad": ("✗", "bold red")}


@click.command()
@prints_json
@finds_a_hub
def doctor(as_json: bool, hub: str | None, token: str | None) -> None:
    """Find what is wrong with a set-up, and how to mend it.

    Looks at the configuration, the state folder, the hub, the token, the clocks, the store, the bus and at who is heard.
    Exits with 1 if something is bad.
    """
    from lifesigns.cli.doctor_checks import examine
    from lifesigns.config.hub_locator import find

    checks = []
    for check in examine(os.environ, find(os.environ, hub, token), given=token is not None):
        checks.append(check)
        if not as_json:
            _print(check)
    bad = sum(check.level == "bad" for check in checks)
    if as_json:
        output.print_json({"ok": not bad, "checks": checks})
    else:
        warned = sum(check.level == "warn" for check in checks)
        say(f"\n{_count(bad, 'thing is bad', 'things are bad')}, {_count(warned, 'warning', 'warnings')}.")
    exit_if(bad)


def _print(check: Check) -> None:
    """Print each check at once: some take a moment."""
    from rich.text import Text

    mark, style = MARKS[check.level]
    console = output.console()
    console.print(Text.assemble((mark, style), f" {check.what}: ", words(check.said)), soft_wrap=True)
    if check.mend:
        console.print(Text.assemble(("    → ", style), words(check.mend)), soft_wrap=True)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
