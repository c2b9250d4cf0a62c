"""The hub is killed and comes back: the page says that it is stale, then goes on by itself, and nothing is missing."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.hub import Hub
from tests.browser.visit import Visit


def test_after_kill_9_the_page_is_stale_and_goes_on_when_the_hub_is_back(operator: Visit, hub: Hub) -> None:
    """On the same port, signed in as before, with what happened meanwhile; nobody reloads anything."""
    hub.client.beat("coder-1")
    operator.sees("coder-1", "healthy")
    page = operator.page
    page.evaluate("window.untouched = true")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    hub.kill()
    expect(page.get_by_text("stale for")).to_be_visible()
    expect(page.get_by_text("hub not answering")).to_be_visible()
    expect(page.get_by_text("hub well")).to_have_count(0)
    expect(operator.row("coder-1")).to_be_visible()
    hub.start()
    hub.client.beat("born-meanwhile")
    hub.client.signals([{"type": "left", "agent_id": "coder-1", "reason": "done"}])
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    operator.sees("born-meanwhile", "healthy")
    operator.sees("coder-1", "terminated")
    assert page.evaluate("window.untouched") is True
    operator.wrong[:] = [one for one in operator.wrong if "ERR_" not in one]  # That it is away may be said.


def test_who_lost_the_token_is_told_to_sign_in_again(operator: Visit, hub: Hub) -> None:
    token_id = hub.operator_token.split("_")[1]
    expect(operator.page.get_by_role("heading", name="Agents")).to_be_visible()
    hub.client.revoke_token(token_id)
    del hub.operator_token
    expect(operator.page.get_by_role("heading", name="You are not signed in")).to_be_visible()
