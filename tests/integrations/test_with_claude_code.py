"""What only the real Claude Code shows: a model that does not answer, and subagents. `make integrations` runs this; the rest is in
`test_with_coders.py`."""

from __future__ import annotations

from pathlib import Path

from tests.integrations.coders import CLAUDE
from tests.integrations.scripted_model import Say, Step, Use, sh
from tests.integrations.watched_coder import IMPATIENT, STARTS_WITHIN, needs_coders, watched

pytestmark = needs_coders


def test_a_model_that_does_not_answer_is_a_finding_and_no_silence(tmp_path: Path) -> None:
    """Hooks are silent while the model thinks. The process lives, so the agent is not taken for dead."""
    with watched(CLAUDE, tmp_path, {"think": [sh("true"), Say("done", after=60)]}, IMPATIENT) as one:
        one.start("think")
        one.until_found("long_call", "A model call")
        assert one.hub.disconnected() == set()


def test_a_subagent_is_an_agent_of_its_own_with_a_parent(tmp_path: Path) -> None:
    task = Use("Task", {"description": "look", "prompt": "play sub", "subagent_type": "general-purpose"})
    scripts: dict[str, list[Step]] = {
        "parent": [task, Say("back")],
        "sub": [sh("echo one"), sh("timeout 7 tail -f /dev/null; true"), Say("found")],
    }
    with watched(CLAUDE, tmp_path, scripts) as one:
        process = one.start("parent")
        one.hub.until(lambda: len(one.agents()) == 2, "both are known", STARTS_WITHIN)
        child = one.agents()[1]["agent_id"]
        assert child.startswith(one.agent()["agent_id"] + "/general-purpose-")

        def beat() -> object:
            return one.agents()[1]["metrics"]["total_heartbeats"]

        one.hub.until(beat, "the subagent beats")
        said = one.hub.get(f"/api/v1/agents/{child.replace('/', '%2F')}/heartbeat")
        assert said["beat"]["metadata"]["parent"] == one.agent()["agent_id"]
        one.wait(process)
        one.hub.until(
            lambda: [agent["state"] for agent in one.agents()] == ["terminated", "terminated"], "both left"
        )
        assert one.findings() == []
