"""However long a hub runs, however many agents come and go, it holds on to what is now and to what was promised to be
kept, and to nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifesigns.core.beliefs import Beliefs
from lifesigns.core.fleet import FleetState
from tests.hub.day import Count, Day, Plan, grown, held


@pytest.mark.timeout(240)
async def test_hours_of_a_fleet_that_comes_and_goes_leave_nothing_behind(tmp_path: Path) -> None:
    """Every container of every object of ours, and the database. `tools/day.py` lives a whole day with 1,000 agents."""
    plan = Plan(agents=12, periods=7, period=1800, life=900.0, forget_after=600.0, history_for=1800.0)
    counts = await Day(plan, tmp_path).live()
    assert grown(counts, warm=3) == []
    assert counts[-1].heard > 15_000
    assert counts[-1].events > 1_500
    assert counts[-1].agents < 4 * plan.agents


def test_a_leak_is_noticed_and_the_count_goes_deep() -> None:
    """A test that cannot fail is a defect."""
    beliefs = Beliefs(fleet=FleetState(sources={"one": 1, "two": 2}))
    assert held([beliefs])["FleetState.sources"] == 2
    leaking = [Count({"Hub.agents": 900, "Hub.leak": 200 * n}, {}, 10**7, 900, 1, 1) for n in range(7)]
    assert grown(leaking, warm=3) == ["Hub.leak grew from 800 to 1200"]
    filling = [Count({}, {"events": 10**6 * n, "hub": 4096}, 10**7, 900, 1, 1) for n in range(7)]
    assert grown(filling, warm=3) == ["the table events grew from 4000000 to 6000000 bytes"]
