"""Hubs that judge together, attacked from outside: what one hub promises for its fleet holds for a fleet in slots."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Json, Refused, serving
from tests.servers.postgres import PostgresServer

CREW = [f"a{n}" for n in range(40)]
"""At least four in each slot."""
TOGETHER: Json = {"hubs": {"judge": "all"}}


@pytest.fixture(scope="module")
def all_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """One process that judges every slot: whatever is divided, is divided here, too."""
    with PostgresServer() as server:
        folder: Path = tmp_path_factory.mktemp("all-slots")
        with serving(folder, TOGETHER, env={"LIFESIGNS_STORE": server.url}) as hub:
            hub.until(lambda: hub.get("/api/v1/fleet")["missing"] == [], "it judges all slots")
            hub.post("/api/v1/beats", [{"agent_id": name, "task_id": f"of-{name}"} for name in CREW])
            hub.stop()  # So that the first agent of a slot is the first of everything in it.
            hub.start()
            hub.until(lambda: hub.get("/api/v1/fleet")["missing"] == [], "it judges all slots again")
            yield hub


def all_pages(hub: Hub, path: str, name: str, limit: int) -> list[Json]:
    shown: list[Json] = []
    cursor = ""
    while True:
        page = hub.get(f"{path}?limit={limit}{cursor}")
        assert len(page[name]) <= limit
        shown += page[name]
        if page["cursor"] is None:
            return shown
        cursor = f"&cursor={page['cursor']}"


@pytest.mark.parametrize("limit", [1, 3, 7, 39, 40, 100])
def test_pages_show_each_agent_and_each_task_once(all_slots: Hub, limit: int) -> None:
    agents = all_pages(all_slots, "/api/v1/agents", "agents", limit)
    assert sorted(one["agent_id"] for one in agents) == sorted(CREW)
    tasks = all_pages(all_slots, "/api/v1/tasks", "tasks", limit)
    assert sorted(one["task_id"] for one in tasks) == sorted(f"of-{name}" for name in CREW)


def test_a_delivery_for_several_slots_says_what_was_rejected_in_each(all_slots: Hub) -> None:
    token = all_slots.post("/api/v1/tokens", {"role": "agent", "name": "some", "agents": "some-*"})["token"]

    def said(*names: str) -> Json:
        body = [{"agent_id": name} for name in names]
        return all_slots.request("POST", "/api/v1/beats", body, token=token)

    mixed = said("some-1", "a1", "some-2", "a2", "a3")
    assert (mixed["accepted"], [one["index"] for one in mixed["rejected"]]) == (2, [1, 3, 4])
    with pytest.raises(Refused) as refused:
        said("a1", "a2", "a3")
    assert refused.value.status == 400
    assert "so are 2 more: nothing was accepted" in refused.value.body["detail"]
    for name in ("some-1", "some-2"):
        all_slots.post("/api/v1/signals", {"type": "left", "agent_id": name})


def test_an_escalation_is_decided_wherever_its_agent_is(all_slots: Hub) -> None:
    ids = [all_slots.post(f"/api/v1/agents/{name}/escalate", {"reason": "?"})["id"] for name in CREW[:16]]
    assert len({*ids}) == 16
    newest = all_slots.get("/api/v1/interventions?limit=5")["interventions"]
    assert [one["id"] for one in newest] == ids[:-6:-1]
    for one in ids:
        decided = all_slots.post(f"/api/v1/escalations/{one}/decision", {"decision": "ignore"})
        assert decided["id"] == one
        assert decided["stages"][-1]["text"].startswith("ignore")


def test_the_probe_of_an_agent_finds_it(all_slots: Hub) -> None:
    assert {all_slots.get(f"/healthz/{name}")["status"] for name in CREW} == {"ok"}


def test_breakers_of_one_name_are_turned_in_all_slots(all_slots: Hub) -> None:
    said = [{"type": "breaker", "agent_id": name, "name": "web", "state": "open"} for name in CREW]
    all_slots.post("/api/v1/signals", said)
    assert len(all_pages(all_slots, "/api/v1/breakers/web", "breakers", 9)) == len(CREW)
    turned = all_slots.post("/api/v1/breakers/web/reset")["interventions"]
    assert sorted(one["agent_id"] for one in turned) == sorted(CREW)
    with pytest.raises(Refused) as refused:
        all_slots.get("/api/v1/breakers/nothing")
    assert refused.value.status == 404


def test_a_silence_is_one_of_all_slots(all_slots: Hub) -> None:
    asked = {"agents": ["a*"], "for": 600, "reason": "a test"}
    made = all_slots.post("/api/v1/silences", asked)
    again = all_slots.post("/api/v1/silences", asked)
    shown = all_slots.get("/api/v1/silences")["silences"]
    assert sorted(one["id"] for one in shown) == sorted([made["id"], again["id"]])
    for one in shown:
        all_slots.request("DELETE", f"/api/v1/silences/{one['id']}")
    assert all_slots.get("/api/v1/silences")["silences"] == []


@pytest.mark.parametrize(
    "call",
    [
        ("POST", "/api/v1/tasks/t/claim"),
        ("POST", "/api/v1/tasks/t/release"),
        ("POST", "/api/v1/tasks/t/recover"),
        ("GET", "/api/v1/agents/a1/messages"),
        ("POST", "/api/v1/messages"),
        ("GET", "/api/v1/audit"),
        ("POST", "/api/v1/tasks/t/checkpoints"),
        ("POST", "/mcp"),
    ],
)
def test_what_needs_one_hub_that_judges_all_is_refused(all_slots: Hub, call: tuple[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        all_slots.request(*call)
    assert refused.value.status == 501


def test_wrong_and_half_questions_are_answered_as_one_hub_answers_them(all_slots: Hub) -> None:
    for wrong in (
        "agents?cursor=x",
        "agents?limit=0",
        "events/list?after=-1",
        "tasks?limit=x",
        "events/list?after=x",
    ):
        with pytest.raises(Refused) as refused:
            all_slots.get(f"/api/v1/{wrong}")
        assert refused.value.status == 400, wrong
    for path in ("/api/v1/agents", "/api/v1/fleet", "/readyz", "/healthz", "/api/v1/agents/a1"):
        assert all_slots.request("HEAD", path) is None


@pytest.mark.timeout(180)
def test_a_hub_that_judges_alone_and_hubs_that_judge_together_share_no_database(tmp_path: Path) -> None:
    with PostgresServer() as server:
        (tmp_path / "alone" / "state").mkdir(parents=True)
        (tmp_path / "many" / "state").mkdir(parents=True)
        env = {"LIFESIGNS_STORE": server.url}
        with serving(tmp_path / "alone", {}, env=env) as alone:
            alone.post("/api/v1/beats", {"agent_id": "a"})
            alone.until(lambda: alone.health("a") == "healthy", "it is well")
            for key in ("tokens.key", "audit.key"):
                shutil.copy(tmp_path / "alone" / "state" / key, tmp_path / "many" / "state")
            many = Hub(tmp_path / "many", {"hubs": {"judge": "all"}}, env=env)
            many.launch()
            assert many.process is not None
            assert many.process.wait(60) != 0
            assert "one of its own" in many.log.read_text()
            assert alone.health("a") == "healthy", "and the other one judges on"
