"""One hub, found by all who run on its machine, by its state folder; and nobody who wants to stay alone."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.journeys.outside import Hub, serving

QUIET = (sys.executable, "-S", "-E", "-c", "import time; time.sleep(60)")
AGENT = """
import time, lifesigns
with lifesigns.Sender("speaks"):
    time.sleep(60)
"""


def known(hub: Hub) -> set[str]:
    return {agent["agent_id"] for agent in hub.get("/api/v1/agents")["agents"]}


def test_a_supervised_program_and_a_sender_find_it_without_being_told(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        hub.started("lifesigns", "run", "--id", "watched", "--", *QUIET, LIFESIGNS_HUB="", LIFESIGNS_TOKEN="")
        hub.python("agent.py", AGENT, LIFESIGNS_HUB="", LIFESIGNS_TOKEN="")
        hub.until(lambda: known(hub) >= {"watched", "speaks"}, "both report")


def test_who_wants_to_stay_alone_does_and_so_does_the_program_in_it(tmp_path: Path) -> None:
    """The last one reports, so the others had the time to."""
    with serving(tmp_path) as hub:
        (tmp_path / "inside.py").write_text(AGENT)
        inside = (sys.executable, str(tmp_path / "inside.py"))
        alone = hub.started("lifesigns", "run", "--hub", "none", "--id", "alone", "--", *inside)
        quiet = hub.python("agent.py", AGENT.replace("speaks", "mute"), LIFESIGNS_HUB="none")
        hub.started("lifesigns", "run", "--id", "watched", "--", *QUIET)
        hub.until(lambda: "watched" in known(hub), "the last one reports")
        assert known(hub) == {"watched"}
        assert hub.output(alone) == hub.output(quiet) == ""


def test_a_hub_that_is_gone_is_not_missed(tmp_path: Path) -> None:
    """Its address is still there. The program runs as it would, watched by nobody but its supervisor, and nothing is said."""
    with serving(tmp_path) as hub:
        hub.kill()
        assert (hub.state / "hub.url").exists()
        done = hub.cli(
            *("run", "--", sys.executable, "-c", "print('done')"), LIFESIGNS_HUB="", LIFESIGNS_TOKEN=""
        )
        assert (done.stdout, done.stderr) == ("done\n", "")


WATCHED = """
import asyncio, sys, time
import lifesigns

async def works():
    while True:
        await asyncio.sleep(0.05)

async def main():
    with lifesigns.Monitor(**eval(sys.argv[1])) as monitor:
        life = monitor.watch(asyncio.create_task(works()), "inside")
        monitor.watch(asyncio.create_task(works()))
        with lifesigns.Sender("both") if sys.argv[2:] else monitor as sender:
            if sys.argv[2:]:
                monitor.watch(asyncio.create_task(works()), "both")
            life.progress(note="half")
            with life.tool("grep", {"q": "x"}) as call:
                call.result("y")
            print("ready", getattr(sender, "incarnation", ""), flush=True)
            await asyncio.sleep(300)

asyncio.run(main())
"""


def test_the_agents_of_a_monitor_are_seen_at_the_hub(tmp_path: Path) -> None:
    """With what they report; and a chosen name is the id, while any other says where it is. When their process is gone,
    they are too."""
    with serving(tmp_path, {"profile": "swift"}) as hub:
        process = hub.python("watched.py", WATCHED, "{}", LIFESIGNS_HUB="", LIFESIGNS_TOKEN="")
        hub.until(lambda: len(known(hub)) == 2, "both are seen")
        other = next(name for name in known(hub) if name != "inside")
        assert other.startswith("Task-")
        assert other.endswith(f":{process.pid}")
        hub.until(lambda: hub.get("/api/v1/agents/inside/calls")["calls"], "its call is seen")
        assert hub.agent("inside")["state"] == "healthy"  # type: ignore[index]
        process.kill()
        hub.until(lambda: hub.get("/api/v1/agents/inside")["state"] == "disconnected", "its end is seen")
        assert hub.events("NUDGE_SENT", "INTERVENTION", "AGENT_TERMINATED") == []


def test_a_monitor_that_wants_to_stay_alone_does(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        alone = hub.python("watched.py", WATCHED, "{'hub': 'none'}")
        hub.until(lambda: "ready" in hub.output(alone), "it watches")
        hub.python("agent.py", AGENT)
        hub.until(lambda: "speaks" in known(hub), "another one reports")
        assert known(hub) == {"speaks"}


def test_an_agent_that_speaks_for_itself_is_one_agent(tmp_path: Path) -> None:
    """A sender and a monitor in one process, of one name: its sender's life is the one that counts."""
    with serving(tmp_path) as hub:
        process = hub.python("watched.py", WATCHED, "{}", "both")
        hub.until(lambda: known(hub) >= {"inside", "both"}, "they report")
        hub.until(lambda: hub.get("/api/v1/agents/both/heartbeat")["beat"]["seq"] >= 3, "it goes on")
        life = hub.output(process).split()[1]
        both = hub.get("/api/v1/agents/both")
        assert (both["incarnation"], both["state"], both["findings"]) == (life, "healthy", [])


def test_a_frozen_loop_is_frozen_at_the_hub_too(tmp_path: Path) -> None:
    freezes = WATCHED.replace("await asyncio.sleep(300)", "time.sleep(300)")
    with serving(tmp_path, {"policy": {"freeze": {"after": "2s"}}}) as hub:
        hub.python("watched.py", freezes, "{'profile': 'swift'}")
        hub.until(lambda: (hub.agent("inside") or {}).get("cause") == "freeze", "it is frozen")
