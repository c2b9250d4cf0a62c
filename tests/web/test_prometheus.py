"""What `/metrics` tells is what happened."""

from __future__ import annotations

import re
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.adapters.observe.dead_man_switch import HttpDeadManSwitch
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.core.agent import Agent
from lifesigns.core.health import Doing, Health
from lifesigns.core.signals import (
    BeatReceived,
    BreakerReported,
    BreakerState,
    DoingChanged,
    Metrics,
    NudgeDelivered,
    NudgeRequested,
)
from lifesigns.errors import AdapterError
from lifesigns.hub.principals import Principal, Role
from lifesigns.ports import Commit
from lifesigns.web.prometheus import PER_AGENT_MAX
from tests.docs.pages import ROOT
from tests.servers.process import free_port
from tests.web.observed import Observed, value

PAGE = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
RENDER_MAX = 0.050
PASS_MAX = 0.015
MANY = 100_000
ADMIN = Principal("t", "me", Role.ADMIN)


def beat(agent_id: str, seq: int = 1, **fields: int | float) -> BeatReceived:
    return BeatReceived(agent_id, seq, "one", **fields)  # type: ignore[arg-type]


async def test_agents_are_counted_by_state_and_doing() -> None:
    async with Observed() as seen:
        await seen.hear(beat("a"), beat("b"), beat("c"))
        await seen.hear(DoingChanged(agent_id="b", doing=Doing.WAITING_FOR_HUMAN))
        await seen.pass_time(10, "a", "b")
        scraped = seen.scrape()
        assert value(scraped, "lifesigns_agents", state="healthy") == 2
        assert value(scraped, "lifesigns_agents", state="disconnected") == 1
        assert value(scraped, "lifesigns_agents", state="stuck") == 0
        assert value(scraped, "lifesigns_agents_doing", doing="waiting_for_human") == 1
        assert value(scraped, "lifesigns_findings_open", kind="silence") == 1
        assert value(scraped, "lifesigns_flips_total", to="disconnected") == 1


async def test_signals_are_counted_by_what_became_of_them() -> None:
    async with Observed() as seen:
        await seen.hear(beat("a", 1), beat("a", 2))
        await seen.hear(BreakerReported(agent_id="a", name="api", state=BreakerState.OPEN))
        await seen.hear(NudgeDelivered(agent_id="nobody", order_id="1-1"))
        seen.service.hub.counters.turned_away += 3
        await seen.service.http_receiver.take_beats(b'[{"agent_id": "a", "seq": 3}, {"agent_id": 7}]', ADMIN)
        await seen.hear()
        scraped = seen.scrape()
        assert value(scraped, "lifesigns_beats_total") == 3
        assert value(scraped, "lifesigns_reports_total") == 2
        assert value(scraped, "lifesigns_signals_refused_total") == 1
        assert value(scraped, "lifesigns_signals_turned_away_total") == 3
        assert value(scraped, "lifesigns_signals_unreadable_total") == 1
        assert value(scraped, "lifesigns_breakers", state="open") == 1
        assert value(scraped, "lifesigns_inbox_signals") == 0


async def test_a_death_is_counted_by_how_late_it_was_found() -> None:
    """The clock goes on half a second at a time, so everything is found within that; nothing is below 1 ms or above 1 s."""
    async with Observed() as seen:
        await seen.hear(beat("a"), beat("b"))
        await seen.pass_time(10, "b")
        scraped = seen.scrape()
        late = "lifesigns_detection_late_seconds"
        assert value(scraped, f"{late}_count") == 1
        assert value(scraped, f"{late}_bucket", le="+Inf") == value(scraped, f"{late}_bucket", le="1.0") == 1
        assert 0 <= value(scraped, f"{late}_sum") <= 0.5
        looks = value(scraped, "lifesigns_tick_late_seconds_count")
        assert looks == seen.service.hub.counters.looks > 1
        assert value(scraped, "lifesigns_tick_late_last_seconds") == seen.service.hub.counters.look_late


