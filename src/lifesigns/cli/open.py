"""`lifesigns open`: the way into the dashboard."""

from __future__ import annotations

import sys
import webbrowser

import click

from lifesigns.cli.requests import UNWELL, asking, asks_a_hub, prints_json
from lifesigns.cli.say import say
from lifesigns.cli.showing import print_json


@click.command("open")
@click.option("--browser", is_flag=True, help="Open it in this machine's browser, too.")
@prints_json
@asks_a_hub
def open(browser: bool, as_json: bool, hub: str | None, token: str | None) -> None:  # noqa: A001 -- the command's name
    """Make a link that signs you in to the dashboard.

    It works once, for five minutes, and whoever opens it can do there what you can do here. For somebody who is only to
    look: lifesigns token create --role viewer, and lifesigns open --token with that token.
    """
    with asking(hub, token) as client:
        link = client.sign_in_link()
    if as_json:
        print_json(link)
    else:
        say(link.url)
        click.echo("It works once, for five minutes.", err=True)
    if browser and not webbrowser.open(link.url):
        click.echo("No browser could be started here; open the link in one.", err=True)
        sys.exit(UNWELL)
