"""`lifesigns open`: a link to the dashboard."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING

import click

from lifesigns.cli.output import answer
from lifesigns.cli.requests import asks_a_hub, exit_if, prints_json

if TYPE_CHECKING:
    from lifesigns.client import Client


@click.command("open")
@click.option("--browser", is_flag=True, help="Open it in this machine's browser, too.")
@prints_json
@asks_a_hub
def open(client: Client, browser: bool, as_json: bool) -> None:  # noqa: A001 -- the command's name
    """Make a link that signs you in to the dashboard.

    It works once, for five minutes, and anyone who opens it can do there what you can do here. For a person who may
    only look: lifesigns token create --role viewer, and lifesigns open --token with that token.
    """
    link = client.sign_in_link()
    answer(link, link.url, as_json=as_json)
    if not as_json:
        click.echo("It works once, for five minutes.", err=True)
    if browser and not webbrowser.open(link.url):
        click.echo("No browser could be started here; open the link in one.", err=True)
        exit_if(True)
