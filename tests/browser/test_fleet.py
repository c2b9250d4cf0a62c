"""The first page: who needs you, and everybody; found, sorted, grouped, walked through by keyboard, and always current."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from lifesigns.client import Client
from tests.browser.hub import Hub
from tests.browser.visit import Visit


@pytest.fixture(scope="module", autouse=True)
def fleet(hub: Hub) -> Client:
    """Eight agents in several kinds of trouble."""
    client = hub.client
    client.beats(
        [
            {"agent_id": "coder-1", "role": "coder", "host": "ws-1", "task_id": "t-1", "load": 0.4},
            {"agent_id": "coder-2", "role": "coder", "host": "ws-2", "task_id": "t-1", "load": 0.9},
            {"agent_id": "reviewer-1", "role": "reviewer", "host": "ws-1", "task_id": "t-2"},
            *({"agent_id": f"spare-{n}", "role": "standby", "host": "ws-3"} for n in range(3)),
            {"agent_id": "asker"},
            {"agent_id": "failer"},
        ]
    )
    client.signals(
        [
            {"type": "doing", "agent_id": "asker", "doing": "waiting_for_human", "note": "May I deploy?"},
            {"type": "error", "agent_id": "failer", "message": "disk is full", "recoverable": False},
        ]
    )
    client.escalate("coder-2", "It burns money.")
    return client


def shown(page: Page) -> list[str]:
    """The agents of the grid, from its top."""
    return [row.get_attribute("data-agent") or "" for row in page.locator("[data-agent]").all()]


def test_who_needs_a_person_is_on_top_with_reason_and_buttons(operator: Visit) -> None:
    expect(operator.need("May I deploy?")).to_contain_text("asker")
    escalated = operator.need("It burns money.")
    expect(escalated).to_contain_text("coder-2")
    for decision in ("More time", "Hand off", "Terminate", "Ignore"):
        expect(escalated.get_by_role("button", name=decision)).to_be_visible()


def test_every_agent_is_there_with_what_it_does_and_how_it_is(operator: Visit) -> None:
    for agent_id in ("coder-1", "coder-2", "reviewer-1", "spare-0", "spare-1", "spare-2", "asker"):
        operator.sees(agent_id, "healthy")
    expect(operator.row("failer")).to_contain_text("disk is full")
    expect(operator.row("asker")).to_contain_text("May I deploy?")
    expect(operator.row("coder-1")).to_contain_text("t-1")
    expect(operator.row("coder-1")).to_contain_text("40")
    expect(operator.row("coder-1").locator(".sign")).to_have_count(1)


def test_the_age_of_the_last_beat_ticks(operator: Visit) -> None:
    beat = operator.row("spare-1").get_by_role("gridcell").nth(5)
    before = beat.inner_text()
    expect(beat).not_to_have_text(before)


def test_search_and_filter_leave_only_who_matches(page: Page) -> None:
    expect(page.locator("[data-agent]")).to_have_count(8)
    page.keyboard.press("/")
    page.keyboard.type("reviewer")
    expect(page.locator("[data-agent]")).to_have_count(1)
    assert shown(page) == ["reviewer-1"]
    page.keyboard.press("Escape")
    expect(page.locator("[data-agent]")).to_have_count(8)
    by_state = page.get_by_role("group", name="Agents by state")
    by_state.get_by_role("button", name="failing").click()
    expect(page.locator("[data-agent]")).to_have_count(1)
    assert shown(page) == ["failer"]


def test_sort_by_name_and_the_other_way_round(page: Page) -> None:
    expect(page.locator("[data-agent]")).to_have_count(8)
    by_name = page.get_by_role("columnheader", name="Agent")
    by_name.get_by_role("button").click()
    expect(by_name).to_have_attribute("aria-sort", "ascending")
    assert shown(page) == sorted(shown(page))
    by_name.get_by_role("button").click()
    expect(by_name).to_have_attribute("aria-sort", "descending")
    assert shown(page) == sorted(shown(page), reverse=True)


def test_group_by_host_and_close_a_group(page: Page) -> None:
    page.get_by_label("Group").select_option("host")
    group = page.get_by_role("button", name="ws-3")
    expect(group).to_contain_text("3 agents")
    expect(page.locator("[data-agent=spare-0]")).to_be_visible()
    group.click()
    expect(page.locator("[data-agent=spare-0]")).to_have_count(0)


def test_keys_alone_lead_to_an_agent_and_act_on_it(operator: Visit) -> None:
    page = operator.page
    expect(page.locator("[data-agent]")).to_have_count(8)
    page.get_by_role("columnheader", name="Agent").get_by_role("button").press("Enter")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("row", selected=True)).to_have_attribute("data-agent", "coder-1")
    page.keyboard.press("n")
    expect(page.get_by_role("dialog")).to_contain_text("Nudge coder-1?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("t")
    expect(page.get_by_role("dialog")).to_contain_text("Terminate coder-1?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{operator.hub.url}/#/agents/coder-1")


def test_what_the_hub_hears_is_on_the_page_without_asking_for_it(operator: Visit, fleet: Client) -> None:
    fleet.beat("newcomer")
    operator.sees("newcomer", "healthy")
    fleet.signals([{"type": "error", "agent_id": "newcomer", "message": "no key", "recoverable": False}])
    operator.sees("newcomer", "failing")
    fleet.signals([{"type": "left", "agent_id": "newcomer", "reason": "done"}])
    operator.sees("newcomer", "terminated")
