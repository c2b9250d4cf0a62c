"""History of an agent: in the order of time, thinned out where it matters least."""

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.events import codec
from lifesigns.hub.principals import Role
from lifesigns.ports import Commit, Event, Sample
from lifesigns.views import History
from lifesigns.views.builders import history
from lifesigns.views.builders.history import POINTS_MAX
from lifesigns.views.history import FlipPoint, SamplePoint
from tests.web.hub import RunningHub, running_hub

START = 1_700_000_000.0


def flip(n: int, at: float) -> Event:
    data = {"agent_id": "a", "from": "healthy", "to": "stuck", "reason": "it stood still", "cause": None}
    return Event(n, at, "HEALTH_STATE_CHANGED", "a", json.dumps(data).encode())


def finding(n: int, at: float, *, open_: bool = True) -> Event:
    found = {"kind": "looping", "since": at, "severity": "stuck", "text": "grep x8", "numbers": {}}
    data = {"agent_id": "a", "finding": found} if open_ else {"agent_id": "a", "kind": "looping", "since": at}
    return Event(n, at, "FINDING_OPENED" if open_ else "FINDING_CLOSED", "a", json.dumps(data).encode())


def nudge(n: int, at: float) -> Event:
    data = {"agent_id": "a", "id": "o-1", "rung": "nudge", "stage": "ordered", "attempt": 1, "by": "ann"}
    return Event(n, at, "NUDGE_SENT", "a", json.dumps({**data, "message": "hello"}).encode())


def sample(at: float, **more: Any) -> Sample:
    return Sample("a", at, 4, 0.5, **more)


def view(changes: int = 0, findings: int = 0, samples: int = 0, points_max: int = 10) -> History:
    return history.history(
        "a",
        START,
        START + 10_000,
        changes=[flip(n, START + n) for n in range(changes)],
        findings=[finding(n, START + n) for n in range(findings)],
        samples=[sample(START + n * 60, load=n / 100, tokens=n) for n in range(samples)],
        points_max=points_max,
    )


def test_samples_are_put_together_before_anything_is_left_out() -> None:
    thin = view(changes=3, findings=2, samples=100)
    kinds = [type(point).__name__ for point in thin.points]
    assert len(kinds) <= 10
    assert (kinds.count("FlipPoint"), kinds.count("FindingPoint")) == (3, 2)
    samples = [point for point in thin.points if isinstance(point, SamplePoint)]
    assert sum(one.beats for one in samples) == 400
    assert samples[-1].token_count == 99
    assert samples[0].load == pytest.approx(sum(range(20)) / 20 / 100)
    assert not thin.complete


def test_the_oldest_findings_go_next_and_flips_stay_the_longest() -> None:
    thin = view(changes=8, findings=5, samples=5)
    kinds = [type(point).__name__ for point in thin.points]
    assert (kinds.count("FlipPoint"), kinds.count("FindingPoint"), kinds.count("SamplePoint")) == (8, 2, 0)
    many = view(changes=30, findings=5, samples=5)
    assert [point.event_id for point in many.points if isinstance(point, FlipPoint)] == list(range(20, 30))


def test_what_fits_is_complete() -> None:
    assert view(changes=2, findings=2, samples=6).complete
    assert len(view(changes=2, findings=2, samples=6).points) == 10
    assert not view(changes=2, findings=2, samples=7).complete
    assert view().points == ()


def told_at(point: dict[str, Any]) -> float:
    return datetime.fromisoformat(point["at"]).timestamp()


async def test_everything_is_told_in_the_order_of_time() -> None:
    store = MemoryStore()
    async with running_hub(store) as hub:
        now = hub.service.clock()
        kept = [
            flip(1, now - 4000),
            flip(2, now - 1000),
            finding(3, now - 900),
            nudge(4, now - 800),
            finding(5, now - 700, open_=False),
        ]
        await hub.keep(*kept)
        minute = now // 60 * 60
        hub.service.hub.committer.sample([sample(minute - 60 * n) for n in (30, 14, 1)])
        await hub.service.hub.committer.wait_until_stored()
        told = (await hub.get("/api/v1/agents/a/history", **{"for": "1h"})).json()
        assert sorted(point["type"] for point in told["points"]) == sorted(
            ["flip", "finding", "finding", "intervention", *["sample"] * 3]
        )
        assert all(one <= other for one, other in pairwise(map(told_at, told["points"])))
        assert told["complete"]
        (step,) = (point for point in told["points"] if point["type"] == "intervention")
        assert (step["rung"], step["by"], step["text"]) == ("nudge", "ann", "hello")
        longer = (await hub.get("/api/v1/agents/a/history", **{"for": "2h"})).json()
        assert [point["event_id"] for point in longer["points"] if point["type"] == "flip"] == [1, 2]
        early = {
            "from": datetime.fromtimestamp(now - 5000, UTC).isoformat().replace("+00:00", "Z"),
            "to": datetime.fromtimestamp(now - 3000, UTC).isoformat().replace("+00:00", "Z"),
        }
        past = (await hub.get("/api/v1/agents/a/history", **early)).json()
        assert [point["type"] for point in past["points"]] == ["flip"]


