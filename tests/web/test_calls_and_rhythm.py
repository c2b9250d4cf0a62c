"""An agent from close by: its last calls with their repeats, and the rhythm of its beats."""

from typing import Any

from lifesigns.hub.principals import Role
from tests.web.hub import RunningHub


def call(n: int, tool: str, args: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_finished", "agent_id": "a", "call_id": f"c{n}", "tool": tool, "args": args, **more}


async def test_repeats_are_marked_by_tool_arguments_and_outcome(hub: RunningHub) -> None:
    """Another argument, another result or an error is another call."""
    said = [
        call(1, "grep", {"for": "x"}, result="3 hits"),
        call(2, "grep", {"for": "x"}, result="3 hits"),
        call(3, "grep", {"for": "y"}, result="3 hits"),
        call(4, "grep", {"for": "x"}, result="3 hits"),
        call(5, "grep", {"for": "x"}, ok=False, error="no such file"),
    ]
    await hub.post("/api/v1/signals", said)
    call_history = (await hub.get("/api/v1/agents/a/calls")).json()
    assert [(one["times"], one["in_a_row"]) for one in call_history["calls"]] == [
        (3, 1),
        (3, 2),
        (1, 1),
        (3, 1),
        (1, 1),
    ]
    assert [one["failed"] for one in call_history["calls"]] == [False, False, False, False, True]
    assert {one["tool"] for one in call_history["calls"]} == {"grep"}
    assert call_history["tool_call_count"] == 5
    assert "3 hits" not in str(call_history)


async def test_calls_that_cannot_be_compared_are_there_and_like_no_other(hub: RunningHub) -> None:
    plain = {"type": "tool_finished", "agent_id": "a", "call_id": "c", "tool": "think"}
    await hub.post("/api/v1/signals", [plain, plain])
    calls = (await hub.get("/api/v1/agents/a/calls")).json()["calls"]
    assert [(one["tool"], one["times"], one["in_a_row"]) for one in calls] == [(None, 1, 1)] * 2


async def test_a_call_that_has_begun_is_open_until_it_ends(hub: RunningHub) -> None:
    begun = {"type": "tool_started", "agent_id": "a", "call_id": "c1", "tool": "build", "bound_s": 60}
    await hub.post("/api/v1/signals", begun)
    (one,) = (await hub.get("/api/v1/agents/a/calls")).json()["open"]
    assert one["what"] == "build"
    await hub.post("/api/v1/signals", call(1, "build", "all", result="ok"))
    assert (await hub.get("/api/v1/agents/a/calls")).json()["open"] == []


async def test_the_rhythm_says_when_the_next_beat_should_come(hub: RunningHub) -> None:
    for seq in range(3):
        await hub.post("/api/v1/beats", {"agent_id": "a", "incarnation": "i", "seq": seq})
    rhythm = (await hub.get("/api/v1/agents/a/rhythm")).json()
    assert (rhythm["beats"], rhythm["lost"], rhythm["asked"]) == (3, 0, 0)
    assert rhythm["interval_s"] > 0
    assert rhythm["suspect_after_s"] > 0
    assert rhythm["last_at"] < rhythm["expected_at"]


async def test_the_rhythm_is_the_one_its_beats_have(hub: RunningHub) -> None:
    """Many times as often as expected teaches the engine nothing, for it may be a backlog; it is shown all the same."""
    await hub.post(
        "/api/v1/signals", {"type": "registered", "agent_id": "a", "policy": {"silence": {"interval": 60}}}
    )
    for seq in range(10):
        await hub.post("/api/v1/beats", {"agent_id": "a", "incarnation": "i", "seq": seq})
    assert (await hub.get("/api/v1/agents/a/rhythm")).json()["interval_s"] < 5


async def test_who_never_beat_has_no_rhythm_yet(hub: RunningHub) -> None:
    """But its policy says what is expected of it."""
    await hub.post("/api/v1/signals", {"type": "registered", "agent_id": "a"})
    rhythm = (await hub.get("/api/v1/agents/a/rhythm")).json()
    assert (rhythm["last_at"], rhythm["expected_at"], rhythm["spread_s"]) == (None, None, None)
    assert rhythm["interval_s"] == 2.0
    assert (await hub.get("/api/v1/agents/a/calls")).json()["calls"] == []


async def test_an_agent_looks_closely_at_itself_only(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", [{"agent_id": "a"}, {"agent_id": "b"}])
    async with hub.client(await hub.token_for(Role.AGENT, "a")) as own:
        for what in ("calls", "rhythm"):
            assert (await own.get(f"/api/v1/agents/a/{what}")).status_code == 200
            assert (await own.get(f"/api/v1/agents/b/{what}")).status_code == 403
    assert (await hub.get("/api/v1/agents/nobody/rhythm")).status_code == 404


async def test_errors_are_counted_however_they_are_told(hub: RunningHub) -> None:
    """One by one, or as a total in a beat, which has the others in it; a new task does not make them undone."""
    await hub.post("/api/v1/signals", [call(n, "grep", n, ok=False, error="no") for n in range(2)])
    await hub.post(
        "/api/v1/signals", {"type": "error", "agent_id": "a", "message": "no", "recoverable": True}
    )
    assert (await hub.get("/api/v1/agents/a")).json()["metrics"]["error_count"] == 3
    await hub.post("/api/v1/beats", {"agent_id": "a", "task_id": "t-2", "error_count": 2})
    assert (await hub.get("/api/v1/agents/a")).json()["metrics"]["error_count"] == 3
    await hub.post("/api/v1/beats", {"agent_id": "a", "task_id": "t-2", "error_count": 7})
    assert (await hub.get("/api/v1/agents/a")).json()["metrics"]["error_count"] == 7


async def paused(hub: RunningHub) -> tuple[bool, str | None]:
    agent = (await hub.get("/api/v1/agents/a")).json()
    return agent["paused"], agent["paused_until"]


async def test_a_pause_without_end_is_seen(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", {"agent_id": "a"})
    await hub.post("/api/v1/agents/a/pause")
    assert await paused(hub) == (True, None)
    await hub.post("/api/v1/agents/a/resume")
    assert await paused(hub) == (False, None)
