"""Every view is for everybody: in light and dark, on a phone, by keyboard, and axe finds nothing that keeps somebody out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.hub import Hub
from tests.browser.visit import VIEWS, Visit
from tools.dashboard import SOURCE

AXE: Final = SOURCE / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS: Final = {"serious", "critical"}
ALL_VIEWS: Final = (*VIEWS, "#/agents/looper")
PHONE: Final = {"width": 390, "height": 844}


@pytest.fixture(scope="module", autouse=True)
def fleet(hub: Hub) -> None:
    """An agent that loops, breakers, checkpoints, a recovery that waits for a person, alerts, deeds."""
    client = hub.client
    client.beats(
        [
            {
                "agent_id": "looper",
                "task_id": "t-1",
                "role": "coder",
                "host": "ws-1",
                "token_count": 18_230,
                "cost_usd": 0.31,
                "metadata": {"branch": "main"},
            },
            {"agent_id": "asker", "task_id": "t-2"},
            {"agent_id": "gone", "task_id": "t-3"},
        ]
    )
    calls = [
        word
        for n in range(8)
        for word in (
            {"type": "tool_started", "call_id": f"c{n}", "tool": "grep", "args": {"pattern": "x"}},
            {"type": "tool_finished", "call_id": f"c{n}", "tool": "grep", "result": "nothing", "ok": True},
        )
    ]
    client.signals(
        [
            *({"agent_id": "looper", **word} for word in calls),
            {"type": "breaker", "agent_id": "looper", "name": "search-api", "state": "open", "failures": 3},
            {"type": "checkpoint", "agent_id": "looper", "task_id": "t-1", "checkpoint_id": "after-turn-12"},
            {"type": "doing", "agent_id": "asker", "doing": "waiting_for_human", "note": "May I deploy?"},
            {"type": "error", "agent_id": "gone", "message": "no key", "recoverable": False},
            {"type": "exited", "agent_id": "gone", "status": 1},
        ]
    )
    client.escalate("asker", "Nobody answers it.")


def test_breakers_say_which_calls_are_refused(operator: Visit) -> None:
    operator.go("#/breakers")
    row = operator.page.get_by_role("row").filter(has_text="search-api")
    expect(row).to_contain_text("open")
    expect(row).to_contain_text("looper")
    expect(row).to_contain_text("3")


def settled(page: Page) -> None:
    """The view is there and has its data."""
    expect(page.get_by_role("main")).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.wait_for_function("() => !document.querySelector('main').innerText.includes('Loading')")


def complaints(page: Page) -> list[str]:
    """What axe finds that keeps somebody out."""
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (make check installs it)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_view(visit: Callable[..., Visit], hub: Hub, scheme: str) -> None:
    visited = visit(hub.operator_token, color_scheme=scheme)
    found: dict[str, list[str]] = {}
    for view in ALL_VIEWS:
        visited.go(view)
        settled(visited.page)
        if wrong := complaints(visited.page):
            found[view] = wrong
    assert found == {}


def test_dark_is_dark_and_the_toggle_is_remembered(visit: Callable[..., Visit], hub: Hub) -> None:
    page = visit(hub.operator_token, color_scheme="dark").page
    settled(page)
    shade = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(shade)
    page.get_by_role("button", name="Show it light").click()
    light = page.evaluate(shade)
    assert dark != light
    page.reload()
    settled(page)
    assert page.evaluate(shade) == light


def test_a_phone_shows_every_view_without_scrolling_sideways(visit: Callable[..., Visit], hub: Hub) -> None:
    visited = visit(hub.operator_token, viewport=PHONE, has_touch=True)
    wide: dict[str, int] = {}
    for view in ALL_VIEWS:
        visited.go(view)
        settled(visited.page)
        overflow = visited.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if overflow > 0:
            wide[view] = overflow
    assert wide == {}


def test_a_phone_shows_choices_and_names_whole(visit: Callable[..., Visit], hub: Hub) -> None:
    """The choice of the alerts was an arrow without a word, and the newest checkpoint `tur…` beside `newe st`."""
    visited = visit(hub.operator_token, viewport=PHONE, has_touch=True)
    for view in ALL_VIEWS:
        visited.go(view)
        settled(visited.page)
        for choice in visited.page.locator(".choice select").all():
            size = choice.bounding_box()
            assert size is not None
            assert size["width"] >= 90, view
    newest = visited.page.locator(".checkpoints li").first
    expect(newest).to_contain_text("newest")
    for part in newest.locator(".name, .newest").all():
        assert part.evaluate("part => part.scrollWidth <= part.clientWidth + 1 && part.clientHeight < 30")


def test_the_grid_shows_a_short_task_whole(operator: Visit) -> None:
    """At the usual width it was `find-us…`, and what is wrong with an agent a few words, beside an empty column."""
    operator.go("#/")
    settled(operator.page)
    task = operator.row("looper").get_by_text("t-1", exact=True)
    cell = operator.row("looper").locator(".c-task")
    expect(task).to_be_visible()
    size = cell.bounding_box()
    assert size is not None
    assert size["width"] >= 100


def test_the_keyboard_reaches_every_button_of_an_agents_page(operator: Visit) -> None:
    """By Tab alone, and what has the focus is seen to have it."""
    operator.go("#/agents/looper")
    settled(operator.page)
    expect(operator.page.get_by_role("button", name="Terminate")).to_be_visible()
    reached: set[str] = set()
    for _ in range(60):
        operator.page.keyboard.press("Tab")
        reached.add(operator.page.evaluate("document.activeElement.innerText ?? ''").strip())
        if "Terminate" in reached:
            break
    assert {"Nudge", "Escalate", "Pause", "Clear", "Terminate"} <= reached
    outline = operator.page.evaluate(
        "(s => s.outlineStyle !== 'none' || s.boxShadow !== 'none')(getComputedStyle(document.activeElement))"
    )
    assert outline
