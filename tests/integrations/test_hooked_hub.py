"""A hub and the client of the hooks, from outside: recorded events of Claude Code go in by the shell script that Claude Code
would start, and what comes out is what its user sees."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.hooked import recorded
from tests.journeys.outside import Hub, Json, Refused, environment, serving

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the client of the hooks needs bash")

MAIN = "claude/shop/043381dc"
SESSION = "043381dc-b151-4818-bf59-b65753ec8421"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub that Claude Code reports to."""
    with serving(tmp_path) as hub:
        installed(hub)
        yield hub


def installed(hub: Hub) -> None:
    hub.cli("hooks", "install", "claude-code", HOME=str(hub.folder))


class Program:
    """A process that stands for Claude Code: its events carry its pid."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.patience = "5"  # The machine may be busy.
        self.process = hub.started(sys.executable, "-c", "import time; time.sleep(600)")

    def says(self, event: Json) -> Json:
        """One event through the client; its answer."""
        done = subprocess.run(
            [str(self.hub.state / "hooks/client"), "claude-code"],
            input=json.dumps(event, separators=(",", ":")),
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "CLAUDE_PID": str(self.process.pid),
                "CLAUDE_PROJECT_DIR": "/home/dev/shop",
                "LIFESIGNS_HOOK_PATIENCE": self.patience,
            },
        )
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout) if done.stdout else {}

    def plays(self, name: str, until: str = "") -> None:
        for event in recorded("claude-code", name):
            if event["hook_event_name"] == until:
                return
            self.says(event)


def call(event: str, n: int, **more: Any) -> Json:
    said = {"session_id": SESSION, "cwd": "/home/dev/shop", "hook_event_name": event, "tool_name": "Bash"}
    return {**said, "tool_input": {"command": "cat x"}, "tool_use_id": f"toolu_{n}", **more}


def test_a_recorded_run_is_an_agent_that_came_worked_and_left(hub: Hub) -> None:
    program = Program(hub)
    program.plays("three-calls", until="SessionEnd")
    hub.until(lambda: hub.agent(MAIN.replace("/", "%2F")), "it is known")
    agent = hub.agent(MAIN.replace("/", "%2F"))
    assert agent is not None
    assert (agent["state"], agent["doing"], agent["metrics"]["tool_call_count"]) == ("healthy", "idle", 3)
    program.says(recorded("claude-code", "three-calls")[-1])
    hub.until(lambda: hub.health(MAIN.replace("/", "%2F")) == "terminated", "it left")
    assert hub.events("FINDING_OPENED") == []


def test_a_process_that_is_gone_without_a_word_is_a_crash(hub: Hub) -> None:
    program = Program(hub)
    program.plays("three-calls", until="Stop")
    hub.until(lambda: hub.health(MAIN.replace("/", "%2F")) == "healthy", "it lives")
    program.process.kill()
    program.process.wait()
    hub.until(lambda: hub.health(MAIN.replace("/", "%2F")) == "disconnected", "it is found dead", within=15)
    agent = hub.agent(MAIN.replace("/", "%2F"))
    assert agent is not None
    assert agent["cause"] == "crash"


def test_a_session_at_rest_is_not_taken_for_dead_also_by_the_next_hub(hub: Hub) -> None:
    """Hooks say nothing for hours. The hub sees the process, and so does the hub after it, which never heard an event."""
    program = Program(hub)
    program.plays("three-calls", until="Stop")

    def beats() -> int:
        agent = hub.agent(MAIN.replace("/", "%2F"))
        return 0 if agent is None else int(agent["metrics"]["total_heartbeats"])

    hub.until(beats, "its process is watched")
    hub.kill()
    hub.start()
    before = beats()
    hub.until(lambda: beats() >= before + 2, "it is watched again")
    assert hub.disconnected() == set()


def test_a_session_is_known_to_the_next_hub_from_its_first_answer_on(hub: Hub) -> None:
    """What a hub has answered it has written down: killed the next moment, it leaves nobody unwatched."""
    program = Program(hub)
    program.says(recorded("claude-code", "three-calls")[0])
    hub.kill()
    kept = json.loads((hub.state / "hooks/sessions.json").read_text())
    assert [(one["main"]["id"], one["pid"]) for one in kept] == [(MAIN, program.process.pid)]
    hub.start()

    def beats() -> int:
        agent = hub.agent(MAIN.replace("/", "%2F"))
        return 0 if agent is None else int(agent["metrics"]["total_heartbeats"])

    hub.until(lambda: beats() >= 2, "it is watched")
    assert hub.disconnected() == set()


def test_a_loop_is_found_nudged_and_the_nudge_is_seen(hub: Hub) -> None:
    program = Program(hub)
    program.plays("three-calls", until="PreToolUse")
    answers = []
    for n in range(8):
        answers.append(program.says(call("PreToolUse", n)))
        answers.append(program.says(call("PostToolUseFailure", n, error="Exit code 1\nno x")))
        answers.append(program.says(call("PostToolBatch", n, tool_calls=[])))
        time.sleep(0.05)  # As a model would think: the hub stores its order before it gives it.
    told = [one["hookSpecificOutput"]["additionalContext"] for one in answers if one]
    assert told[0].startswith("Note from the monitor (lifesigns): Bash failed 5 times in a row")
    hub.until(
        lambda: "seen" in [one["data"]["stage"] for one in hub.events("INTERVENTION")], "the nudge is seen"
    )


def test_a_stop_is_answered_and_reported_done(hub: Hub) -> None:
    program = Program(hub)
    program.plays("three-calls", until="PreToolUse")
    hub.cli("terminate", MAIN, "--reason", "enough", "--yes")
    hub.until(lambda: program.says(call("PostToolBatch", 1)).get("continue") is False, "it is told to end")
    hub.until(lambda: hub.health(MAIN.replace("/", "%2F")) == "terminated", "it has ended")


def test_a_session_that_was_stopped_rests_until_its_user_takes_it_up(hub: Hub) -> None:
    """In a terminal the process stays. It is not the next life of the agent before its user speaks again."""
    program, other = Program(hub), Program(hub)
    program.plays("three-calls", until="PreToolUse")
    hub.cli("terminate", MAIN, "--reason", "enough", "--yes")
    hub.until(lambda: program.says(call("PostToolBatch", 1)).get("continue") is False, "it is told to end")
    hub.until(lambda: hub.health(MAIN.replace("/", "%2F")) == "terminated", "it has ended")
    other.plays("rate-limit", until="StopFailure")
    idle = "claude/shop/330a8da3".replace("/", "%2F")

    def beats() -> int:
        agent = hub.agent(idle)
        return 0 if agent is None else int(agent["metrics"]["total_heartbeats"])

    hub.until(lambda: beats() >= 2, "another one has beaten twice meanwhile")
    assert hub.health(MAIN.replace("/", "%2F")) == "terminated"
    program.says(recorded("claude-code", "three-calls")[1])
    hub.until(lambda: hub.health(MAIN.replace("/", "%2F")) == "healthy", "it lives again")


def test_what_matters_is_heard_later_if_the_hub_was_away(hub: Hub) -> None:
    """A session that began and waits for its user is known when the hub is back; one that ended meanwhile is no crash."""
    stays, ends = Program(hub), Program(hub)
    ends.plays("rate-limit", until="StopFailure")
    hub.until(lambda: len(hub.get("/api/v1/agents")["agents"]) == 1, "the first is known")
    hub.stop()
    stays.plays("three-calls", until="Stop")
    ends.says(recorded("claude-code", "rate-limit")[-1])
    ends.process.kill()
    ends.process.wait()
    hub.start()
    hub.until(lambda: hub.health(MAIN.replace("/", "%2F")) == "healthy", "the session is known")
    states = {one["agent_id"]: one["state"] for one in hub.get("/api/v1/agents")["agents"]}
    assert states == {MAIN: "healthy", "claude/shop/330a8da3": "terminated"}
    assert hub.disconnected() == set()


def test_a_hub_that_hangs_costs_a_moment_and_then_nothing(hub: Hub) -> None:
    """It is found out once, in a moment; then it is left alone until it says that it is well."""
    program = Program(hub)
    program.plays("three-calls", until="PreToolUse")
    program.patience = ""  # As it is by itself.
    hub.signal(signal.SIGSTOP)
    try:
        assert program.says(call("PreToolUse", 1)) == {}
        assert (hub.state / "hooks/slow").exists()
        assert program.says(call("PostToolUse", 1)) == {}
    finally:
        hub.signal(signal.SIGCONT)
    hub.until(lambda: not (hub.state / "hooks/slow").exists(), "the hub says that it is well")


def test_what_comes_too_late_for_a_hook_is_given_with_the_next_one(hub: Hub) -> None:
    """A client that gave up reads no answer. A nudge in it would be lost, and believed to be read."""
    program = Program(hub)
    program.plays("three-calls", until="PreToolUse")
    hub.cli("nudge", MAIN, "look at the tests first")
    hub.until(lambda: hub.events("NUDGE_SENT"), "it is ordered")
    hub.signal(signal.SIGSTOP)
    try:
        program.patience = "0.1"
        assert program.says(call("PostToolBatch", 1)) == {}
    finally:
        hub.signal(signal.SIGCONT)
    program.patience = "5"
    hub.until(lambda: not (hub.state / "hooks/slow").exists(), "the hub says that it is well")
    assert "delivered" not in [one["data"]["stage"] for one in hub.events("INTERVENTION")]
    hub.until(lambda: "look at the tests" in str(program.says(call("PostToolBatch", 2))), "it is told")


COPILOT = """
import json, subprocess, sys, time
client, session = sys.argv[1:3]
names = ["SessionStart", "UserPromptSubmit"]
while True:
    name = names.pop(0) if names else "PreToolUse"
    event = {"session_id": session, "cwd": "/home/dev/shop", "hook_event_name": name, "tool_name": "Bash"}
    said = json.dumps(event, separators=(",", ":"))
    print(subprocess.run([client, "copilot"], input=said, text=True, stdout=subprocess.PIPE).stdout, flush=True)
    time.sleep(0.1)