async def test_pages_events_and_orders_are_counted() -> None:
    async with Observed() as seen:
        await seen.hear(beat("a"))
        await seen.hear(NudgeRequested(agent_id="a", by="me", message="hello"))
        scraped = seen.scrape()
        assert value(scraped, "lifesigns_interventions_total", rung="nudge", stage="ordered") == 1
        assert value(scraped, "lifesigns_interventions_total", rung="terminate", stage="done") == 0
        assert value(scraped, "lifesigns_orders_waiting") == 1
        assert value(scraped, "lifesigns_events_kept_total") == 2
        pages = value(scraped, "lifesigns_pages_kept_total")
        assert pages == value(scraped, "lifesigns_store_commit_seconds_count") >= 2


async def test_http_answers_are_counted_by_their_class() -> None:
    async with Observed() as seen:
        seen.answered.update({200: 3, 202: 4, 500: 1})
        scraped = seen.scrape()
        answered = [value(scraped, "lifesigns_http_requests_total", status=f"{n}xx") for n in range(1, 6)]
        assert answered == [0, 7, 0, 0, 1]


class AwayStore(MemoryStore):
    """Takes nothing while it is away."""

    away = False

    async def commit(self, page: Commit) -> None:
        if self.away:
            raise AdapterError("the disk is full")
        await super().commit(page)


async def test_store_and_bus_are_up_or_not_and_no_bus_is_neither() -> None:
    store = AwayStore("up-or-not")
    async with Observed(store) as seen:
        scraped = seen.scrape()
        assert value(scraped, "lifesigns_store_up") == 1
        assert ("lifesigns_bus_up", ()) not in scraped
        store.away = True
        seen.service.hub.hear([beat("a")])
        await seen.until(lambda: value(seen.scrape(), "lifesigns_store_up") == 0)
        store.away = False
        await seen.until(lambda: value(seen.scrape(), "lifesigns_store_up") == 1)
    async with Observed(bus=MemoryBus("memory://up")) as seen:
        await seen.until(lambda: value(seen.scrape(), "lifesigns_bus_up") == 1)


async def test_the_hub_tells_of_itself() -> None:
    async with Observed() as seen:
        aware, now = seen.service.engine.beliefs.awareness, seen.service.clock()
        aware.score, aware.score_at = 3, now
        seen.service.engine.beliefs.awareness.lose_sight(seen.now)
        scraped = seen.scrape()
        assert value(scraped, "lifesigns_self_doubt_score") == 3
        assert value(scraped, "lifesigns_blind") == 1
        assert value(scraped, "process_resident_memory_bytes") > 1e7
        ((_, labels),) = [series for series in scraped if series[0] == "lifesigns_hub_info"]
        assert dict(labels)["epoch"] == str(seen.service.hub.epoch)


async def test_what_happened_while_there_was_no_hub_is_not_late() -> None:
    """A restart after a night must not look like a loop that hung for a night."""
    async with Observed(MemoryStore("a night")) as seen:
        await seen.hear(beat("a"))
    later = Observed(MemoryStore("a night"))
    later.now = seen.now + 36_000
    async with later:
        await later.pass_time(3, "a")
        assert later.service.hub.counters.looks > 1
        assert later.service.hub.counters.look_late_max < 2


# --- one by one ----------------------------------------------------------------------------------------


async def test_few_agents_are_shown_one_by_one_and_many_are_not() -> None:
    async with Observed() as seen:
        for seq in (0, 1):
            await seen.hear(
                *(
                    beat(f"a-{n}", seq, token_count=100 * n * seq, cost_usd=seq / 2)
                    for n in range(PER_AGENT_MAX)
                )
            )
        beat_at, scraped = seen.now, seen.scrape()
        assert value(scraped, "lifesigns_agent_up", agent="a-7") == 1
        assert value(scraped, "lifesigns_agent_last_beat_seconds", agent="a-7") == beat_at
        assert value(scraped, "lifesigns_agent_tokens_total", agent="a-7") == 700
        assert value(scraped, "lifesigns_agent_cost_usd_total", agent="a-7") == 0.5
        await seen.hear(beat("one-too-many"))
        assert not [name for name, _ in seen.scrape() if name.startswith("lifesigns_agent_")]


