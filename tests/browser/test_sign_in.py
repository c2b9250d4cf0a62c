"""Coming in: by a link that works once, as whoever made it, and not otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from playwright.sync_api import expect

from tests.browser.hub import Hub
from tests.browser.visit import Visit

Come = Callable[..., Visit]

ACTS: Final = {"Nudge", "Escalate", "Terminate", "Pause", "Clear", "More time", "Hand off", "Ignore"}


def test_who_is_not_signed_in_is_told_how(visit: Come) -> None:
    page = visit().page
    expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
    expect(page.get_by_text("lifesigns open")).to_be_visible()
    expect(page.get_by_role("grid")).to_have_count(0)


def test_the_link_signs_in_and_does_not_stay_in_the_address(visit: Come, hub: Hub) -> None:
    visited = visit(hub.operator_token)
    expect(visited.page.get_by_text("Olga")).to_be_visible()
    assert visited.page.url.rstrip("/#") == hub.url
    assert "code=" not in visited.page.evaluate(
        "document.documentElement.outerHTML + JSON.stringify(localStorage)"
    )
    assert visited.page.evaluate("document.cookie") == ""


def test_a_hub_without_agents_tells_the_one_command_that_brings_the_first(visit: Come, hub: Hub) -> None:
    page = visit(hub.operator_token).page
    expect(page.get_by_text("lifesigns run --")).to_be_visible()


def test_a_viewer_sees_everything_and_no_button_that_acts(visit: Come, hub: Hub) -> None:
    """And if somebody presses them by hand, the hub says no."""
    hub.client.beat("coder-7")
    escalated = hub.client.escalate("coder-7", "it burns money")
    visited = visit(hub.viewer_token)
    visited.sees("coder-7", "healthy")
    expect(visited.need("it burns money")).to_be_visible()
    assert not ACTS & _buttons(visited)
    visited.go_to_agent("coder-7")
    expect(visited.page.get_by_role("heading", name="coder-7")).to_be_visible()
    assert not ACTS & _buttons(visited)
    for path, body in (
        ("agents/coder-7/nudge", {"message": "x"}),
        ("agents/coder-7/terminate", {"reason": "x"}),
        (f"escalations/{escalated.id}/decision", {"decision": "ignore"}),
    ):
        assert _posted(visited, f"/api/v1/{path}", body) == 403


def test_who_signs_in_keeps_looking_after_a_reload(visit: Come, hub: Hub) -> None:
    page = visit(hub.operator_token).page
    page.reload()
    expect(page.get_by_text("Olga")).to_be_visible()


def _buttons(visited: Visit) -> set[str]:
    return {button.inner_text().strip() for button in visited.page.get_by_role("button").all()}


def _posted(visited: Visit, path: str, body: dict[str, str]) -> int:
    """What the hub answers to the page itself."""
    status: int = visited.page.evaluate(
        """async ([path, body]) => (await fetch(path, {method: "POST", body: JSON.stringify(body)})).status""",
        [path, body],
    )
    return status
