"""README: it finds the sick one quickly and says what is wrong; and it never harms a healthy agent."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.outside import Hub, serving

POLICY = {
    "profile": "swift",
    "policy": {
        "freeze": {"after": 2.0},
        "ladder": {"nudge_max": 1, "nudge_every": "2s", "escalation_timeout": "30s"},
    },
    "agents": {"spends": {"spending": {"cost_max": 5}}},
    "fleet": {"brake_count": 100},
}

AGENT = """
import asyncio, os, sys, time
import lifesigns

async def main(kind):
    async with lifesigns.Sender(kind, task=f"task of {kind}") as life:
        for number in range(100_000):
            if kind == "crashes" and number == 10:
                os._exit(9)
            if kind == "freezes" and number == 10:
                time.sleep(600)
            if kind == "spends":
                life.tokens(1000, 500, 1.0)
            with life.tool("search", {"q": "x" if kind == "loops" else number}) as call:
                if kind == "errs":
                    call.failed(f"no such file {number}")
                else:
                    call.result("nothing" if kind == "loops" else number)
            await asyncio.sleep(0.2)

asyncio.run(main(sys.argv[1]))
"""

SICK = {
    "crashes": {"silence", "exit"},
    "freezes": {"freeze"},
    "loops": {"looping"},
    "errs": {"errors"},
    "spends": {"spending"},
}


def found(hub: Hub, agent: str) -> set[str]:
    """What was ever found about an agent, by its history."""
    if hub.agent(agent) is None:
        return set()
    points = hub.get(f"/api/v1/agents/{agent}/history?for=1h")["points"]
    return {str(point["kind"]) for point in points if point["type"] == "finding"}


def test_each_illness_is_found_and_named_and_the_healthy_one_is_left_alone(tmp_path: Path) -> None:
    with serving(tmp_path, POLICY) as hub:
        for kind in ("works", *SICK):
            hub.python(
                f"{kind}.py", AGENT, kind
            )  # A file of its own: one that is written anew may be read while it is empty.
        waiting = dict(SICK)

        def all_are_found() -> bool:
            for kind, named in list(waiting.items()):
                if found(hub, kind) & named:
                    del waiting[kind]
            return not waiting

        hub.until(all_are_found, f"each of these is found as what it is: {waiting}")
        assert hub.health("works") == "healthy"
        assert found(hub, "works") == set()
