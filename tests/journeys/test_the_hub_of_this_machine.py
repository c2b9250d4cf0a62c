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
