"""The commands that act on agents: once, on record, and with a question before what cannot be undone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.cli.hub import HubInThread, hub_in_thread


@pytest.fixture(scope="module")
def running() -> Iterator[HubInThread]:
    with hub_in_thread() as hub:
        yield hub


@pytest.fixture
def hub(running: HubInThread) -> HubInThread:
    running.client.beat("coder-7")
    return running


def test_a_nudge_is_ordered_and_waits_for_the_agent(hub: HubInThread) -> None:
    said = hub.cli("nudge", "coder-7", "Are you there?", "--json")
    assert said.exit_code == 0
    record = json.loads(said.output)
    assert record["rung"] == "nudge"
    orders = hub.client.orders("coder-7").orders
    assert any(order["order_id"] == record["id"] for order in orders)


def test_who_is_to_be_ended_is_asked_about_first(hub: HubInThread) -> None:
    hub.client.beat("doomed")
    asked = hub.cli("terminate", "doomed", "--reason", "enough")
    assert asked.exit_code == 2
    assert "--yes" in asked.output
    assert hub.client.interventions(agent="doomed").interventions == []
    done = hub.cli("terminate", "doomed", "--reason", "enough", "--yes")
    assert done.exit_code == 0
    assert "terminate of doomed is ordered: enough" in done.output
    assert hub.cli("terminate", "doomed", "--yes").exit_code == 2


def test_an_escalation_is_listed_and_decided(hub: HubInThread) -> None:
    record = json.loads(hub.cli("escalate", "coder-7", "--reason", "odd", "--json").output)
    listed = hub.cli("decide")
    assert record["id"] in listed.output
    assert "odd" in listed.output
    assert re.search(rf"{record['id']} +coder-7 +[0-9.]+ m?s ", listed.output), "for how long it has waited"
    assert hub.cli("decide", record["id"]).exit_code == 2
    assert hub.cli("decide", record["id"], "perhaps").exit_code == 2
    decided = hub.cli("decide", record["id"], "ignore", "--note", "it is fine")
    assert "is answered" in decided.output
    assert "Nothing waits" in hub.cli("decide").output


def test_pause_resume_and_clear(hub: HubInThread) -> None:
    assert "is left alone until 20" in hub.cli("pause", "coder-7", "--for", "30m").output
    assert hub.client.agent("coder-7").paused
    assert "is looked after again" in hub.cli("resume", "coder-7").output
    assert hub.cli("clear", "coder-7").exit_code == 2
    assert "begins anew" in hub.cli("clear", "coder-7", "--yes").output


def test_an_agent_nobody_knows_is_one_line(hub: HubInThread) -> None:
    said = hub.cli("nudge", "ghost")
    assert said.exit_code == 2
    assert "ghost" in said.output
    assert len(said.output.splitlines()) == 1
