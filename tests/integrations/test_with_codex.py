"""The real Codex, watched: what goes right, what goes wrong, and what reaches its model. `make integrations` runs this."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integrations.scripted_model import Refuse, Say, ScriptedModel, Step, scripted_model, sh
from tests.journeys.outside import Hub, Json, serving

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".tools/coding-agents/node_modules/.bin/codex"
HANG = "timeout 100 tail -f /dev/null"
IMPATIENT = {"health_monitoring": {}, "agents": {"codex/*": {"stall": {"call_max": 3}}}}
CONFIG = """
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[features]
plugins = false
apps = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""

pytestmark = [
    pytest.mark.skipif(not PROGRAM.exists(), reason="Codex is not installed: make integrations"),
    pytest.mark.skipif(
        not os.environ.get("LIFESIGNS_INTEGRATIONS"), reason="with the real program: make integrations"
    ),
    pytest.mark.timeout(300),
]


@dataclass
class Codex:
    """Codex beside a hub that watches it."""

    hub: Hub
    model: ScriptedModel
    home: Path
    project: Path
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, script: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(PROGRAM), "exec", "--skip-git-repo-check", "--json", f"play {script}"],
            cwd=self.project,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "SCRIPTED_KEY": "dummy",
                "LIFESIGNS_HOOK_PATIENCE": "5",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def run(self, script: str) -> str:
        return self.start(script).communicate(timeout=120)[0]

    def agents(self) -> list[Json]:
        found = self.hub.get("/api/v1/agents")["agents"]
        return [one for one in found if one["agent_id"].startswith("codex/")]

    def agent(self) -> Json:
        (only,) = self.agents()
        return only

    def findings(self) -> list[tuple[str, str]]:
        opened = self.hub.events("FINDING_OPENED")
        return [(one["data"]["finding"]["kind"], one["data"]["finding"]["text"]) for one in opened]

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@contextmanager
def watched_codex(
    folder: Path, scripts: Mapping[str, Sequence[Step]], config: Json | None = None
) -> Iterator[Codex]:
    """Codex, its model, and a hub that hears its hooks: installed and trusted by our own command."""
    home, project = folder / "home", folder / "shop"
    (home / ".codex").mkdir(parents=True)
    project.mkdir()
    with serving(folder, config) as hub, scripted_model(scripts) as model:
        (home / ".codex/config.toml").write_text(CONFIG.format(url=model.url))
        path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
        done = hub.cli("hooks", "install", "codex", HOME=str(home), PATH=path)
        assert "Codex trusts 14 hooks of lifesigns" in done.stdout
        codex = Codex(hub, model, home, project)
        try:
            yield codex
        finally:
            codex.end()


def test_a_healthy_run_of_twenty_calls_is_an_agent_without_a_finding(tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"echo line {n} > f{n}; cat f{n}") for n in range(20)), Say("done")]
    with watched_codex(tmp_path, {"work": steps}) as codex:
        assert "done" in codex.run("work")
        agent = codex.agent()
        assert agent["agent_id"].startswith("codex/shop/")
        assert agent["state"] == "terminated"
        assert agent["metrics"]["tool_call_count"] == 20
        assert agent["metrics"]["token_count"] == 21 * 1050
        assert codex.findings() == []
        assert codex.hub.disconnected() == set()


def test_the_same_call_eight_times_is_a_loop_and_the_nudge_reaches_the_model(tmp_path: Path) -> None:
    """Codex does not say that a call failed, so these are equal results: a finding at four, stuck at eight."""
    with watched_codex(tmp_path, {"loop": [sh("cat /no/such/file")] * 12 + [Say("done")]}) as codex:
        codex.run("loop")
        loops = [text for kind, text in codex.findings() if kind == "looping"]
        assert "4 times" in loops[0]
        assert any("8 times" in text for text in loops)
        assert codex.model.told("Note from the monitor (lifesigns): ")
        stages = [one["data"]["stage"] for one in codex.hub.events("NUDGE_SENT", "INTERVENTION")]
        assert stages[:3] == ["ordered", "delivered", "seen"]


def test_a_tool_that_hangs_is_a_finding(tmp_path: Path) -> None:
    with watched_codex(tmp_path, {"hang": [sh(HANG), Say("done")]}, IMPATIENT) as codex:
        codex.start("hang")
        codex.hub.until(lambda: any(kind == "long_call" for kind, _ in codex.findings()), "the hang is found")
        assert codex.hub.disconnected() == set()


def test_a_killed_process_is_a_crash_within_seconds(tmp_path: Path) -> None:
    """Codex says nothing of TERM either: whatever ends the process, the hub sees that it is gone."""
    with watched_codex(tmp_path, {"think": [sh("true"), Say("done", after=60)]}) as codex:
        process = codex.start("think")
        codex.hub.until(lambda: codex.agents() and codex.agent()["metrics"]["total_heartbeats"], "it beats")
        os.killpg(process.pid, signal.SIGKILL)
        codex.hub.until(lambda: codex.agent()["state"] == "disconnected", "it is found dead", within=15)
        assert codex.agent()["cause"] == "crash"


def test_a_rate_limit_is_no_finding(tmp_path: Path) -> None:
    with watched_codex(tmp_path, {"limit": [Refuse(429, "rate_limit_error")]}) as codex:
        codex.run("limit")
        codex.hub.until(lambda: codex.agent()["state"] == "terminated", "it left")
        assert codex.agent()["doing"] == "rate_limited"
        assert codex.findings() == []


def test_a_stop_denies_every_call_until_the_model_gives_up(tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"timeout 0.3 tail -f /dev/null; echo {n}") for n in range(40)), Say("done")]
    with watched_codex(tmp_path, {"long": steps}) as codex:
        process = codex.start("long")
        codex.hub.until(
            lambda: codex.agents() and codex.agent()["metrics"]["tool_call_count"] >= 3, "it works"
        )
        codex.hub.cli("terminate", codex.agent()["agent_id"], "--reason", "enough", "--yes")
        out, _ = process.communicate(timeout=120)
        assert codex.model.told("lifesigns stopped this run: enough")
        codex.hub.until(lambda: codex.agent()["state"] == "terminated", "it is stopped")
        done = [json.loads(line) for line in out.splitlines() if '"command_execution"' in line]
        assert sum(one["type"] == "item.completed" and one["item"].get("exit_code") == 0 for one in done) < 30
