"""`lifesigns open`: the link alone on standard output, for whoever the token is; opened if asked for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from lifesigns.web import pages
from tests.agent.supervise.running import environ, on_screen
from tests.cli.hub import HubInThread, hub_in_thread


@pytest.fixture(scope="module")
def hub() -> Iterator[HubInThread]:
    with hub_in_thread() as running:
        yield running


def opened(link: str) -> httpx2.Response:
    """Open a link, and press the button of the page it shows."""
    with httpx2.Client(trust_env=False) as browser:
        page = browser.get(link)
        if page.status_code != 200:
            return page
        form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text))
        url = link.partition("/sign-in")[0]
        return browser.post(f"{url}/sign-in", data=form, headers={"origin": url})


def test_it_prints_a_link_that_works_once(hub: HubInThread) -> None:
    said = hub.started("open")
    assert said.returncode == 0
    link = said.stdout.strip()
    assert link.startswith(f"{hub.url}/sign-in?code=")
    assert "once" in said.stderr
    first, again = opened(link), opened(link)
    assert (first.status_code, again.status_code) == (303, 401)
    assert "lifesigns open" in again.json()["detail"]


def test_the_link_is_for_whoever_the_token_is(hub: HubInThread) -> None:
    viewer = hub.client.create_token("viewer", "Vera").token
    made = json.loads(hub.cli("open", "--json", "--token", viewer).output)
    cookie = opened(made["url"]).headers["set-cookie"].partition(";")[0]
    with httpx2.Client(trust_env=False) as browser:
        me = browser.get(f"{hub.url}/api/v1/me", headers={"cookie": cookie}).json()
    assert (me["name"], me["role"]) == ("Vera", "viewer")


@pytest.mark.parametrize("works", [True, False])
def test_it_opens_it_in_a_browser_or_says_that_there_is_none(
    hub: HubInThread, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    links: list[str] = []

    def open_(link: str) -> bool:
        links.append(link)
        return works

    monkeypatch.setattr(webbrowser, "open", open_)
    said = hub.cli("open", "--browser")
    assert said.exit_code == (0 if works else 1)
    assert links[0] in said.output
    assert ("No browser" in said.output) is not works


def test_an_agent_has_no_dashboard(hub: HubInThread) -> None:
    agent = hub.client.create_token("agent", "ci", agents="coder-*").token
    assert hub.cli("open", "--token", agent).exit_code == 2


def test_without_a_hub_it_says_what_to_do(hub: HubInThread) -> None:
    said = hub.cli("open", "--hub", "http://127.0.0.1:9")
    assert said.exit_code == 2
    assert "lifesigns serve" in said.output


SERVE = (sys.executable, "-m", "lifesigns", "serve", "--port", "0", "--state")
needs_dashboard = pytest.mark.skipif(
    not pages.is_built(), reason="the dashboard is not built (make dashboard)"
)


@needs_dashboard
def test_serve_gives_a_link_to_whoever_sits_at_the_terminal(tmp_path: Path) -> None:
    with on_screen(*SERVE, str(tmp_path), columns=200) as screen:
        link = screen.expect(r"http://\S+/sign-in\?code=\S+")[0]
        assert opened(link).status_code == 303


@needs_dashboard
def test_a_log_never_holds_a_link(tmp_path: Path) -> None:
    """Others read logs."""
    with subprocess.Popen(
        [*SERVE, str(tmp_path)], stderr=subprocess.PIPE, text=True, env=environ()
    ) as process:
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if "Ctrl-C" in line:
                    break
        finally:
            process.terminate()
    assert "lifesigns open" in said
    assert "code=" not in said