async def test_who_was_never_heard_has_no_last_beat_and_is_not_up() -> None:
    async with Observed() as seen:
        seen.service.engine.beliefs.agents["new"] = Agent("new", 1)
        scraped = seen.scrape()
        assert value(scraped, "lifesigns_agent_up", agent="new") == 0
        assert ("lifesigns_agent_last_beat_seconds", (("agent", "new"),)) not in scraped


async def test_a_large_fleet_is_shown_without_holding_anybody_up() -> None:
    """100,000 agents within 50 ms, the pass over all of them within 15; and the second scrape counts nobody again."""
    async with Observed() as seen:
        agents = seen.service.engine.beliefs.agents
        for n in range(MANY):
            agents[f"a-{n}"] = Agent(f"a-{n}", n, calm=n % 10 > 0, health=Health.HEALTHY, doing=Doing.WORKING)
        first: list[float] = []
        second: list[float] = []
        for _ in range(7):
            seen.now += 1.0
            for took in (first, second):
                began = time.process_time()
                seen.metrics.text()
                took.append(time.process_time() - began)
        assert value(seen.scrape(), "lifesigns_agents", state="healthy") == MANY
        print(f"{MANY} agents: {min(first) * 1e3:.1f} ms, again {min(second) * 1e3:.1f} ms")  # noqa: T201
        assert min(first) < RENDER_MAX
        assert min(first) - min(second) < 2 * PASS_MAX  # a busy machine has half the speed
        seen.service.engine.beliefs.agents.clear()


# --- the exposition ------------------------------------------------------------------------------------


async def everything(accept: str = "") -> tuple[str, str]:
    """A scrape of a hub that has all there is: a bus, a dead-man's switch (where nobody listens), and few agents."""
    switch = HttpDeadManSwitch(f"http://127.0.0.1:{free_port()}/")
    async with Observed(bus=MemoryBus("memory://all"), switch=switch) as seen:
        await seen.hear(beat("a", token_count=3))
        counts = Metrics(cpu_percent=1.0, memory_mb=2.0, tasks_completed=3, tasks_failed=4)
        await seen.hear(BeatReceived("worker", 1, "one", capacity_available=5, metrics=counts))
        text, content_type = seen.metrics.text(accept)
        return text.decode(), content_type


async def test_names_follow_the_conventions_and_everything_is_explained() -> None:
    text, content_type = await everything()
    families = [family for family in plain(text) if family.name.startswith("lifesigns_")]
    assert content_type.startswith("text/plain; version=0.0.4")
    assert len(families) > 20
    for family in families:
        assert family.documentation, family.name
        names = {sample.name for sample in family.samples}
        if family.type == "counter":
            assert names == {f"{family.name}_total"}, family.name
        if family.type == "histogram":
            assert family.name.endswith("_seconds"), family.name
        assert not re.search(r"_(ms|millis|kb|mb)\b|_total$", family.name), family.name


async def test_openmetrics_is_spoken_with_who_accepts_it() -> None:
    """Its parser is strict: order of buckets, units, `# EOF`."""
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
    text, content_type = await everything(accept)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in openmetrics(text)}  # type: ignore[no-untyped-call]
    assert families["lifesigns_store_commit_seconds"].unit == "seconds"
    assert families["lifesigns_hub"].type == "info"


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text;version=x.y;escaping=no", "\x00;;;=,", "*/*"]
)
async def test_a_strange_accept_header_is_answered(accept: str) -> None:
    text, _ = await everything(accept)
    assert "lifesigns_beats_total 2.0" in text


async def test_the_page_lists_what_there_is() -> None:
    text, _ = await everything()
    labels: dict[str, set[str]] = {}
    types: dict[str, str] = {}
    for family in plain(text):
        if not family.name.startswith("lifesigns_"):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        types[name] = family.type
        labels[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    rows = re.findall(r"^\| `(lifesigns_\w+)` \| (\w+) \|([^|]*)\|", PAGE, re.MULTILINE)
    assert {name: kind for name, kind, _ in rows} == types
    assert {name: set(re.findall(r"`(\w+)`", shown)) for name, _, shown in rows} == labels