async def test_a_long_life_is_at_most_two_thousand_points() -> None:
    """And a flip of the first hour is among them."""
    store = MemoryStore()
    async with running_hub(store) as hub:
        now = hub.service.clock()
        page = Commit(
            hub.service.hub.committer.next_number(),
            events=[flip(1, now - 86000)],
            samples=[sample(now // 60 * 60 - 60 * n) for n in range(1, 1430)],
        )
        await store.commit(page)
        hub.service.hub._event_id = 1
        await store.commit(
            Commit(
                hub.service.hub.committer.next_number(),
                events=[finding(n + 2, now - 80000 + n) for n in range(1500)],
            )
        )
        hub.service.hub._event_id = 1501
        told = (await hub.get("/api/v1/agents/a/history", **{"for": "1d"})).json()
        assert len(told["points"]) <= POINTS_MAX
        assert any(one["type"] == "flip" for one in told["points"])
        assert sum(one["type"] == "finding" for one in told["points"]) == 1500
        assert not told["complete"]


async def test_who_was_never_heard_of_has_no_history(hub: RunningHub) -> None:
    assert (await hub.get("/api/v1/agents/nobody/history")).status_code == 404
    await hub.post("/api/v1/beats", {"agent_id": "a"})
    assert (await hub.get("/api/v1/agents/a/history")).status_code == 200


async def test_an_agent_reads_its_own_history_only(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", [{"agent_id": "a"}, {"agent_id": "b"}])
    async with hub.client(await hub.token_for(Role.AGENT, "a")) as own:
        assert (await own.get("/api/v1/agents/a/history")).status_code == 200
        assert (await own.get("/api/v1/agents/b/history")).status_code == 403


async def test_a_bad_period_names_its_field(hub: RunningHub) -> None:
    for query, field in (
        ("for=soon", "for"),
        ("for=0", "for"),
        ("for=1h&from=2026-01-01T00:00:00Z", "for"),
        ("from=2026-01-01T00:00:00", "from"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from"),
        ("to=yesterday", "to"),
    ):
        answer = await hub.http.get(f"/api/v1/agents/a/history?{query}")
        assert (answer.status_code, answer.json()["field"]) == (400, field), query


async def test_the_ends_of_the_calendar_are_no_accident(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", {"agent_id": "a"})
    for query in ("for=1e300h", "from=0001-01-01T00:00:00Z", "to=9999-12-31T23:59:59Z"):
        assert (await hub.http.get(f"/api/v1/agents/a/history?{query}")).status_code == 200, query


def test_what_cannot_be_read_is_counted_and_said_once_for_its_type(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "_said_unreadable", set())
    broken = [
        Event(n, START + n, "HEALTH_STATE_CHANGED", "a", b'{"to": "of another version"}') for n in (7, 8)
    ]
    for _ in range(2):
        read = history.history(
            "a", START, START + 99, changes=[*broken, flip(9, START + 9)], findings=[], samples=[]
        )
        assert [point.event_id for point in read.points if isinstance(point, FlipPoint)] == [9]
        assert read.unreadable == 2
    told = [record for record in caplog.records if getattr(record, "action", "") == "event_unreadable"]
    assert [record.getMessage()[:40] for record in told] == ["event 7 (HEALTH_STATE_CHANGED) cannot be"]


def test_numbers_are_what_the_detector_said() -> None:
    found = {"kind": "looping", "since": START, "severity": "stuck", "text": "x8"}
    data = {"agent_id": "a", "finding": {**found, "numbers": {"repeats": 8, "share": 1.0, "tool": "grep"}}}
    event = Event(1, START, "FINDING_OPENED", "a", json.dumps(data).encode())
    view = history.history("a", START, START + 9, changes=[], findings=[event], samples=[])
    assert b'"numbers":{"repeats":8,"share":1.0,"tool":"grep"}' in msgspec.json.encode(view)
