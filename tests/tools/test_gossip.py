"""The numbers of `docs/explanation/why-no-gossip.md`."""

import pytest

from tests.docs.pages import ROOT
from tools.gossip import compare


@pytest.mark.parametrize("agents", [100, 1000])
def test_the_page_has_the_numbers_that_are_measured(agents: int) -> None:
    page = (ROOT / "docs/explanation/why-no-gossip.md").read_text()
    for row in compare(agents):
        start = f"| {agents:,} | {row.way} | {row.messages:,.0f} |"
        assert start in page, start
        assert f"{row.known_after:g} intervals" in next(
            line for line in page.splitlines() if line.startswith(start)
        )
