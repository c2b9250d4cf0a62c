"""One agent's page: what is wrong with it, with the evidence; its life, its beats, its calls; what was done about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agent.supervise.running import eventually
from tests.browser.fleet import LivingAgent, living
from tests.browser.hub import Hub
from tests.browser.visit import Visit

STACK = "agents/fetch.py:42 in fetch\nurllib/request.py:216 in urlopen"


@pytest.fixture(scope="module")
def worker(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivingAgent]:
    """A process that lives for as long as the module does."""
    with living(hub, "worker", tmp_path_factory.mktemp("worker")) as one:
        yield one


def told(page: Page, text: str) -> None:
    """The page confirms it."""
    expect(page.get_by_role("status").filter(has_text=text)).to_be_visible()


def part(visit: Visit, title: str) -> Locator:
    """A part of the page, by its heading."""
    return visit.page.get_by_role("region", name=title, exact=True)


def calls(agent_id: str, *results: str) -> list[dict[str, Any]]:
    same = {"type": "tool_finished", "agent_id": agent_id, "tool": "grep", "args": {"for": "x"}}
    return [{**same, "call_id": f"{n} {result}", "result": result} for n, result in enumerate(results)]


def test_findings_have_their_evidence_in_words_and_where_a_frozen_one_stands(
    operator: Visit, hub: Hub
) -> None:
    hub.client.beat("frozen", loop_lag_ms=30_000_000.0, metadata={"stack": STACK})
    operator.go_to_agent("frozen")
    found = part(operator, "Findings")
    expect(found).to_contain_text("its loop has not moved for")
    expect(found).to_contain_text("conclusive")
    expect(found).to_contain_text("its loop has stood for")
    expect(found.get_by_label("Where its loop stands")).to_have_text(STACK, use_inner_text=True)


def test_the_same_call_over_and_over_is_marked_on_the_tape_as_it_happens(operator: Visit, hub: Hub) -> None:
    hub.client.signals(calls("looper", "one", "two"))
    operator.go_to_agent("looper")
    call_history = part(operator, "Tool calls")
    expect(call_history).to_contain_text("No call was made twice.")
    hub.client.signals(calls("looper", "three", "three", "three", "three", "three"))
    expect(call_history.get_by_role("listitem").first).to_contain_text("grep×5")
    expect(part(operator, "Findings")).to_contain_text("5 times in a row with the same arguments")


def test_its_life_its_beats_and_its_numbers_are_drawn_and_told(operator: Visit, worker: LivingAgent) -> None:
    """Every chart has a sentence for those who do not see it."""
    operator.go_to_agent(worker.id)
    states = part(operator, "States")
    expect(states).to_contain_text("healthy; its state did not change")
    expect(states.get_by_role("list", name="What happened")).to_contain_text("heard for the first time")
    expect(operator.page.locator(".strip .spell.healthy")).to_have_count(1)
    beats = part(operator, "Beats")
    expect(beats).to_contain_text("A beat every 0.")
    expect(beats).to_contain_text("nothing unusual")
    expect(beats.locator("path.line").first).to_have_attribute("d", re.compile("^M.*L"))
    expect(part(operator, "Tokens and errors")).to_contain_text("No errors in this life.")
    expect(part(operator, "In numbers")).to_contain_text("Uptime")


def test_what_was_done_about_it_says_who_why_and_how_far_it_came(
    operator: Visit, worker: LivingAgent, hub: Hub
) -> None:
    operator.go_to_agent(worker.id)
    hub.client.nudge(worker.id, "Please hurry.")
    done = part(operator, "Interventions").get_by_role("listitem").filter(has_text="Please hurry.").first
    expect(done).to_contain_text("by admin")
    for stage in ("ordered", "delivered", "answered"):
        expect(done.get_by_role("list", name="How far it came")).to_contain_text(stage)
    expect(done).to_contain_text("I am on it")


def test_its_checkpoints_are_there_with_what_is_known_of_them(operator: Visit, worker: LivingAgent) -> None:
    operator.go_to_agent(worker.id)
    saved = part(operator, "Checkpoints")
    expect(saved).to_contain_text("cp-1")
    expect(saved).to_contain_text("kept by the hub")


def test_an_escalation_is_decided_on_its_own_page(operator: Visit, hub: Hub) -> None:
    hub.client.beat("asked-about")
    hub.client.escalate("asked-about", "It burns money.")
    operator.go_to_agent("asked-about")
    doing = operator.page.get_by_role("region", name="What is being done about it")
    expect(doing).to_contain_text("It burns money.")
    doing.get_by_role("button", name="More time").click()
    told(operator.page, "has more time")
    expect(doing).to_contain_text("decided: more time")
    expect(doing.get_by_role("button")).to_have_count(0)


def test_a_pause_without_end_is_seen_and_ended(operator: Visit, hub: Hub) -> None:
    hub.client.beat("left-alone")
    operator.go_to_agent("left-alone")
    page = operator.page
    page.get_by_label("How long to pause it").select_option(label="until resumed")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text("left alone until it is resumed", exact=True)).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    assert not hub.client.agent("left-alone").paused


def test_who_was_never_heard_of_has_a_page_that_says_so(operator: Visit) -> None:
    operator.go_to_agent("team/nobody")
    expect(operator.page.get_by_role("heading", name="Nobody has heard of this agent")).to_be_visible()


def test_a_newcomer_s_page_says_what_would_be_there(operator: Visit, hub: Hub) -> None:
    hub.client.signal("registered", "newcomer")
    eventually(lambda: any(one.agent_id == "newcomer" for one in hub.client.agents()))
    operator.go_to_agent("newcomer")
    for title, text in (
        ("Findings", "Nothing is wrong"),
        ("Beats", "never beaten"),
        ("Tool calls", "No calls"),
        ("Interventions", "Nothing was ever done"),
        ("Circuit breakers", "reported none"),
        ("Checkpoints", "no task"),
    ):
        expect(part(operator, title)).to_contain_text(text)


def test_the_page_of_one_that_is_not_known_yet_asks_for_it_alone(operator: Visit, hub: Hub) -> None:
    """Whoever opened it too early had to wait for the list of all, or an event; where both fail, it was never found."""
    page = operator.page
    for path in (r"/api/v1/events$", r"/api/v1/agents\?.*since="):
        page.route(re.compile(path), lambda route: route.abort())
    page.reload()
    operator.go_to_agent("early-bird")
    expect(page.get_by_role("heading", name="Nobody has heard of this agent")).to_be_visible()
    hub.client.signal("registered", "early-bird")
    expect(part(operator, "Findings")).to_contain_text("Nothing is wrong")
