"""A visit to the dashboard: the page, the ways through it, and what it did wrong."""

from __future__ import annotations

from urllib.parse import quote

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.hub import Hub

VIEWS = ("#/", "#/breakers", "#/recovery", "#/alerts", "#/audit", "#/sessions")
"""All but that of an agent."""


class Visit:
    """One person, one browser profile, one page. `wrong`: what no page of ours does."""

    def __init__(self, hub: Hub, context: BrowserContext, wrong: list[str]) -> None:
        self.hub = hub
        self.context = context
        self.page: Page = context.new_page()
        self.wrong = wrong

    def check(self) -> None:
        """Nothing from elsewhere, no error, no breach of the content security policy (those are errors of the console)."""
        assert self.wrong == []

    # --- ways -----------------------------------------------------------------------------------------

    def go(self, route: str) -> None:
        """To a view."""
        self.page.goto(f"{self.hub.url}/{route}")

    def go_to_agent(self, agent_id: str) -> None:
        self.go(f"#/agents/{quote(agent_id, safe='')}")

    # --- things on the first page ---------------------------------------------------------------------

    def row(self, agent_id: str) -> Locator:
        """An agent's row in the grid."""
        return self.page.get_by_role("row").filter(has=self.page.get_by_text(agent_id, exact=True))

    def need(self, text: str) -> Locator:
        """Something that needs a person."""
        needs = self.page.get_by_role("region", name="Needs you")
        return needs.get_by_role("listitem").filter(has_text=text)

    def sees(self, agent_id: str, state: str) -> None:
        """Wait until the grid shows it so."""
        expect(self.row(agent_id)).to_contain_text(state)
