"""The real Claude Code, Codex, Gemini CLI, Qwen Code, Copilot CLI and opencode, watched: what goes right, what goes wrong, and what
reaches the model. `make integrations` runs this."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from lifesigns.integrations.hooks.places import PLACES
from tests.integrations.coders import CODERS, Coder
from tests.integrations.scripted_model import Refuse, Say, Step, Use, ask_sh, sh
from tests.integrations.watched_coder import (
    HANG,
    IMPATIENT,
    STARTS_WITHIN,
    Watched,
    beside_a_hub,
    needs_coders,
    watched,
)
from tests.journeys.outside import environment
from tests.servers.forked import completed

pytestmark = needs_coders


@pytest.fixture(params=list(CODERS))
def coder(request: pytest.FixtureRequest) -> Coder:
    one = CODERS[request.param]
    if not one.program.exists():
        pytest.skip(f"{one.name} is not installed: make integrations")
    return one


def loop(times: int) -> dict[str, list[Step]]:
    thinks = 0.3  # Seconds: the hub stores its order before it gives it.
    return {"loop": [*[sh("cat no-such-file", after=thinks)] * times, Say("done")]}


LONG = 200
"""Calls of a run that does not end before somebody has done something about it, however busy the machine is."""


def long() -> dict[str, list[Step]]:
    return {"long": [*(sh(f"timeout 0.3 tail -f /dev/null; echo {n}") for n in range(LONG)), Say("done")]}


def test_a_healthy_run_of_twenty_calls_is_an_agent_without_a_finding(coder: Coder, tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"echo line {n} > f{n}; cat f{n}") for n in range(20)), Say("done")]
    with watched(coder, tmp_path, {"work": steps}) as one:
        out = one.run("work")
        assert "done" in out
        one.hub.until(lambda: one.agent()["state"] == "terminated", "it said good-bye")
        agent = one.agent()
        assert agent["agent_id"].startswith(f"{coder.family}/shop/")
        assert agent["metrics"]["tool_call_count"] == 20
        assert coder.tokens <= agent["metrics"]["token_count"] <= 21 * 1050
        assert agent["metrics"]["error_count"] == 0
        assert one.findings() == []
        assert one.hub.disconnected() == set()


def test_hooks_in_the_settings_of_a_project_make_its_sessions_agents(coder: Coder, tmp_path: Path) -> None:
    """The file may be committed: nothing of anybody is in it."""
    steps: list[Step] = [*(sh(f"echo line {n}") for n in range(3)), Say("done")]
    with beside_a_hub(Watched, coder, tmp_path, {"work": steps}) as one:
        path = f"{coder.program.parent}{os.pathsep}{os.environ['PATH']}"
        home = {**one.hub.environ, "HOME": str(one.home), "PATH": path}
        install = ("hooks", "install", coder.name, "--project")
        done = completed(*install, cwd=one.project, env=environment(**home), timeout=STARTS_WITHIN)
        assert "are agents" in done.stdout, done.stderr
        assert str(tmp_path) not in (one.project / PLACES[coder.name].project).read_text()
        one.further["LIFESIGNS_STATE"] = one.hub.environ["LIFESIGNS_STATE"]
        one.run("work")
        one.hub.until(lambda: one.agents() and one.agent()["state"] == "terminated", "it came and left")
        assert one.agent()["metrics"]["tool_call_count"] == 3


def test_a_commit_is_a_checkpoint_if_that_is_wanted(coder: Coder, tmp_path: Path) -> None:
    """Seen while it works on: a session at rest owes none, and shows none."""
    commit = "git -c user.name=me -c user.email=me@example.com commit -m Begin"
    begin = sh("git init -q . && echo one > notes && git add notes && git status")
    steps: list[Step] = [begin, sh(commit), sh(HANG), Say("done")]
    with watched(coder, tmp_path, {"commit": steps}, {"hooks": {"commits_are_checkpoints": True}}) as one:
        one.start("commit")
        one.until_it_works(2)
        one.hub.until(lambda: one.agent()["last_checkpoint"] is not None, "the commit is a checkpoint")


def test_the_same_failing_call_over_and_over_is_a_loop_and_the_model_is_told(
    coder: Coder, tmp_path: Path
) -> None:
    """Found from the third call on, and the model reads of it at the fifth; where failures are not told, from the fourth and the eighth."""
    first, second = (3, 5) if coder.failures_told else (4, 8)
    with watched(coder, tmp_path, loop(second + 4)) as one:
        one.run("loop")
        one.hub.until(lambda: one.findings("looping"), "the loop is found")
        loops = one.findings("looping")
        assert f"{first} times" in loops[0]
        assert loops[0].startswith(f"{coder.shell} failed") == coder.failures_told
        if coder.name == "qwen":  # It ends such a run by itself, at the fifth call.
            # Told as it happens: soon its process ends, and the agent says that instead.
            one.hub.until(lambda: "loop_detected" in str(one.hub.events("NEEDS_HUMAN")), "people are told")
            assert one.agent()["metrics"]["tool_call_count"] == 4  # All in one life.
            return
        one.hub.until(
            lambda: any(f"{second} times" in text for text in one.findings("looping")), "it is found again"
        )
        assert one.model.told("Note from the monitor (lifesigns): ")
        assert one.model.told(f"{second} times")

        def stages() -> list[str]:
            return [event["data"]["stage"] for event in one.hub.events("NUDGE_SENT", "INTERVENTION")]

        one.hub.until(lambda: "seen" in stages(), "it is known to be seen")
        assert stages()[:3] == ["ordered", "delivered", "seen"]


def test_a_nudge_of_a_person_reaches_the_model_and_is_seen(coder: Coder, tmp_path: Path) -> None:
    with watched(coder, tmp_path, long()) as one:
        one.start("long")
        one.until_it_works(calls=2)
        one.hub.cli("nudge", one.agent()["agent_id"], "look at the tests first")
        one.hub.until(lambda: one.model.told("look at the tests first"), "the model is told", STARTS_WITHIN)
        one.hub.until(
            lambda: "seen" in [event["data"]["stage"] for event in one.hub.events("INTERVENTION")],
            "it is known to be seen",
        )


def test_a_tool_that_hangs_is_a_finding(coder: Coder, tmp_path: Path) -> None:
    with watched(coder, tmp_path, {"hang": [sh(HANG), Say("done")]}, IMPATIENT) as one:
        one.start("hang")
        one.until_found("long_call", coder.shell)
        assert one.hub.disconnected() == set()


def test_a_killed_process_is_a_crash_within_seconds(coder: Coder, tmp_path: Path) -> None:
    with watched(coder, tmp_path, {"hang": [sh(HANG), Say("done")]}) as one:
        process = one.start("hang")
        one.hub.until(
            lambda: one.model.requests and one.agents() and one.agent()["metrics"]["total_heartbeats"],
            "it beats, and asks its model",
            within=STARTS_WITHIN,
        )
        assert os.getpgid(one.pid()) == process.pid
        os.kill(one.pid(), signal.SIGKILL)
        one.hub.until(lambda: one.agent()["state"] == "disconnected", "it is found dead", within=15)
        assert one.agent()["cause"] == "crash"


def test_a_question_for_permission_is_waiting_for_a_human(coder: Coder, tmp_path: Path) -> None:
    with watched(coder, tmp_path, {"ask": [ask_sh("touch /tmp/lifesigns-outside"), Say("done")]}) as one:
        if coder.name == "opencode":
            config = one.home / ".config/opencode/opencode.json"
            config.write_text(config.read_text().replace('"bash": "allow"', '"bash": "ask"'))
        terminal = one.at_a_terminal("ask")
        one.until_it_does("waiting_for_human")
        assert "touch /tmp/lifesigns-outside" in one.agent()["doing_note"], terminal.screen()

        def answered() -> bool:
            terminal.press("Enter")  # "Yes" is the first answer of each.
            return one.doing() != "waiting_for_human"

        one.hub.until(answered, "it was answered")


def test_a_rate_limit_parks_the_agent(coder: Coder, tmp_path: Path) -> None:
    refuses = Refuse(429, "rate_limit_error", again=coder.goes_on_alone)
    steps: list[Step] = [sh("true"), refuses] if coder.goes_on_alone else [refuses]
    with watched(coder, tmp_path, {"limit": steps}) as one:
        start = one.start if coder.goes_on_alone else one.at_a_terminal
        start("limit")
        one.until_it_does("rate_limited")
        assert one.agent()["state"] == "healthy"
        assert one.findings() == []


def test_a_stop_ends_the_run(coder: Coder, tmp_path: Path) -> None:
    with watched(coder, tmp_path, long()) as one:
        process = one.start("long")
        one.until_it_works(calls=3)
        one.hub.cli("terminate", one.agent()["agent_id"], "--reason", "enough", "--yes")
        out = one.wait(process)
        one.hub.until(lambda: one.agent()["state"] == "terminated", "it is stopped")
        assert len(one.model.requests) < LONG, out
        assert one.hub.disconnected() == set()


def test_a_breaker_that_a_person_opened_denies_the_call(coder: Coder, tmp_path: Path) -> None:
    with watched(coder, tmp_path, long()) as one:
        one.start("long")
        one.until_it_works(calls=1)
        one.hub.until(lambda: one.hub.get("/api/v1/breakers")["breakers"], "its breaker is known")
        one.hub.post(f"/api/v1/breakers/{coder.shell}/open", {"reason": "no more of this"})
        said = f"The breaker '{coder.shell}' is open"
        one.hub.until(lambda: one.model.told(said), "the model is told", STARTS_WITHIN)


def _given(tool: str, kind: str) -> list[Step]:
    """A task for a subagent of this kind, to whose end its parent waits."""
    return [Use(tool, {"description": "look", "prompt": "play sub", "subagent_type": kind})]


SUBAGENTS: dict[str, tuple[str, list[Step]]] = {
    "claude-code": ("general-purpose", _given("Task", "general-purpose")),
    "qwen": ("general-purpose", _given("agent", "general-purpose")),
    "opencode": ("general", _given("task", "general")),
    "codex": (  # Parent and child work side by side.
        "default",
        [
            Use("multi_agent_v1.spawn_agent", {"message": "play sub"}),
            *(sh(f"timeout 3 tail -f /dev/null; echo {n}") for n in range(12)),
        ],
    ),
}
"""By program: the kind of a subagent, and how its model has one work. In the others the calls of subagents are those of the session."""


@pytest.mark.parametrize("name", SUBAGENTS)
def test_a_subagent_is_an_agent_of_its_own_with_a_parent(name: str, tmp_path: Path) -> None:
    kind, given = SUBAGENTS[name]
    scripts: dict[str, list[Step]] = {
        "parent": [*given, Say("back")],
        "sub": [sh("echo one"), sh("timeout 7 tail -f /dev/null; true"), Say("found")],
    }
    with watched(CODERS[name], tmp_path, scripts) as one:
        process = one.start("parent")
        one.hub.until(lambda: len(one.agents()) == 2, "both are known", STARTS_WITHIN)
        child = one.agents()[1]["agent_id"]
        assert child.startswith(f"{one.agent()['agent_id']}/{kind}-")

        def beats() -> object:
            return one.agents()[1]["metrics"]["total_heartbeats"]

        one.hub.until(beats, "the subagent beats", STARTS_WITHIN)
        said = one.hub.get(f"/api/v1/agents/{child.replace('/', '%2F')}/heartbeat")
        assert said["beat"]["metadata"]["parent"] == one.agent()["agent_id"]
        one.wait(process)
        one.hub.until(
            lambda: [agent["state"] for agent in one.agents()] == ["terminated", "terminated"], "both left"
        )
        assert [agent["metrics"]["tool_call_count"] for agent in one.agents()] == [len(given), 2]
        assert one.findings() == []
