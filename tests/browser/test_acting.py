"""Every act, from the click to its effect in the agent's own process, and back to the page when it really happened."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.fleet import LivingAgent, living
from tests.browser.hub import Hub
from tests.browser.visit import Visit


@pytest.fixture(scope="module")
def agent(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivingAgent]:
    """An agent in a process of its own, which nobody ends."""
    with living(hub, "worker", tmp_path_factory.mktemp("worker")) as one:
        yield one


@pytest.fixture
def doomed(hub: Hub, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LivingAgent]:
    """One for this test alone: it will be ended."""
    with living(hub, f"doomed-{zlib.crc32(request.node.name.encode())}", tmp_path) as one:
        yield one


def confirm(page: Page, act: str, words: str = "") -> None:
    """Say yes to the question, with these words where it asks for some."""
    dialog = page.get_by_role("dialog")
    if words:
        dialog.get_by_role("textbox").fill(words)
    dialog.get_by_role("button", name=act, exact=True).click()


def told(page: Page, text: str) -> None:
    """The page confirms it."""
    expect(page.get_by_role("status").filter(has_text=text)).to_be_visible()


def test_a_nudge_is_read_by_the_agent_and_its_answer_is_on_the_page(
    operator: Visit, agent: LivingAgent
) -> None:
    operator.sees(agent.id, "healthy")
    operator.row(agent.id).get_by_role("button", name="Nudge").click()
    confirm(operator.page, "Nudge", "Please run the tests.")
    agent.says("is told: Please run the tests.")
    told(operator.page, "I am on it")


def test_terminate_needs_a_reason_and_ends_the_process(
    operator: Visit, doomed: LivingAgent, hub: Hub
) -> None:
    page = operator.page
    operator.row(doomed.id).get_by_role("button", name="Terminate").click()
    page.get_by_role("dialog").get_by_role("button", name="Terminate", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()  # Without a reason nothing happens.
    confirm(page, "Terminate", "It is done.")
    doomed.says("is asked to end: It is done.")
    doomed.ends()
    told(page, f"{doomed.id} is terminated.")
    operator.sees(doomed.id, "terminated")
    deed = hub.client.interventions(agent=doomed.id).interventions[0]
    assert deed.rung == "terminate"
    assert deed.by.startswith("Olga")


def test_who_says_no_has_done_nothing(operator: Visit, agent: LivingAgent, hub: Hub) -> None:
    operator.row(agent.id).get_by_role("button", name="Terminate").click()
    operator.page.get_by_role("dialog").get_by_role("textbox").fill("Oh no")
    operator.page.keyboard.press("Escape")
    expect(operator.page.get_by_role("dialog")).to_have_count(0)
    assert hub.client.interventions(agent=agent.id, rung="terminate").interventions == []


def test_pause_and_resume(operator: Visit, agent: LivingAgent, hub: Hub) -> None:
    operator.go_to_agent(agent.id)
    operator.page.get_by_role("button", name="Pause").click()
    told(operator.page, "is left alone")
    assert hub.client.agent(agent.id).paused
    operator.page.get_by_role("button", name="Resume").click()
    told(operator.page, "is cared for again")
    assert not hub.client.agent(agent.id).paused


def test_escalate_and_decide(operator: Visit, agent: LivingAgent, hub: Hub) -> None:
    """Asked on the agent's page, decided on the first one."""
    operator.go_to_agent(agent.id)
    operator.page.get_by_role("button", name="Escalate").click()
    confirm(operator.page, "Escalate", "It burns money.")
    told(operator.page, "people are asked")
    operator.go("#/")
    operator.need("It burns money.").get_by_role("button", name="More time").click()
    told(operator.page, "has more time")
    expect(operator.need("It burns money.")).to_have_count(0)
    escalation = hub.client.interventions(agent=agent.id, rung="escalate").interventions[0]
    assert (escalation.stage, escalation.open) == ("answered", False)


def test_a_decision_to_terminate_ends_the_process(operator: Visit, doomed: LivingAgent, hub: Hub) -> None:
    hub.client.escalate(doomed.id, "It writes nonsense.")
    operator.need("It writes nonsense.").get_by_role("button", name="Terminate").click()
    confirm(operator.page, "Terminate", "Enough.")
    doomed.says("is asked to end")
    doomed.ends()
    operator.sees(doomed.id, "terminated")


def test_a_breaker_is_reset_in_the_agents_own_process(operator: Visit, agent: LivingAgent) -> None:
    operator.go("#/breakers")
    row = operator.page.get_by_role("row").filter(has_text=agent.id)
    expect(row).to_contain_text("open")
    expect(row).to_contain_text("in 9 min")
    row.get_by_role("button", name="Reset").click()
    confirm(operator.page, "Reset", "It works again.")
    agent.says("search-api is closed")
    told(operator.page, "is reset")
    expect(row).to_contain_text("closed")


def test_clear_lets_it_begin_anew(operator: Visit, agent: LivingAgent, hub: Hub) -> None:
    """What was open is over."""
    hub.client.escalate(agent.id, "It is odd.")
    operator.go_to_agent(agent.id)
    operator.page.get_by_role("button", name="Clear").click()
    confirm(operator.page, "Clear")
    told(operator.page, "is cleared")
    assert hub.client.interventions(agent=agent.id, only_open=True).interventions == []


def test_an_act_that_fails_says_so_where_it_was_asked_for(operator: Visit, agent: LivingAgent) -> None:
    """Nothing is confirmed that did not happen."""
    operator.row(agent.id).get_by_role("button", name="Nudge").click()
    operator.page.route("**/nudge", lambda route: route.abort())
    confirm(operator.page, "Nudge", "x")
    told(operator.page, "It did not happen")
