"""A browser and a hub for each module, a fresh profile for each test; whatever the page did wrong fails the test.

Playwright's loop lives on the thread of the tests while it is open, and async tests of other modules want one of their own:
so it is opened and closed with each module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
    sync_playwright,
)

from lifesigns.web import pages
from tests.browser.fleet import WITHIN
from tests.browser.hub import Hub
from tests.browser.visit import Visit
from tools import chromium

expect.set_options(timeout=WITHIN * 1000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium, headless."""
    found = chromium.find()
    if found is None:
        pytest.skip(f"there is no Chromium on this machine ({chromium.HOW})")
    if not pages.is_built():
        pytest.skip("the dashboard is not built (make dashboard)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=found.path, args=list(chromium.FLAGS), env={**os.environ, **found.env}
        )
        try:
            yield started
        finally:
            started.close()


@pytest.fixture(scope="module")
def hub(browser: Browser) -> Iterator[Hub]:
    """A hub of this module's own. After the browser: where there is none, none is started."""
    with Hub() as running:
        yield running


@pytest.fixture
def visit(browser: Browser, hub: Hub) -> Iterator[Callable[..., Visit]]:
    """Somebody who comes to the dashboard; each has a browser profile of their own."""
    with ExitStack() as stack:

        def come(token: str | None = None, **options: Any) -> Visit:
            return stack.enter_context(_visiting(browser, hub, token, options))

        yield come


@pytest.fixture
def operator(browser: Browser, hub: Hub) -> Iterator[Visit]:
    """Somebody who may act, signed in, on the first page: once for the module, and its tests go on with the session."""
    token = hub.operator_token
    with _visiting(browser, hub, token, {"storage_state": hub.sessions.get(token)}) as visit:
        if token not in hub.sessions:
            visit.page.wait_for_url(f"{hub.url}/")
            hub.sessions[token] = visit.context.storage_state()
        yield visit


@pytest.fixture
def page(operator: Visit) -> Page:
    return operator.page


@contextmanager
def _visiting(browser: Browser, hub: Hub, token: str | None, options: dict[str, Any]) -> Iterator[Visit]:
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    context.set_default_timeout(WITHIN * 1000)
    try:
        visit = Visit(hub, context, _watched(context, hub))
        signs_in = token is not None and options.get("storage_state") is None
        visit.page.goto(hub.link(token) if token is not None and signs_in else hub.url)
        if signs_in:
            visit.page.get_by_role("button", name="Sign in").click()
        yield visit
        visit.check()
    finally:
        context.close()


def _watched(context: BrowserContext, hub: Hub) -> list[str]:
    """Everything the page should not have done, as it happens. A breach of the content security policy is an error there;
    that the hub is away, or refuses, is none."""
    wrong: list[str] = []
    place = urlsplit(hub.url).netloc

    def asked(request: Request) -> None:
        if urlsplit(request.url).netloc != place and not request.url.startswith("data:"):
            wrong.append(f"asked another host: {request.url}")

    def opened(dialog: Dialog) -> None:
        wrong.append(f"opened a dialog: {dialog.message}")
        dialog.dismiss()

    def logged(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            wrong.append(f"logged: {message.text}")

    context.on("request", asked)
    context.on("dialog", opened)
    context.on("console", logged)
    context.on("weberror", lambda error: wrong.append(f"threw: {error.error}"))
    return wrong
