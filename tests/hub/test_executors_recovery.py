"""From a crash to the next life: over HTTP, with contents on the disk, and a hub that crashes in between."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.core.effects import Order, Respawn
from lifesigns.core.health import Phase
from lifesigns.core.policy import Policy
from lifesigns.core.profiles import profile
from lifesigns.core.signals import CheckpointSaved, ProcessExited, Signal
from lifesigns.hub import executors
from lifesigns.hub.service import Service
from lifesigns.ports import OrderExecutor
from tests.adapters.channels.peers import Peer, Reply
from tests.adapters.executors.ground import HandyHub, handy_hub, settings, until

POLICY = profile("balanced").with_changes(
    {
        "respawn": {"backoff": (0.01,), "jitter": 0.0, "start_timeout": 30.0, "verify_timeout": 20.0},
        "ladder": {"save_for": 0.5},
    }
)


def broken(state: Path, content: bytes) -> None:
    """Flip a bit of the content that is this."""
    (file,) = [
        one for one in (state / "checkpoints").rglob("*") if one.is_file() and one.read_bytes() == content
    ]
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])


@asynccontextmanager
async def starting(
    state: Path, says: Reply | None = None, policy: Policy = POLICY
) -> AsyncIterator[tuple[HandyHub, Peer]]:
    """A hub whose agents are started by somebody else, who says this."""
    async with Peer(lambda _: says or Reply()) as peer:
        given = settings(respawn={"webhook": peer.url})
        async with handy_hub(state, policy=policy, given=given) as hub:
            yield hub, peer


async def three_saved(hub: HandyHub) -> None:
    await hub.beat()
    for number in (1, 2, 3):
        parent = {"parent": f"cp-{number - 1}"} if number > 1 else {}
        answer = await hub.save(f"cp-{number}", f"state {number}".encode(), **parent)
        assert answer.status_code == 201, answer.text


# --- contents over HTTP ------------------------------------------------------------------------------------


async def test_a_checkpoint_is_kept_listed_and_given_back(tmp_path: Path) -> None:
    async with handy_hub(tmp_path) as hub:
        await three_saved(hub)
        listed = (await hub.http.get("/api/v1/tasks/t-19/checkpoints")).json()["checkpoints"]
        assert [(one["checkpoint_id"], one["parent_id"], one["size"]) for one in listed] == [
            ("cp-1", None, 7),
            ("cp-2", "cp-1", 7),
            ("cp-3", "cp-2", 7),
        ]
        assert all(one["digest"].startswith("hub:sha256:") for one in listed)
        back = await hub.http.get("/api/v1/tasks/t-19/checkpoints/cp-2")
        assert (back.status_code, back.content) == (200, b"state 2")
        assert back.headers["content-type"] == "application/octet-stream"
        broken(tmp_path, b"state 2")
        assert (await hub.http.get("/api/v1/tasks/t-19/checkpoints/cp-2")).status_code == 404
        assert (await hub.http.get("/api/v1/tasks/t-19/checkpoints/cp-9")).status_code == 404


async def test_only_its_agent_and_readers_get_it_and_only_its_agent_saves_it(tmp_path: Path) -> None:
    async with handy_hub(tmp_path) as hub:
        await three_saved(hub)
        path = "/api/v1/tasks/t-19/checkpoints/cp-3"
        async with await hub.client_of("coder-*") as own, await hub.client_of("tester-1") as other:
            assert (await own.get(path)).content == b"state 3"
            assert (await other.get(path)).status_code == 404
            said = {"agent_id": "coder-7", "incarnation": "one"}
            assert (await other.put(path, content=b"mine", params=said)).status_code == 403
            assert (await own.put(path, content=b"state 3", params=said)).status_code == 201


async def test_what_is_wrong_with_a_content_is_told(tmp_path: Path) -> None:
    async with handy_hub(tmp_path) as hub:
        await three_saved(hub)
        wrong = await hub.save("cp-4", b"x", digest="0" * 64)
        assert (wrong.status_code, wrong.json()["field"]) == (422, "digest")
        other = await hub.save("cp-3", b"something else")
        assert other.status_code == 409
        assert "is something else" in other.json()["detail"]
        missing = await hub.http.put("/api/v1/tasks/t-19/checkpoints/cp-4", content=b"x")
        assert (missing.status_code, missing.json()["field"]) == (400, "agent_id")
        await hub.http.post("/api/v1/tasks/t-19/claim", json={"agent_id": "tester-1"})
        assert (await hub.save("cp-4", b"x")).status_code == 409
        listed = (await hub.http.get("/api/v1/tasks/t-19/checkpoints")).json()["checkpoints"]
        assert [one["checkpoint_id"] for one in listed] == ["cp-1", "cp-2", "cp-3"]


async def test_a_full_disk_is_not_the_stores_trouble(tmp_path: Path) -> None:
    """507: a sender then tells the digest alone, and goes on."""
    (tmp_path / "checkpoints").write_text("a file where the folder should be")
    async with handy_hub(tmp_path) as hub:
        await hub.beat()
        assert (await hub.save("cp-1", b"x")).status_code == 507


# --- the way to the next life ------------------------------------------------------------------------------


async def test_a_crashed_agent_goes_on_from_its_newest_checkpoint_that_holds(tmp_path: Path) -> None:
    async with Peer() as peer:
        given = settings(respawn={"agents": "coder-*", "webhook": peer.url, "secret": "env:SECRET"})
        async with handy_hub(tmp_path, policy=POLICY, given=given) as hub:
            await three_saved(hub)
            broken(tmp_path, b"state 3")
            await hub.crash()
            await until(lambda: peer.requests)
            order = peer.requests[0].json
            assert (order["checkpoint_id"], order["attempt"]) == ("cp-2", 1)
            assert "everything up to checkpoint cp-2" in order["handoff"]
            assert "Nobody has read it back" not in order["handoff"]
            back = await hub.http.get(order["checkpoint_url"])
            assert back.content == b"state 2"
            lineage = hub.service.engine.beliefs.lineages["coder-7"]
            await until(lambda: not hub.service.hub.ledger.find("coder-7", lineage.order_id))
            seen = (await hub.http.get("/api/v1/tasks/t-19/recovery")).json()["recoveries"][0]
            assert (seen["phase"], seen["on_its_way"], seen["read_back"]) == ("starting", True, True)
            await hub.beat(incarnation=order["new_incarnation"])
            await until(lambda: lineage.phase is Phase.PROBATION)
        assert len(peer.requests) == 1


async def test_without_one_that_holds_it_begins_at_the_start_and_a_person_is_told(tmp_path: Path) -> None:
    async with starting(tmp_path) as (hub, peer):
        await three_saved(hub)
        for number in (1, 2, 3):
            broken(tmp_path, f"state {number}".encode())
        await hub.crash()
        await until(lambda: peer.requests)
        order = peer.requests[0].json
        assert (order["checkpoint_id"], order["checkpoint_url"]) == (None, None)
        alerts = (await hub.http.get("/api/v1/alerts")).json()["alerts"]
        assert any("No checkpoint of this task holds" in json.dumps(alert) for alert in alerts)


async def test_one_whose_content_was_never_here_is_taken_at_its_agents_word(tmp_path: Path) -> None:
    async with starting(tmp_path) as (hub, peer):
        await hub.beat()
        await hub.say(
            {"type": "checkpoint", "agent_id": "coder-7", "task_id": "t-19", "checkpoint_id": "git:abc"}
        )
        await hub.crash()
        await until(lambda: peer.requests)
        order = peer.requests[0].json
        assert (order["checkpoint_id"], order["checkpoint_url"]) == ("git:abc", None)
        assert "Nobody has read it back" in order["handoff"]


async def test_who_cannot_be_started_is_tried_again_by_the_engine_under_its_limits(tmp_path: Path) -> None:
    async with starting(tmp_path, Reply(400, b"no such image")) as (hub, peer):
        for number in range(9):  # Of a fleet of one, one a minute is acted on.
            await hub.beat(f"other-{number}")
        await hub.beat()
        await hub.crash()
        lineage = hub.service.engine.beliefs.lineages["coder-7"]
        await until(lambda: lineage.phase is Phase.REVIEW)
        seen = (await hub.http.get("/api/v1/tasks/t-19/recovery")).json()["recoveries"][0]
        assert (seen["needs_a_person"], seen["failures"]) == (True, 3)
    assert [request.json["attempt"] for request in peer.requests] == [1, 2, 3]
    assert len({request.json["new_incarnation"] for request in peer.requests}) == 3


async def test_a_person_has_a_task_recovered_once_however_often_they_ask(tmp_path: Path) -> None:
    policy = POLICY.with_changes({"respawn": {"per_task_max": 0}})
    async with starting(tmp_path, policy=policy) as (hub, peer):
        await hub.beat()
        recover = "/api/v1/tasks/t-19/recover"
        assert (await hub.http.post(recover)).status_code == 409
        assert (await hub.http.post("/api/v1/tasks/t-0/recover")).status_code == 404
        assert (await hub.http.get("/api/v1/tasks/t-0/recovery")).status_code == 404
        await hub.crash()
        assert not peer.requests
        answers = [await hub.http.post(recover, json={"agent_id": "coder-7"}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [202] * 3
        await until(lambda: peer.requests)
        assert (await hub.http.post(recover)).json()["recoveries"][0]["on_its_way"]
        await hub.beat(incarnation=peer.requests[0].json["new_incarnation"])
        assert (await hub.http.post(recover)).status_code == 409
    assert len(peer.requests) == 1


async def test_an_orchestrator_is_asked_with_everything_known_and_decides(tmp_path: Path) -> None:
    async with Peer() as peer:
        given = settings(escalation={"webhook": peer.url})
        async with handy_hub(tmp_path, policy=POLICY, given=given) as hub:
            await three_saved(hub)
            for number in range(3):
                done = {
                    "type": "tool_finished",
                    "agent_id": "coder-7",
                    "call_id": str(number),
                    "tool": "grep",
                }
                await hub.say({**done, "args": {"pattern": "x"}, "result": "nothing", "ok": True})
            asked = await hub.http.post("/api/v1/agents/coder-7/escalate", json={"reason": "looks odd"})
            assert asked.status_code == 202, asked.text
            await until(lambda: peer.requests)
            question = peer.requests[0].json
            assert question["agent"]["agent_id"] == "coder-7"
            assert question["checkpoint"]["checkpoint_id"] == "cp-3"
            assert [call["tool"] for call in question["last_tool_calls"]] == ["grep"] * 3
            assert len({call["args_digest"] for call in question["last_tool_calls"]}) == 1
            decided = await hub.http.post(question["decision_url"], json={"decision": "more_time"})
            assert decided.status_code == 202, decided.text


async def test_an_agent_that_does_not_end_by_itself_is_ended_and_started_by_those_who_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without word that it ended nobody may be started in its place, and its own side may be gone."""
    monkeypatch.setattr(executors, "FORCE_FOR", 0.0)
    async with Peer() as peer:
        given = settings(terminate={"webhook": f"{peer.url}/end"}, respawn={"webhook": f"{peer.url}/start"})
        async with handy_hub(tmp_path, policy=POLICY, given=given) as hub:
            for number in range(9):
                await hub.beat(f"other-{number}")
            await hub.beat()
            act = {"reason": "it hangs", "respawn": True}
            assert (await hub.http.post("/api/v1/agents/coder-7/terminate", json=act)).status_code == 202
            waiting = (await hub.http.get("/api/v1/agents/coder-7/orders")).json()["orders"]
            assert [order["type"] for order in waiting] == ["stop"]  # It is asked by its own way, too.
            await until(lambda: [request.path for request in peer.requests] == ["/end", "/start"])


