"""The real Claude Code, watched: what goes right, what goes wrong, and what reaches its model. `make integrations` runs this."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.integrations.claude import Claude, needs_claude, watched_claude
from tests.integrations.scripted_model import Refuse, Say, Step, Use, sh

pytestmark = needs_claude

HANG = "timeout 100 tail -f /dev/null"
"""Claude Code refuses to sleep."""

IMPATIENT = {"health_monitoring": {}, "agents": {"claude/*": {"stall": {"call_max": 3}}}}
"""A call may take three seconds: so that a hang is found while a test waits."""


def pid_of(claude: Claude) -> int:
    beat = claude.hub.get(f"/api/v1/agents/{claude.agent()['agent_id'].replace('/', '%2F')}/heartbeat")
    return int(beat["beat"]["pid"])


def test_a_healthy_run_of_twenty_calls_is_an_agent_without_a_finding(tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"echo line {n} > f{n}; cat f{n}") for n in range(20)), Say("done")]
    with watched_claude(tmp_path, {"work": steps}) as claude:
        assert '"result":"done"' in claude.run("work")
        agent = claude.agent()
        assert agent["agent_id"].startswith("claude/shop/")
        assert agent["state"] == "terminated"  # It said good-bye.
        assert agent["metrics"]["tool_call_count"] == 20
        assert agent["metrics"]["token_count"] == 21 * 1050
        assert claude.findings() == []
        assert claude.hub.disconnected() == set()


def test_the_same_failing_call_eight_times_is_a_loop_from_the_third_on(tmp_path: Path) -> None:
    with watched_claude(tmp_path, {"loop": [sh("cat /no/such/file")] * 8 + [Say("done")]}) as claude:
        claude.run("loop")
        loops = [text for kind, text in claude.findings() if kind == "looping"]
        assert loops[0].startswith("Bash failed 3 times in a row with the same arguments and the same error")
        assert any(text.startswith("Bash failed 5 times") for text in loops)


def test_a_nudge_reaches_the_model_and_is_seen(tmp_path: Path) -> None:
    """(b) and (g) at once: the hub's own nudge about the loop is read by the model, and reported delivered and seen."""
    with watched_claude(tmp_path, {"loop": [sh("cat /no/such/file")] * 8 + [Say("done")]}) as claude:
        claude.run("loop")
        assert claude.model.told("Note from the monitor (lifesigns): Bash failed 5 times in a row")
        stages = [one["data"]["stage"] for one in claude.hub.events("NUDGE_SENT", "INTERVENTION")]
        assert stages[:3] == ["ordered", "delivered", "seen"]


def test_a_tool_that_hangs_is_a_finding(tmp_path: Path) -> None:
    with watched_claude(tmp_path, {"hang": [sh(HANG), Say("done")]}, IMPATIENT) as claude:
        claude.start("hang")
        claude.hub.until(
            lambda: any(kind == "long_call" for kind, _ in claude.findings()), "the call is found to hang"
        )
        assert next(text for kind, text in claude.findings() if kind == "long_call").startswith("Bash")
        assert claude.hub.disconnected() == set()


def test_a_model_that_does_not_answer_is_a_finding_and_no_silence(tmp_path: Path) -> None:
    """Hooks are silent while the model thinks. The process lives, so the agent is not taken for dead."""
    with watched_claude(tmp_path, {"think": [sh("true"), Say("done", after=60)]}, IMPATIENT) as claude:
        claude.start("think")
        claude.hub.until(
            lambda: any(kind == "long_call" for kind, _ in claude.findings()),
            "the model call is found to hang",
        )
        assert next(text for kind, text in claude.findings() if kind == "long_call").startswith(
            "A model call"
        )
        assert claude.hub.disconnected() == set()


def test_a_killed_process_is_a_crash_within_seconds(tmp_path: Path) -> None:
    with watched_claude(tmp_path, {"hang": [sh(HANG), Say("done")]}) as claude:
        process = claude.start("hang")
        claude.hub.until(
            lambda: claude.agents() and claude.agent()["metrics"]["total_heartbeats"], "it beats"
        )
        assert pid_of(claude) == process.pid
        os.kill(process.pid, signal.SIGKILL)
        claude.hub.until(lambda: claude.agent()["state"] == "disconnected", "it is found dead", within=15)
        agent = claude.agent()
        assert agent["cause"] == "crash"
        assert f"process {process.pid}" in json.dumps(agent["findings"])


