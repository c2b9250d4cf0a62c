"""Who a life is: from the call, and from the environment if that means this agent."""

import time
from pathlib import Path

import pytest

from lifesigns.agent.identity import identify, mark_saved, mark_speaking, mark_told_to_stop, new_incarnation
from lifesigns.assembly.senders import Sender
from lifesigns.errors import UsageError

STARTED = {
    "LIFESIGNS_AGENT_ID": "coder-7",
    "LIFESIGNS_TASK": "t-19",
    "LIFESIGNS_CHECKPOINT": "cp-3",
    "LIFESIGNS_HANDOFF": "two of three done",
}


def test_who_was_started_as_this_agent_takes_all_of_it_over() -> None:
    life = identify(None, environment={**STARTED, "LIFESIGNS_INCARNATION": "01TAKEN"})
    assert (life.agent_id, life.incarnation, life.task) == ("coder-7", "01TAKEN", "t-19")
    assert (life.resume_from, life.handoff) == ("cp-3", "two of three done")


def test_the_environment_of_another_agent_is_not_ours() -> None:
    """An agent that starts others hands its environment on."""
    life = identify("reviewer-1", environment={**STARTED, "LIFESIGNS_INCARNATION": "01OTHER"})
    assert life.incarnation != "01OTHER"
    assert (life.task, life.resume_from, life.handoff) == (None, None, None)


def test_an_incarnation_is_taken_over_once() -> None:
    """It has said good-bye when the second one starts: a hub would refuse it."""
    told = {**STARTED, "LIFESIGNS_INCARNATION": "01ONCE"}
    assert identify("coder-7", environment=told).incarnation == "01ONCE"
    assert identify("coder-7", environment=told).incarnation != "01ONCE"


def test_what_the_call_says_wins() -> None:
    life = identify("coder-7", "mine", "t-1", {**STARTED, "LIFESIGNS_INCARNATION": "01LOSES"})
    assert (life.incarnation, life.task) == ("mine", "t-1")


def test_incarnations_sort_by_their_begin_and_never_meet() -> None:
    first = new_incarnation()
    time.sleep(0.002)
    later = [new_incarnation() for _ in range(1000)]
    assert all(first < one for one in later)
    assert len(set(later)) == 1000
    assert {len(one) for one in later} == {26}


@pytest.mark.parametrize("wrong", [None, "", "two words", "a" * 129, "ünïcode"])
def test_a_wrong_id_is_refused_at_once(wrong: str | None) -> None:
    with pytest.raises(UsageError, match="agent_id"):
        Sender(wrong, "memory://x")


@pytest.mark.parametrize(
    "hub", ["ftp://x", "127.0.0.1:8710", "http://", "http://user:pw@host", "http://h:99999"]
)
def test_a_wrong_address_is_refused_at_once(hub: str) -> None:
    with pytest.raises(UsageError, match="hub"):
        Sender("coder-7", hub)


def test_an_unknown_scheme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"http://, https://, nats://.*memory://"):
        Sender("coder-7", "ftp://x")


def test_a_child_of_run_tells_it_that_it_speaks_for_itself(tmp_path: Path) -> None:
    told = {"LIFESIGNS_RUN": str(tmp_path), "LIFESIGNS_AGENT_ID": "coder-7"}
    mark_speaking("reviewer-1", told)
    assert not (tmp_path / "speaks").exists()
    mark_speaking("coder-7", told)
    assert (tmp_path / "speaks").read_bytes() == b""


def test_a_folder_of_run_that_is_gone_harms_nobody(tmp_path: Path) -> None:
    told = {"LIFESIGNS_RUN": str(tmp_path / "gone"), "LIFESIGNS_AGENT_ID": "a"}
    mark_speaking("a", told)
    mark_saved("cp-1", "a", told)
    mark_told_to_stop("a", told)
    assert list(tmp_path.iterdir()) == []


def test_a_child_of_run_tells_it_where_the_next_life_can_go_on_and_that_it_ends_as_told(
    tmp_path: Path,
) -> None:
    told = {"LIFESIGNS_RUN": str(tmp_path), "LIFESIGNS_AGENT_ID": "coder-7"}
    mark_saved("cp-1", "reviewer-1", told)
    assert list(tmp_path.iterdir()) == []
    mark_saved("cp-1", "coder-7", told)
    mark_saved("cp-2", "coder-7", told)
    mark_told_to_stop("coder-7", told)
    assert (tmp_path / "checkpoint").read_text() == "cp-2"
    assert {file.name for file in tmp_path.iterdir()} == {"checkpoint", "told to stop"}


def test_a_supervisor_stands_beside_a_life_only_if_it_is_at_the_same_hub() -> None:
    told = {"LIFESIGNS_RUN": "/run", "LIFESIGNS_AGENT_ID": "coder-7", "LIFESIGNS_HUB": "http://hub"}
    assert identify("coder-7", environment=told).supervised_at == "http://hub"
    assert identify("reviewer-1", environment=told).supervised_at is None
    assert identify("coder-7", environment={**told, "LIFESIGNS_HUB": ""}).supervised_at is None
    assert identify("coder-7", environment={**told, "LIFESIGNS_RUN": ""}).supervised_at is None
