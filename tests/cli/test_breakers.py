"""`lifesigns breakers`: what is open and for how long, and turning one."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterator

import pytest

from lifesigns.agent.guard.guard import Breaker
from lifesigns.assembly.senders import Sender
from lifesigns.core.signals import BreakerState
from tests.cli.hub import HubInThread, hub_in_thread


@pytest.fixture(scope="module")
def hub() -> Iterator[HubInThread]:
    with hub_in_thread() as hub:
        yield hub


@pytest.fixture
def name() -> str:
    return f"search-{uuid.uuid4().hex[:8]}"


def report(hub: HubInThread, agent_id: str, name: str, **more: object) -> None:
    said = {"name": name, "state": "open", "failures": 3, **more}
    hub.client.signal("breaker", agent_id, incarnation="one", **said)


def test_an_open_one_counts_down(hub: HubInThread, name: str) -> None:
    report(hub, "a", name, until=time.time() + 3000, timestamp=time.time())
    report(hub, "b", name, state="forced_open")
    report(hub, "c", name, until=time.time() - 5, timestamp=time.time())
    report(hub, "d", name, state="closed", failures=0)
    listed = hub.cli("breakers", COLUMNS="200")
    assert listed.exit_code == 1
    rows = {
        line.split()[2]: " ".join(line.split()[3:]) for line in listed.output.splitlines() if name in line
    }
    assert re.fullmatch(r"3 in (49|50) min", rows["a"])
    assert rows["b"] == "3 when somebody turns it"
    assert rows["c"] == "3 with the next call"
    assert rows["d"] == "0"
    found = json.loads(hub.cli("breakers", "--json").output)["breakers"]
    (shown,) = [one for one in found if one["name"] == name and one["agent_id"] == "a"]
    assert 2900 < shown["half_open_in_s"] <= 3000


def test_one_agents_breaker_is_reset_without_a_question(hub: HubInThread, name: str) -> None:
    report(hub, "a", name)
    done = hub.cli("breakers", "reset", name, "--reason", "it is back")
    assert done.exit_code == 0
    assert f"a: reset breaker '{name}': it is back, ordered" in done.output
    orders = hub.client.orders("a").orders
    assert any(order["type"] == "breaker" and order["name"] == name for order in orders)


def test_several_or_an_opening_are_asked_about_first(hub: HubInThread, name: str) -> None:
    report(hub, "a", name)
    asked = hub.cli("breakers", "open", name)
    assert asked.exit_code == 2
    assert "--yes" in asked.output
    report(hub, "b", name)
    assert hub.cli("breakers", "reset", name).exit_code == 2
    acts = hub.client.interventions(rung="breaker").interventions
    assert [one for one in acts if name in one.reason] == []
    both = json.loads(hub.cli("breakers", "reset", name, "--yes", "--json").output)["interventions"]
    assert [one["agent_id"] for one in both] == ["a", "b"]
    one = json.loads(hub.cli("breakers", "close", name, "--agent", "b", "--json").output)["interventions"]
    assert [one["agent_id"] for one in one] == ["b"]


def test_it_waits_until_the_agent_has_done_it(hub: HubInThread, name: str) -> None:
    breaker = Breaker(name, failure_threshold=1)
    breaker.open()
    with Sender("waited-for", hub.url, token=hub.token):
        _until_known(hub, name)
        done = hub.cli("breakers", "reset", name, "--wait", "--timeout", "30s")
    assert done.exit_code == 0, done.output
    assert f"waited-for: reset breaker '{name}', done" in done.output
    assert breaker.state is BreakerState.CLOSED


def test_what_did_not_happen_in_time_or_cannot_is_told_by_the_status(hub: HubInThread, name: str) -> None:
    report(hub, "gone", name)
    late = hub.cli("breakers", "reset", name, "--wait", "--timeout", "0.3s")
    assert late.exit_code == 1
    assert "ordered" in late.output
    with Sender("has-none", hub.url, token=hub.token) as life:
        hub.client.signal("breaker", "has-none", incarnation=life.incarnation, name=name, state="open")
        refused = hub.cli("breakers", "reset", name, "--agent", "has-none", "--wait", "--timeout", "30s")
    assert refused.exit_code == 1
    assert f"failed: there is no breaker '{name}'" in refused.output


def test_two_at_once_are_two_acts_and_the_newest_counts(hub: HubInThread, name: str) -> None:
    report(hub, "a", name)
    acts = [
        threading.Thread(target=hub.client.reset_breaker, args=(name,)),
        threading.Thread(target=hub.client.close_breaker, args=(name,)),
    ]
    for act in acts:
        act.start()
    for act in acts:
        act.join(30)
    mine = [one for one in hub.client.interventions(rung="breaker").interventions if name in one.reason]
    assert sorted(one.stage for one in mine) == ["dropped", "ordered"]


def test_what_is_not_there_is_one_line(hub: HubInThread) -> None:
    for words in (["reset", "nobody-has-it"], ["reset", "nobody-has-it", "--agent", "a"], ["reset", ".."]):
        said = hub.cli("breakers", *words)
        assert said.exit_code == 2
        assert len(said.output.splitlines()) == 1


def _until_known(hub: HubInThread, name: str) -> None:
    until = time.monotonic() + 30
    while not any(one.name == name for one in hub.client.breakers().breakers):
        assert time.monotonic() < until, "the agent never reported it"
        time.sleep(0.02)