def test_a_question_for_permission_is_waiting_for_a_human(tmp_path: Path) -> None:
    with watched_claude(tmp_path, {"ask": [sh("touch /tmp/lifesigns-outside"), Say("done")]}) as claude:
        terminal = claude.at_a_terminal("ask")
        claude.hub.until(
            lambda: claude.agents() and claude.agent()["doing"] == "waiting_for_human",
            "it waits for its user",
        )
        needs = claude.hub.events("NEEDS_HUMAN")
        assert "touch /tmp/lifesigns-outside" in json.dumps(needs), (needs, terminal.screen())
        terminal.press("Escape")
        claude.hub.until(lambda: claude.agent()["doing"] != "waiting_for_human", "it was answered")


def test_a_rate_limit_parks_the_agent(tmp_path: Path) -> None:
    with watched_claude(tmp_path, {"limit": [Refuse(429, "rate_limit_error")]}) as claude:
        terminal = claude.at_a_terminal("limit")
        claude.hub.until(
            lambda: claude.agents() and claude.agent()["doing"] == "rate_limited", "it is parked"
        )
        assert claude.agent()["state"] == "healthy", terminal.screen()
        assert claude.findings() == []


def test_a_stop_ends_the_run(tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"timeout 0.3 tail -f /dev/null; echo {n}") for n in range(200)), Say("done")]
    with watched_claude(tmp_path, {"long": steps}) as claude:
        process = claude.start("long")
        claude.hub.until(
            lambda: claude.agents() and claude.agent()["metrics"]["tool_call_count"] >= 3, "it works"
        )
        claude.hub.cli("terminate", claude.agent()["agent_id"], "--reason", "enough", "--yes")
        out, _ = process.communicate(timeout=60)
        assert json.loads(out)["is_error"] is False
        claude.hub.until(lambda: claude.agent()["state"] == "terminated", "it is stopped")
        assert claude.agent()["metrics"]["tool_call_count"] < 60
        stages = [one["data"]["stage"] for one in claude.hub.events("INTERVENTION", "AGENT_TERMINATED")]
        assert "done" in stages or claude.hub.events("AGENT_TERMINATED")


def test_a_breaker_that_a_person_opened_denies_the_call(tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"timeout 0.3 tail -f /dev/null; echo {n}") for n in range(60)), Say("done")]
    with watched_claude(tmp_path, {"long": steps}) as claude:
        claude.start("long")
        claude.hub.until(lambda: claude.hub.get("/api/v1/breakers")["breakers"], "its breaker is known")
        claude.hub.post("/api/v1/breakers/Bash/open", {"reason": "no more of this"})
        claude.hub.until(lambda: claude.model.told("The breaker 'Bash' is open"), "the model is told")


def test_a_subagent_is_an_agent_of_its_own_with_a_parent(tmp_path: Path) -> None:
    task = Use("Task", {"description": "look", "prompt": "play sub", "subagent_type": "general-purpose"})
    scripts: dict[str, list[Step]] = {
        "parent": [task, Say("back")],
        "sub": [sh("echo one"), sh("timeout 7 tail -f /dev/null; true"), Say("found")],
    }
    with watched_claude(tmp_path, scripts) as claude:
        process = claude.start("parent")
        claude.hub.until(lambda: len(claude.agents()) == 2, "both are known")
        child = claude.agents()[1]["agent_id"]
        assert child.startswith(claude.agent()["agent_id"] + "/general-purpose-")

        def beat() -> object:
            return claude.agents()[1]["metrics"]["total_heartbeats"]

        claude.hub.until(beat, "the subagent beats")
        said = claude.hub.get(f"/api/v1/agents/{child.replace('/', '%2F')}/heartbeat")
        assert said["beat"]["metadata"]["parent"] == claude.agent()["agent_id"]
        process.communicate(timeout=60)
        assert [one["state"] for one in claude.agents()] == ["terminated", "terminated"]
        assert claude.findings() == []
