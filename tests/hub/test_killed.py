"""`kill -9`, again and again, under load: every promise is kept, nothing is done twice, nobody is blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.killing import story

KILLS = 10
"""`tools/kill_soak.py` does fifty, and as many rounds as you like."""


@pytest.mark.timeout(180)
async def test_a_hub_that_is_killed_under_load_keeps_every_promise(tmp_path: Path) -> None:
    """Every event that was seen and every word that was acknowledged is in the store; event ids have no gap; no order is
    carried out twice or given again after its end; nobody is declared dead because of the outage, and everybody who died
    meanwhile is found."""
    told = await story(tmp_path, kills=KILLS, seed=7)
    assert told.broken == []
    assert (told.deaths, told.found) == (KILLS, KILLS)
    assert told.events > 100
    assert told.orders > 10
    assert sorted(told.starts)[len(told.starts) // 2] < 3.0, "it takes 0.3 s where nothing else runs"
