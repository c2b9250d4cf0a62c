"""The hubs on one store: which judges, which could, and the button that drains one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.hub import Hub
from tests.browser.visit import Visit
from tests.servers.postgres import PostgresServer

Come = Callable[..., Visit]


class HubOnPostgres(Hub):
    """A hub on a store that others can share."""

    def __init__(self, store: str) -> None:
        super().__init__()
        self._store = store

    def command(self) -> list[str]:
        return [*super().command(), "--store", self._store]


class HubThatStandsBy(HubOnPostgres):
    """Ready when it answers at all."""

    def greet(self, connection: object) -> bool:
        return True


@pytest.fixture(scope="module")
def store(browser: Browser) -> Iterator[str]:
    with PostgresServer() as server:
        yield server.url


@pytest.fixture(scope="module")
def hub(store: str) -> Iterator[Hub]:
    with HubOnPostgres(store) as running:
        yield running


def row(visited: Visit, state: str) -> Locator:
    return visited.page.locator("tr[data-hub]").filter(has_text=state)


def test_a_hub_stands_by_and_is_drained_and_resumed(visit: Come, hub: Hub, store: str) -> None:
    admin = visit(hub.admin_token)
    admin.page.get_by_role("link", name="hub well").click()
    expect(admin.page.get_by_role("heading", name="Hubs")).to_be_visible()
    expect(admin.page.locator("tr[data-hub]")).to_have_count(1)
    second = HubThatStandsBy(store)
    second.state.mkdir(parents=True, mode=0o700)
    for key in ("tokens.key", "audit.key"):
        shutil.copy(hub.state / key, second.state)
    with second:
        expect(row(admin, "stands by")).to_contain_text("ready")
        expect(row(admin, "judges")).to_contain_text(hub.url)
        row(admin, "stands by").get_by_role("button", name="Drain").click()
        admin.page.get_by_role("dialog").get_by_role("button", name="Drain").click()
        expect(row(admin, "drained")).to_have_count(1)
        row(admin, "judges").get_by_role("button", name="Drain").click()
        admin.page.get_by_role("dialog").get_by_role("button", name="Drain").click()
        expect(admin.page.get_by_text("no other hub stands by to take over from it")).to_be_visible()
        row(admin, "drained").get_by_role("button", name="Resume").click()
        expect(row(admin, "stands by")).to_have_count(1)


def test_who_may_only_look_has_no_buttons(visit: Come, hub: Hub) -> None:
    viewer = visit(hub.viewer_token)
    viewer.go("#/hubs")
    expect(row(viewer, "judges")).to_have_count(1)
    expect(viewer.page.get_by_role("button", name="Drain")).to_have_count(0)
