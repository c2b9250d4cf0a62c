"""Metrics of several slots as one text that Prometheus reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from lifesigns.hub.principals import Role
from lifesigns.hub.slots import SLOTS, slot_of
from tests.web.slots_in_process import SlotsHub, hubs_in_slots

OPENMETRICS = "application/openmetrics-text"


@pytest.fixture
async def hubs(tmp_path: Path) -> AsyncIterator[list[SlotsHub]]:
    async with hubs_in_slots(tmp_path) as both:
        yield both


@pytest.mark.parametrize("accept", ["text/plain", OPENMETRICS])
async def test_each_sample_names_its_slot_and_each_family_stands_once(
    hubs: list[SlotsHub], accept: str
) -> None:
    crew = [f"w-{n}" for n in range(40)]
    await hubs[0].post("/api/v1/beats", [{"agent_id": name} for name in crew])
    for hub in hubs:
        found = await hub.get("/metrics", accept=accept)
        assert found.headers["content-type"].startswith(accept)
        families = [*(read_openmetrics if accept == OPENMETRICS else read_text)(found.text)]
        names = [family.name for family in families]
        assert len(names) == len({*names}) > 30
        assert {sample.labels["slot"] for family in families for sample in family.samples} == {
            *map(str, range(SLOTS))
        }
        beats = {
            int(sample.labels["slot"]): sample.value
            for family in families
            for sample in family.samples
            if sample.name == "lifesigns_beats_total"
        }
        assert beats == {slot: sum(slot_of(name) == slot for name in crew) for slot in range(SLOTS)}


async def test_the_samples_of_a_slot_that_nobody_judges_are_missing(hubs: list[SlotsHub]) -> None:
    hubs[0].site.sites[3] = None
    found = await hubs[0].get("/metrics")
    assert found.status_code == 200
    assert 'slot="3"' not in found.text
    assert 'slot="4"' in found.text


async def test_whoever_may_not_scrape_one_hub_may_not_scrape_all(hubs: list[SlotsHub]) -> None:
    agent = await hubs[0].token_for(Role.AGENT, "w-*")
    assert (await hubs[1].get("/metrics", agent)).status_code == 403
    assert (await hubs[1].get("/metrics", "nonsense")).status_code == 401
    assert (await hubs[1].ask("HEAD", "/metrics", None, {})).status_code == 200