# --- crashes -----------------------------------------------------------------------------------------------

AGENT = """
import os, time
with open("lives", "a") as lives:
    lives.write(f"{os.getpid()} {os.environ['LIFESIGNS_INCARNATION']}\\n")
time.sleep(300)
"""


class Nursery:
    """A state folder, an agent's program, and hubs one after the other over the same store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "agent.py").write_text(AGENT)
        self.given = settings(
            respawn={"command": f"{sys.executable} -S agent.py {{agent_id}}", "cwd": str(folder)}
        )

    def store(self) -> SqliteStore:
        return SqliteStore(str(self.folder / "hub.db"))

    def hub(self) -> Any:
        return handy_hub(self.folder, self.store(), POLICY, self.given)

    async def recovered(self) -> str:
        """The life that the next hub believes was started."""
        async with self.hub() as hub:
            lineage = hub.service.engine.beliefs.lineages["coder-7"]
            await until(lambda: self.lives)
            await until(lambda: not hub.service.hub.ledger.find("coder-7", lineage.order_id))
            assert lineage.phase is Phase.STARTING
            return str(lineage.new_incarnation)

    @property
    def lives(self) -> list[list[str]]:
        path = self.folder / "lives"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    made = Nursery(tmp_path)
    yield made
    for pid, _ in made.lives:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
        with suppress(psutil.NoSuchProcess):
            psutil.Process(int(pid)).wait(10)


class Crashing:
    """The hub crashes before or after this hand has done its work: what it says is never heard."""

    def __init__(self, executor: OrderExecutor, service: Service, *, after: bool) -> None:
        self._hand, self._service, self._after = executor, service, after
        self.crashed = False

    async def carry_out(self, order: Order) -> Signal | None:
        if self._after:
            await self._hand.carry_out(order)
        self._service.hub.abort()
        self.crashed = True
        return None

    async def close(self) -> None: ...


@pytest.mark.parametrize("after", [False, True])
async def test_a_hub_that_crashes_between_order_and_outcome_respawns_once(
    nursery: Nursery, after: bool
) -> None:
    """One life for one that ended, whatever crashes in between."""
    async with nursery.hub() as hub:
        (assignment,) = [one for one in hub.service.executors._assignments if one.kind is Respawn]
        crashing = Crashing(assignment.executor, hub.service, after=after)
        assignment.executor = crashing
        await hub.beat()
        await hub.service.http_receiver.store_reports(
            [CheckpointSaved(agent_id="coder-7", checkpoint_id="cp-1", task_id="t-19")]
        )
        hub.service.hub.hear([ProcessExited(agent_id="coder-7", incarnation="one", status=1)])
        await until(lambda: crashing.crashed)
    new_incarnation = await nursery.recovered()
    assert await nursery.recovered() == new_incarnation  # And once more: the outcome is known now.
    assert [life for _, life in nursery.lives] == [new_incarnation]


async def test_an_answer_that_got_lost_is_asked_for_with_the_same_key_by_the_next_hub(tmp_path: Path) -> None:
    """Its receiver started somebody and the hub never heard of it."""
    async with Peer() as peer:
        given = settings(respawn={"webhook": peer.url})
        path = str(tmp_path / "hub.db")
        async with handy_hub(tmp_path, SqliteStore(path), POLICY, given) as hub:
            peer.replies.append(Reply(hangs=True))
            await hub.beat()
            await hub.crash()
            await until(lambda: peer.requests)
            hub.service.hub.abort()
        async with handy_hub(tmp_path, SqliteStore(path), POLICY, given) as hub:
            await until(lambda: len(peer.requests) == 2)
            lineage = hub.service.engine.beliefs.lineages["coder-7"]
            await until(lambda: not hub.service.hub.ledger.find("coder-7", lineage.order_id))
    first, second = peer.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert {**first.json, "epoch": second.json["epoch"]} == second.json
    assert second.json["epoch"] > first.json["epoch"]
