"""Others' things stay theirs.

Promises:
    1. A task is of who holds it, was assigned it, or saves its checkpoints: nobody else saves, claims or reassigns it, nor
       moves its deadline, whichever way they come in. Operators may.
    2. Contents of checkpoints are read by who saved them, by who goes on with the task, and by those who may read everything.
       To know a digest is not enough.
    3. A message's id is its sender's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, Refused, serving
from tests.security.test_masters import agent_token

SECRET = b"what the victim saved"


@pytest.fixture
def hub(tmp_path: Path) -> Any:
    with serving(tmp_path) as hub:
        yield hub


class Somebody:
    """A token for one agent, and what is done with it."""

    def __init__(self, hub: Hub, agent_id: str) -> None:
        self.hub = hub
        self.id = agent_id
        self._token = agent_token(hub, agent_id)
        self.post("/api/v1/beats", {"seq": 1})

    def post(self, path: str, body: Any) -> Any:
        return self.hub.request("POST", path, {"agent_id": self.id, **body}, self._token)

    def says(self, kind: str, **words: Any) -> Any:
        return self.post("/api/v1/signals", {"type": kind, **words})

    def puts(self, path: str, content: bytes) -> Any:
        return self.hub.request(
            "PUT", f"{path}?agent_id={self.id}", content, self._token, Content_Type="application/octet-stream"
        )

    def gets(self, path: str) -> Any:
        return self.hub.request("GET", path, None, self._token)


@pytest.fixture
def victim(hub: Hub) -> Somebody:
    return Somebody(hub, "victim")


@pytest.fixture
def stranger(hub: Hub) -> Somebody:
    return Somebody(hub, "stranger")


def refused(status: int, field: str | None, act: Any, *args: Any, **words: Any) -> str:
    with pytest.raises(Refused) as error:
        act(*args, **words)
    assert (error.value.status, error.value.body.get("field")) == (status, field)
    return str(error.value.body["detail"])


HELD: dict[str, tuple[str, dict[str, Any]]] = {
    "claimed": ("claim", {"task_id": "t"}),
    "assigned": ("task_assigned", {"task_id": "t", "expected_for": 60}),
    "saved": ("checkpoint", {"task_id": "t", "checkpoint_id": "cp-1"}),
}


@pytest.mark.parametrize("held", HELD)
def test_nobody_says_something_about_the_task_of_another(
    hub: Hub, victim: Somebody, stranger: Somebody, held: str
) -> None:
    kind, words = HELD[held]
    victim.says(kind, **words)
    before = hub.get("/api/v1/tasks/t")
    for kind, words in (
        ("checkpoint", {"task_id": "t", "checkpoint_id": "cp-2"}),
        ("task_assigned", {"task_id": "t"}),
        ("claim", {"task_id": "t"}),
    ):
        assert "of 'victim'" in refused(400, "task_id", stranger.says, kind, **words)
    saved = {"checkpoint_id": "cp-2"}
    refused_by_rest = refused(
        409, None if held == "claimed" else "task_id", stranger.post, "/api/v1/tasks/t/checkpoints", saved
    )
    assert "'victim'" in refused_by_rest
    with pytest.raises(Refused) as not_put:
        stranger.puts("/api/v1/tasks/t/checkpoints/cp-2", b"poison")
    assert not_put.value.status == 409
    with pytest.raises(Refused) as not_claimed:
        stranger.post("/api/v1/tasks/t/claim", {})
    assert not_claimed.value.status == 409
    assert hub.get("/api/v1/tasks/t") == before
    hub.post(
        "/api/v1/signals", {"type": "task_assigned", "agent_id": "stranger", "task_id": "t"}
    )  # An operator.


def test_a_stranger_does_not_get_in_by_working_on_it(victim: Somebody, stranger: Somebody) -> None:
    """A checkpoint without a task is of the task its agent works on, and a beat may name any."""
    victim.says("claim", task_id="t")
    stranger.post("/api/v1/beats", {"seq": 2, "task_id": "t"})
    assert "of 'victim'" in refused(400, "task_id", stranger.says, "checkpoint", checkpoint_id="cp-2")


def test_a_beat_that_names_the_task_does_not_move_its_deadline(
    hub: Hub, victim: Somebody, stranger: Somebody
) -> None:
    victim.says("task_assigned", task_id="t", expected_for=60)
    before = hub.get("/api/v1/tasks/t")["due"]
    stranger.post("/api/v1/beats", {"seq": 2, "task_id": "t"})
    stranger.says("progress")
    stranger.says("doing", doing="working", note="all is well")
    assert hub.get("/api/v1/tasks/t")["due"] == before


def test_what_was_saved_is_read_by_who_goes_on_with_it_and_by_no_stranger(
    hub: Hub, victim: Somebody, stranger: Somebody
) -> None:
    place = "/api/v1/tasks/t/checkpoints/cp-1"
    saved = victim.puts(place, SECRET)
    assert victim.gets(place) == SECRET.decode()
    assert hub.get(place) == SECRET.decode()
    with pytest.raises(Refused) as unread:
        stranger.gets(place)
    assert unread.value.status == 404
    victim.says("left")
    digest = {"checkpoint_id": "cp-1", "task_id": "t", "digest": saved["digest"]}
    assert "did not come from 'stranger'" in refused(400, "digest", stranger.says, "checkpoint", **digest)
    with pytest.raises(Refused) as still_unread:
        stranger.gets(place)
    assert still_unread.value.status == 404
    hub.post(
        "/api/v1/signals",
        {"type": "task_assigned", "agent_id": "stranger", "task_id": "t", "expected_for": 60},
    )
    assert stranger.gets(place) == SECRET.decode()  # Now it is the successor.


def test_whose_a_task_is_outlives_the_hub(hub: Hub, victim: Somebody, stranger: Somebody) -> None:
    victim.says("checkpoint", task_id="t", checkpoint_id="cp-1")
    hub.kill()
    hub.start()
    refused(400, "task_id", stranger.says, "checkpoint", task_id="t", checkpoint_id="cp-2")


def test_an_id_of_a_message_is_its_senders(victim: Somebody, stranger: Somebody) -> None:
    victim.post("/api/v1/messages", {"to": "stranger", "message_id": "m-1"})
    squat = {"to": "victim", "message_id": "m-1"}
    refused(400, "message_id", stranger.says, "message_sent", **squat)
    refused(409, "message_id", stranger.post, "/api/v1/messages", squat)
