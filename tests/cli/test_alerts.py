"""`lifesigns alerts` and `lifesigns release`: what stands, who has it, what nobody hears of, what waits for a word."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from lifesigns.hub.alerting.rules import Rules
from tests.cli.hub import HubInThread, hub_in_thread
from tests.hub.alerting.test_notifier import AT_ONCE, FAST, Ear


@pytest.fixture(scope="module")
def ear() -> Ear:
    return Ear()


@pytest.fixture(scope="module")
def hub(ear: Ear) -> Iterator[HubInThread]:
    with hub_in_thread(rules=Rules({"ops": FAST}, pacing=AT_ONCE), channels={"ops": ear}) as hub:
        yield hub


@pytest.fixture
def crashed(hub: HubInThread, request: pytest.FixtureRequest) -> Iterator[str]:
    """The key of the alert about an agent that crashed."""
    agent = f"coder-{request.node.name}"[:100]
    key = f"stuck_agent:{agent}"
    hub.client.beat(agent, incarnation="i-1")
    hub.client.signal("exited", agent, status=1)
    until(lambda: any(one.key == key for one in hub.client.alerts().alerts))
    yield key
    hub.client.beat(agent, incarnation="i-2")
    hub.client.signal("left", agent, incarnation="i-2")
    until(lambda: not any(one.standing for one in hub.client.alerts().alerts))


def until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_nothing_stands_in_a_quiet_fleet(hub: HubInThread) -> None:
    said = hub.cli("alerts")
    assert (said.exit_code, said.output) == (0, "Nothing stands that people should know of.\n")
    assert json.loads(hub.cli("alerts", "list", "--json").output)["alerts"] == []


def test_what_stands_is_listed_and_taken_on(hub: HubInThread, crashed: str) -> None:
    listed = hub.cli("alerts")
    assert listed.exit_code == 1
    assert crashed in listed.output
    assert "nobody" in listed.output
    done = hub.cli("alerts", "ack", crashed, "--reason", "looking", "--for", "2h")
    assert done.exit_code == 0
    assert done.output.startswith(f"{crashed} is acknowledged by tests (")
    again = hub.cli("alerts", "list")
    assert again.exit_code == 0, "somebody has it"
    assert "by tests (" in again.output
    happened = json.loads(hub.cli("alerts", "--all", "--json").output)["alerts"]
    assert any(not one["standing"] and one["key"] == crashed for one in happened)
    assert hub.cli("alerts", "ack", "stuck_agent:nobody").exit_code == 2


def test_a_silence_is_made_listed_and_ended(hub: HubInThread, crashed: str) -> None:
    made = hub.cli("alerts", "silence", "--agent", "coder-*", "--for", "2h", "--reason", "moving")
    assert made.exit_code == 0
    silence_id = made.output.partition(":")[0]
    until(lambda: "moving" in hub.cli("alerts").output)
    assert hub.cli("alerts").exit_code == 0, "nobody wants to hear of it"
    listed = hub.cli("alerts", "silences")
    assert silence_id in listed.output
    assert "agents coder-*" in listed.output
    assert json.loads(hub.cli("alerts", "silences", "--json").output)["silences"][0]["id"] == silence_id
    assert hub.cli("alerts", "unsilence", silence_id).output == f"{silence_id} is over.\n"
    assert hub.cli("alerts", "silences").output == "Nothing is silenced.\n"
    assert hub.cli("alerts", "unsilence", silence_id).exit_code == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["silence", "--for", "2h", "--reason", "x"], "--agent"),
        (["silence", "--agent", "*", "--reason", "x"], "--for"),
        (["silence", "--agent", "*", "--for", "2h"], "--reason"),
        (["silence", "--kind", "stuck", "--for", "2h", "--reason", "x"], "stuck_agent"),
        (["silence", "--agent", "*", "--for", "soon", "--reason", "x"], "soon"),
        (["ack"], "ID"),
    ],
)
def test_what_cannot_work_is_said(hub: HubInThread, args: list[str], said: str) -> None:
    refused = hub.cli("alerts", *args)
    assert refused.exit_code == 2
    assert said in refused.output


def test_a_braked_group_is_listed_and_released_after_a_question(hub: HubInThread) -> None:
    assert hub.cli("release").output == "No group is braked.\n"
    agents = [f"w-{n}" for n in range(4)]
    hub.client.beats({"agent_id": agent, "host": "ws-1"} for agent in agents)
    hub.client.beats({"agent_id": f"v-{n}", "host": "ws-2"} for n in range(40))
    hub.client.signals({"type": "exited", "agent_id": agent, "status": 1} for agent in agents)
    listed = hub.cli("release")
    assert listed.exit_code == 1
    assert "host ws-1" in listed.output
    assert hub.cli("release", "host ws-1").exit_code == 2, "nobody is here to confirm it"
    done = hub.cli("release", "host ws-1", "--yes")
    assert done.exit_code == 0
    assert "Interventions in host ws-1 go on until 20" in done.output
    assert hub.cli("release", "host ws-1", "--yes").exit_code == 2
    assert hub.cli("release", "--json").exit_code == 0


def test_a_group_is_one_line(hub: HubInThread, ear: Ear) -> None:
    agents = [f"u-{n}" for n in range(5)]
    hub.client.beats({"agent_id": agent, "host": "ws-3"} for agent in agents)
    hub.client.signals({"type": "exited", "agent_id": agent, "status": 1} for agent in agents)
    until(lambda: any(one.key == "stuck_agent@host ws-3" for one in ear.told))
    (line,) = [
        line for line in hub.cli("alerts").output.splitlines() if "u-" in line and "stuck_agent" in line
    ]
    assert line.startswith("stuck_agent@host ws-3")
    assert "5 alerts: u-0 is disconnected" in line
    assert hub.cli("alerts", "ack", "stuck_agent:u-1").exit_code == 0
    assert "1 of 5, by tests (" in hub.cli("alerts").output
    assert "(5 alerts) is acknowledged" in hub.cli("alerts", "ack", "stuck_agent@host ws-3").output
