"""Sessions: who is signed in, and the button that ends it; everybody's for an admin, one's own for others."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser.hub import Hub
from tests.browser.visit import Visit

Come = Callable[..., Visit]


def sessions(visited: Visit, name: str = "") -> Locator:
    return visited.page.locator("tr[data-session]").filter(has_text=name)


def test_an_admin_sees_all_and_ends_one(visit: Come, hub: Hub) -> None:
    olga, admin = visit(hub.operator_token), visit(hub.admin_token)
    admin.go("#/sessions")
    expect(sessions(admin)).to_have_count(2)
    expect(sessions(admin, "this browser")).to_have_count(1)
    row = sessions(admin, "Olga")
    for said in ("operator", "127.0.0.1", "ago", "in 6 d"):
        expect(row).to_contain_text(said)
    row.get_by_role("button", name="End it").click()
    admin.page.get_by_role("dialog").get_by_role("button", name="End it").click()
    expect(admin.page.get_by_role("status").filter(has_text="The session of Olga is over.")).to_be_visible()
    expect(sessions(admin)).to_have_count(1)
    olga.page.reload()
    expect(olga.page.get_by_role("heading", name="You are not signed in")).to_be_visible()


def test_others_see_and_end_their_own(visit: Come, hub: Hub) -> None:
    visit(hub.viewer_token)
    here, there = visit(hub.operator_token), visit(hub.operator_token)
    here.go("#/sessions")
    expect(sessions(here)).to_have_count(2)
    expect(sessions(here, "Olga")).to_have_count(2)
    sessions(here).filter(has_not_text="this browser").get_by_role("button", name="End it").click()
    here.page.get_by_role("dialog").get_by_role("button", name="End it").click()
    expect(sessions(here)).to_have_count(1)
    there.page.reload()
    expect(there.page.get_by_role("heading", name="You are not signed in")).to_be_visible()
    sessions(here, "this browser").get_by_role("button", name="Sign out").click()
    here.page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
    expect(here.page.get_by_role("heading", name="You are not signed in")).to_be_visible()


def test_who_signs_in_elsewhere_is_seen_at_once(visit: Come, hub: Hub) -> None:
    here = visit(hub.operator_token)
    here.go("#/sessions")
    expect(sessions(here)).to_have_count(1)
    visit(hub.operator_token)
    expect(sessions(here)).to_have_count(2)
