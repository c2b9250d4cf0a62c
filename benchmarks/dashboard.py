"""How quick the dashboard is: a real hub with 10,000 agents that beat, looked at in a real Chromium.

Without one there is nothing to measure: `make chromium`, `make dashboard`.
"""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Page, expect, sync_playwright

from lifesigns.client import Client
from lifesigns.web import pages
from tests.browser import measure
from tests.browser.hub import Hub
from tools import chromium

BEAT_EVERY = 5.0
CHANGES = 20
SCROLLS = 5


@dataclass(frozen=True)
class Seen:
    """The results."""

    packed_kb: float
    painted_ms: float
    listed_s: float
    scrolled: measure.Scrolled
    """The median of several."""
    seen_s: list[float]


def look() -> Seen:
    """Measure all of it."""
    found = chromium.find()
    if found is None or not pages.is_built():
        raise SystemExit("the dashboard needs a Chromium and a build: make chromium dashboard")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.path, args=list(chromium.FLAGS), env={**os.environ, **found.env}
        )
        try:
            with Hub() as hub:
                measure.furnish(hub.client, measure.MANY)
                with _beating(hub):
                    return _look(browser.new_context(viewport={"width": 1280, "height": 800}).new_page(), hub)
        finally:
            browser.close()


def _look(page: Page, hub: Hub) -> Seen:
    page.goto(hub.link(hub.operator_token))
    sign_in = page.get_by_role("button", name="Sign in")
    sign_in.click()
    expect(sign_in).to_be_hidden()
    began_at = time.monotonic()
    page.goto(hub.url)
    painted = measure.first_paint_ms(page)
    expect(page.get_by_text("10,000 agents", exact=True)).to_be_visible(timeout=60_000)
    listed = time.monotonic() - began_at
    scrolls = sorted((measure.scroll(page) for _ in range(SCROLLS)), key=lambda one: one.per_second)
    seen = [measure.seen_after(page, hub.client, f"agent-{n:05}") for n in range(CHANGES)]
    return Seen(_packed_kb(), painted, listed, scrolls[SCROLLS // 2], seen)


def _packed_kb() -> float:
    files = [file for file in pages.FOLDER.iterdir() if not file.name.startswith(".")]
    return sum(len(gzip.compress(file.read_bytes(), 9)) for file in files) / 1000


@contextmanager
def _beating(hub: Hub) -> Iterator[None]:
    """Let all of them beat meanwhile, each every five seconds."""
    over = threading.Event()
    token = hub.operator_token

    def beat() -> None:
        batches = [
            batch[n : n + 500] for batch in measure.beats(measure.MANY) for n in range(0, len(batch), 500)
        ]
        with Client(hub.url, token) as client:
            while True:
                for batch in batches:
                    client.beats(batch)
                    if over.wait(BEAT_EVERY / len(batches)):
                        return

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
