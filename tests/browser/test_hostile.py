"""Names and texts that would like to be more than that are shown as they are written, and nothing else happens.

Every test of this folder also fails if the page opens a dialog, logs an error, breaks the content security policy or asks
another host.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pytest
from playwright.sync_api import TimeoutError as TooLong
from playwright.sync_api import expect

from tests.browser.hub import Hub
from tests.browser.visit import VIEWS, Visit

LONG: Final = "a" * 128
ODD: Final = "../..//constructor:__proto__@-."
"""Everything an id may consist of, and names that mean something to a program."""
EVIL: Final = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'>\"'`${window.owned=1}{{7*7}}"
    " javascript:alert(1)"
)
TURNED: Final = "\u202egnp.exe \u2066 \U0001f480\U0001f468\u200d\U0001f469\u200d\U0001f467 \ufdfa"
FLOOD: Final = "wide" * 200
OVERFLOW: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module", autouse=True)
def hostile(hub: Hub) -> None:
    """Agents that mean harm, in every field that may hold a text."""
    texts = (EVIL, TURNED, FLOOD)
    for n, agent_id in enumerate((LONG, ODD, "constructor")):
        text = texts[n]
        beat = {
            "agent_id": agent_id,
            "task_id": text[:128],
            "role": text[:100],
            "host": text[:100],
            "phase": text,
            "progress": text,
            "metadata": {text[:64]: text},
        }
        done = hub.client.beats([{key: value for key, value in beat.items() if _taken(hub, key, value)}])
        assert done.rejected == []
        hub.client.signals(
            [
                {"type": "doing", "agent_id": agent_id, "doing": "waiting_for_human", "note": text[:500]},
                {"type": "error", "agent_id": agent_id, "message": text, "recoverable": False},
                {"type": "breaker", "agent_id": agent_id, "name": text[:100], "state": "open"},
                *_calls(agent_id, text[:100]),
            ]
        )
        hub.client.escalate(agent_id, text[:500])


def _taken(hub: Hub, key: str, value: object) -> bool:
    """Whether the hub takes such a value at all: what it refuses no page has to show."""
    return not hub.client.beats(
        [{"agent_id": "trial", key: value} if key != "agent_id" else {key: value}]
    ).rejected


def _calls(agent_id: str, tool: str) -> list[dict[str, object]]:
    words: list[dict[str, object]] = []
    for n in range(4):
        words += (
            {
                "type": "tool_started",
                "agent_id": agent_id,
                "call_id": f"c{n}",
                "tool": tool,
                "args": {"x": tool},
            },
            {
                "type": "tool_finished",
                "agent_id": agent_id,
                "call_id": f"c{n}",
                "tool": tool,
                "ok": False,
                "error": tool,
            },
        )
    return words


def is_harmless(visited: Visit) -> None:
    """No script ran, no picture was asked for, and nothing is wider than the window."""
    page = visited.page
    assert page.evaluate("window.owned") is None
    assert page.locator("img, iframe, object, embed, [onerror], [onclick]").count() == 0
    with suppress(TooLong):  # A window that was just made narrower is laid out once more.
        page.wait_for_function(f"{OVERFLOW} <= 0", timeout=5_000)
    overflow = page.evaluate(OVERFLOW)
    assert overflow <= 0, f"{page.url} is {overflow} px too wide"


def test_on_the_first_page_they_are_only_texts(operator: Visit) -> None:
    expect(operator.page.locator(f"[data-agent='{LONG}']")).to_be_visible()
    expect(operator.need("<script>").first).to_be_visible()
    is_harmless(operator)


@pytest.mark.parametrize("agent_id", [LONG, ODD, "constructor"])
def test_on_its_own_page_too(operator: Visit, agent_id: str) -> None:
    operator.go_to_agent(agent_id)
    expect(operator.page.get_by_role("heading", name=agent_id)).to_be_visible()
    is_harmless(operator)


def test_in_every_other_view_too_and_on_a_phone(operator: Visit) -> None:
    for size in ({"width": 1280, "height": 800}, {"width": 390, "height": 844}):
        operator.page.set_viewport_size(size)  # type: ignore[arg-type]
        for view in VIEWS:
            operator.go(view)
            expect(operator.page.get_by_role("main")).to_be_visible()
            operator.page.wait_for_load_state("load")
            is_harmless(operator)