"""
"""As Copilot calls its hooks: it is their parent."""


def _is_healthy(hub: Hub, agent: str) -> bool:
    return hub.health(agent) == "healthy"


def test_a_run_without_a_terminal_that_no_answer_ends_is_interrupted(hub: Hub) -> None:
    """At a terminal its calls are denied, and the session stays with the person who sits there."""
    client, end = str(hub.state / "hooks/client"), "43381dc-b151-4818-bf59-b65753ec8421"
    env = {"COPILOT_PROJECT_DIR": "/home/dev/shop", "LIFESIGNS_HOOK_PATIENCE": "5"}
    runs, stays = (
        hub.python("copilot.py", COPILOT, client, f"{n}{end}", way, "do it", **env)
        for n, way in enumerate(("-p", "-i"))
    )
    ids = ["copilot%2Fshop%2F043381dc", "copilot%2Fshop%2F143381dc"]
    for one in ids:
        hub.until(partial(_is_healthy, hub, one), "it works")
        hub.cli("terminate", one.replace("%2F", "/"), "--reason", "enough", "--yes")
    hub.until(lambda: runs.poll() is not None, "it is interrupted")
    assert runs.returncode == -signal.SIGINT
    hub.until(lambda: hub.health(ids[0]) == "terminated", "that is known")
    hub.until(lambda: "lifesigns stopped this run: enough" in hub.output(stays), "calls are denied")
    assert stays.poll() is None


def test_the_token_is_for_these_agents_only_and_for_its_owner_alone(hub: Hub) -> None:
    path = hub.state / "hooks/token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text().strip()
    with pytest.raises(Refused) as refused:
        hub.request("POST", "/api/v1/beats", {"agent_id": "coder-7"}, token=token)
    assert refused.value.status == 400
    assert "may not speak" in str(refused.value.body)
    written = (hub.folder / ".claude/settings.json").read_text()
    assert token not in written


def test_a_process_is_its_pid_and_its_start(hub: Hub) -> None:
    """A pid that says to have started at another time is somebody else's: nobody is watched there."""
    program = Program(hub)
    event = recorded("claude-code", "three-calls")[0]
    hub.post(f"/hooks/claude-code?pid={program.process.pid}&started=1&project=shop", event)
    hub.until(lambda: hub.health(MAIN.replace("/", "%2F")) == "healthy", "it is known")
    agent = hub.agent(MAIN.replace("/", "%2F"))
    assert agent is not None
    assert agent["incarnation"] == SESSION  # Not that process.


