"""`lifesigns recover`: a task goes on in a new life of its agent, and the status says how that went."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.cli.hub import HubInThread, hub_in_thread


@pytest.fixture(scope="module")
def hub() -> Iterator[HubInThread]:
    with hub_in_thread() as hub:
        yield hub


def left(hub: HubInThread, agent_id: str, task: str) -> None:
    """An agent that worked on a task and is gone."""
    hub.client.beat(agent_id, incarnation="one", task_id=task)
    hub.client.signal("checkpoint", agent_id, incarnation="one", task_id=task, checkpoint_id="cp-1")
    hub.client.signal("left", agent_id, incarnation="one", reason="tired")


def when_ordered(
    hub: HubInThread, agent_id: str, act: Callable[[Mapping[str, Any]], object]
) -> threading.Thread:
    """Do this with the order to start the agent anew, once it is there."""

    def wait() -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            orders = hub.client.orders(agent_id, wait=1).orders
            found = [order for order in orders if order["type"] == "respawn"]
            if found:
                act(found[0])
                return

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_task_goes_on_and_who_wanted_it_is_on_record(hub: HubInThread) -> None:
    left(hub, "a", "t-1")
    hands = when_ordered(
        hub, "a", lambda order: hub.client.beat("a", incarnation=str(order["new_incarnation"]))
    )
    done = hub.cli("recover", "t-1", "--reason", "the disk is back", "--yes", "--wait", "--timeout", "30s")
    hands.join()
    assert done.exit_code == 0, done.output
    assert "t-1: a lives again, from checkpoint cp-1" in done.output.splitlines()[-1]
    entries = hub.client.audit(agent="a").entries
    assert [(one.what, one.who) for one in entries if "request" in one.what] == [
        ("recovery requested", f"tests ({hub.token.split('_')[1]})")
    ]
    (initiated,) = hub.client.event_list(types=["RECOVERY_INITIATED"], agent="a").events
    assert "the disk is back" in initiated.data["reason"]
    assert hub.client.event_list(types=["RECOVERY_COMPLETED"], agent="a").events


def test_without_waiting_it_says_what_is_under_way(hub: HubInThread) -> None:
    left(hub, "b", "t-2")
    said = hub.cli("recover", "t-2", "--yes", "--json")
    assert said.exit_code == 0
    told = json.loads(said.output)
    assert (told["task_id"], told["recovery"]["agent_id"]) == ("t-2", "b")
    assert told["recovery"]["on_its_way"]
    again = json.loads(hub.cli("recover", "t-2", "--yes", "--json").output)
    assert again["recovery"]["attempt"] == told["recovery"]["attempt"] == 1


def test_one_that_does_not_speak_in_time_is_told_by_the_status(hub: HubInThread) -> None:
    left(hub, "c", "t-3")
    late = hub.cli("recover", "t-3", "--yes", "--wait", "--timeout", "1.5s")
    assert late.exit_code == 1
    assert "t-3: c is" in late.output


def test_nobody_is_started_anew_unasked(hub: HubInThread) -> None:
    left(hub, "d", "t-4")
    asked = hub.cli("recover", "t-4")
    assert asked.exit_code == 2
    assert "--yes" in asked.output
    assert not hub.client.recovery("t-4").recoveries[0].on_its_way


def test_an_agent_that_lives_is_not_doubled(hub: HubInThread) -> None:
    hub.client.beat("e", incarnation="one", task_id="t-5")
    refused = hub.cli("recover", "t-5", "--yes")
    assert refused.exit_code == 2
    assert "terminate it before" in refused.output


def test_who_of_several_has_to_be_said(hub: HubInThread) -> None:
    left(hub, "f", "t-6")
    left(hub, "g", "t-6")
    assert hub.cli("recover", "t-6", "--yes").exit_code == 2
    named = json.loads(hub.cli("recover", "t-6", "--agent", "g", "--yes", "--json").output)
    assert named["recovery"]["agent_id"] == "g"
    assert hub.cli("recover", "t-6", "--agent", "nobody", "--yes").exit_code == 2


def test_a_task_nobody_knows_is_one_line(hub: HubInThread) -> None:
    said = hub.cli("recover", "ghost", "--yes")
    assert said.exit_code == 2
    assert len(said.output.splitlines()) == 1
