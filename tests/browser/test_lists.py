"""Recovery, alerts and audit: what is under way, what people should know, who did what and the proof of it."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.hub import Hub
from tests.browser.visit import Visit


def told(page: Page, text: str) -> None:
    """The page confirms it."""
    expect(page.get_by_role("status").filter(has_text=text)).to_be_visible()


def stuck(hub: Hub, agent_id: str) -> None:
    """An agent that repeats itself often enough to be an alert."""
    call = {"type": "tool_finished", "agent_id": agent_id, "tool": "grep", "args": "x", "result": "y"}
    hub.client.signals([{**call, "call_id": str(n)} for n in range(9)])


def standing(visit: Visit, agent_id: str) -> Locator:
    """An alert that stands now."""
    now = visit.page.get_by_role("list", name="What stands now")
    return now.get_by_role("listitem").filter(has_text=agent_id)


# --- recovery -----------------------------------------------------------------------------------------


def test_a_task_whose_agent_is_gone_is_recovered_by_hand(operator: Visit, hub: Hub) -> None:
    hub.client.beat("gone", incarnation="i-1", task_id="t-19")
    hub.client.signal("checkpoint", "gone", incarnation="i-1", task_id="t-19", checkpoint_id="cp-3")
    hub.client.signal("left", "gone", incarnation="i-1", reason="it was told to")
    operator.go("#/recovery")
    page = operator.page
    page.get_by_role("listitem").filter(has_text="gone").get_by_role("button", name="Recover").click()
    page.get_by_role("dialog").get_by_role("button", name="Recover", exact=True).click()
    told(page, "gone is being started anew")
    under_way = page.locator(".recovery").filter(has_text="gone")
    expect(under_way).to_contain_text("is being started")
    expect(under_way).to_contain_text("from cp-3")
    new = hub.client.recovery("t-19").recoveries[0].new_incarnation or ""
    hub.client.beat("gone", incarnation=new, task_id="t-19")
    told(page, "gone lives again")
    expect(under_way).to_contain_text("watched closely")
    expect(page.get_by_role("row").filter(has_text="lives again")).to_contain_text("cp-3")
    expect(page.get_by_text("1 of 1 recovery")).to_be_visible()


def test_a_recovery_that_is_refused_says_why(operator: Visit, hub: Hub) -> None:
    """Somebody else was quicker: the agent lives again when the button is pressed."""
    hub.client.beat("back", incarnation="i-1", task_id="t-20")
    hub.client.signal("left", "back", incarnation="i-1", reason="done")
    operator.go("#/recovery")
    row = operator.page.get_by_role("listitem").filter(has_text="back")
    row.get_by_role("button", name="Recover").click()
    hub.client.beat("back", incarnation="i-2", task_id="t-20")
    operator.page.get_by_role("dialog").get_by_role("button", name="Recover", exact=True).click()
    told(operator.page, "terminate it before its task is recovered")


def test_a_task_that_was_taken_back_from_a_lost_worker_is_listed(operator: Visit, hub: Hub) -> None:
    """While the page is open; what a worker gives back itself is not in the list."""
    operator.go("#/recovery")
    page = operator.page
    expect(page.get_by_text("No worker was lost with a task")).to_be_visible()
    for name, task in (("lost-worker", "task-123"), ("orderly", "task-456")):
        hub.client.beat(name, incarnation="i-1", task_id=task)
        hub.client.signal("claim", name, incarnation="i-1", task_id=task)
    hub.client.signal("task_done", "orderly", incarnation="i-1", task_id="task-456")
    hub.client.beat("lost-worker", incarnation="i-2")  # The life that held it is over.
    row = page.locator("table.locks").get_by_role("row").filter(has_text="task-123")
    expect(row).to_contain_text("lost-worker")
    expect(row).to_contain_text("at the hub")
    expect(page.locator("table.locks")).not_to_contain_text("task-456")


# --- alerts -------------------------------------------------------------------------------------------


def test_an_alert_is_taken_on_and_the_page_says_by_whom(operator: Visit, hub: Hub) -> None:
    stuck(hub, "looper-1")
    operator.go("#/alerts")
    alert = standing(operator, "looper-1").first
    alert.get_by_role("button", name="Acknowledge").click()
    dialog = operator.page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("I look at it.")
    dialog.get_by_role("button", name="Acknowledge", exact=True).click()
    told(operator.page, "It is yours")
    expect(alert).to_contain_text(re.compile(r"Olga \(\w+\) has it"))
    expect(alert).to_contain_text("I look at it.")
    expect(alert.get_by_role("button", name="Acknowledge")).to_have_count(0)


def test_alerts_are_silenced_for_a_while_and_the_silence_is_ended(operator: Visit, hub: Hub) -> None:
    stuck(hub, "looper-2")
    operator.go("#/alerts")
    page = operator.page
    standing(operator, "looper-2").first.get_by_role("button", name="Silence").click()
    form = page.get_by_role("form", name="Silence alerts")
    expect(form.get_by_label("Agents")).to_have_value("looper-2")
    form.get_by_label("Reason").fill("We mend it.")
    form.get_by_role("button", name="Silence", exact=True).click()
    told(page, "Nobody is told of it")
    (made,) = hub.client.silences().silences
    assert (made.agents, made.reason, made.by[:4]) == (("looper-2",), "We mend it.", "Olga")
    silence = page.get_by_role("region", name="Silences").get_by_role("listitem")
    expect(silence).to_contain_text("We mend it.")
    silence.get_by_role("button", name="End it").click()
    page.get_by_role("dialog").get_by_role("button", name="End it").click()
    expect(silence).to_have_count(0)
    assert hub.client.silences().silences == ()


def test_what_happened_stays_in_the_feed_and_can_be_narrowed(operator: Visit, hub: Hub) -> None:
    stuck(hub, "looper-3")
    operator.go("#/alerts")
    feed = operator.page.get_by_role("list", name="What happened")
    expect(feed.get_by_role("listitem").filter(has_text="looper-3").first).to_contain_text("is stuck")
    operator.page.get_by_role("combobox", name="Show").select_option("critical")
    expect(feed.get_by_text("looper-3")).to_have_count(0)


# --- audit --------------------------------------------------------------------------------------------


def test_who_did_what_is_on_the_record_as_it_happens_and_proved(operator: Visit, hub: Hub) -> None:
    """The proof is reckoned in the browser itself."""
    operator.go("#/audit")
    page = operator.page
    expect(page.get_by_text(re.compile(r"Sealed up to No\. \d+ .*has found nothing changed"))).to_be_visible()
    page.get_by_role("row").filter(has_text="token created").last.get_by_role("button", name="Proof").click()
    expect(page.get_by_text("It holds")).to_be_visible()
    hub.client.beat("worker")
    hub.client.pause("worker", 60)
    expect(page.get_by_role("row").filter(has_text="paused")).to_contain_text("worker")
    page.get_by_label("Only this agent").fill("worker")
    expect(page.get_by_role("row").filter(has_text="token created")).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="paused")).to_be_visible()


def test_a_broken_log_is_said_at_once(operator: Visit) -> None:
    """What the hub says of itself when somebody has changed its log."""
    problem = '{"title":"Conflict","status":409,"detail":"the audit log is not what was sealed: entry 3"}'
    operator.page.route("**/audit/checkpoint", lambda route: route.fulfill(status=409, body=problem))
    operator.go("#/audit")
    expect(operator.page.get_by_role("alert")).to_contain_text("entry 3")