def test_a_token_for_other_agents_may_not_speak_for_a_session(hub: Hub) -> None:
    made = json.loads(hub.cli("token", "create", "--role", "agent", "--agents", "coder-*", "--json").stdout)
    event = recorded("claude-code", "three-calls")[0]
    with pytest.raises(Refused) as refused:
        hub.request("POST", "/hooks/claude-code", event, token=made["token"])
    assert refused.value.status == 403
    assert hub.get("/api/v1/agents")["agents"] == []


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"session_id": 1}', b'{"session_id": "../../../../x", "hook_event_name": "Stop"}']
)
def test_what_is_no_event_is_refused_and_names_the_field(hub: Hub, body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        hub.request("POST", "/hooks/claude-code", body)
    assert refused.value.status == 400


def test_install_status_and_uninstall(hub: Hub) -> None:
    home = str(hub.folder)
    path = hub.folder / ".claude/settings.json"
    assert "hears them" in hub.cli("hooks", "status", "claude-code", HOME=home).stdout
    before = path.read_text()
    assert "already" in hub.cli("hooks", "install", "claude-code", HOME=home).stdout
    assert path.read_text() == before
    shown = json.loads(hub.cli("hooks", "install", "claude-code", "--print", HOME=home).stdout)
    assert shown == json.loads(before)
    hub.cli("hooks", "uninstall", "claude-code", HOME=home)
    assert not path.exists()  # It was ours alone.
    assert "has no hooks of lifesigns." in hub.cli("hooks", "uninstall", "claude-code", HOME=home).stdout
    assert hub.cli("hooks", "status", "claude-code", check=False, HOME=home).returncode == 1


COMMIT = {
    "tool_name": "Bash",
    "tool_input": {"command": "git add -A && git commit -m 'Say more'"},
    "tool_use_id": "t1",
}
PRINTED = {
    "stdout": "[main 1a2b3c4] Say more\n 1 file changed, 1 insertion(+)",
    "stderr": "",
    "interrupted": False,
}


@pytest.mark.parametrize("wanted", [True, False])
def test_a_commit_is_a_checkpoint_if_that_is_wanted(tmp_path: Path, wanted: bool) -> None:
    with serving(tmp_path, {"hooks": {"commits_are_checkpoints": wanted}}) as hub:
        installed(hub)
        program = Program(hub)
        program.plays("three-calls", until="PreToolUse")
        named = {"session_id": SESSION, "cwd": "/home/dev/shop"}
        program.says({**named, "hook_event_name": "PreToolUse", **COMMIT})
        done = {**COMMIT, "tool_response": PRINTED}
        program.says({**named, "hook_event_name": "PostToolBatch", "tool_calls": [done]})
        agent = MAIN.replace("/", "%2F")
        hub.until(lambda: (hub.agent(agent) or {})["metrics"]["tool_call_count"] == 1, "the call is heard")
        assert ((hub.agent(agent) or {})["last_checkpoint"] is not None) == wanted


def test_the_two_commands_of_the_readme_may_be_pasted_together(tmp_path: Path) -> None:
    """The second waits for the hub that the first one has just started."""
    hub = Hub(tmp_path)
    install = [sys.executable, "-m", "lifesigns", "hooks", "install", "claude-code"]
    env = environment(LIFESIGNS_STATE=str(hub.state), HOME=str(tmp_path))
    with subprocess.Popen(install, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stderr is not None
            assert "waiting for one to start" in run.stderr.readline()
            hub.launch()
            out, err = run.communicate(timeout=60)
        finally:
            hub.end()
    assert (run.returncode, err) == (0, "")
    assert "has the hooks now" in out


def test_a_settings_file_that_cannot_be_read_is_left_alone(hub: Hub) -> None:
    path = hub.folder / ".claude/settings.json"
    path.write_text('{"a": 1, // mine\n}')
    done = hub.cli("hooks", "install", "claude-code", check=False, HOME=str(hub.folder))
    assert done.returncode == 2
    assert "left as it is" in done.stderr
    assert path.read_text() == '{"a": 1, // mine\n}'
