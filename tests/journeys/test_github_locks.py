"""Locks in GitHub with real processes: hubs, workers that are killed or stand still, and a small GitHub."""

from __future__ import annotations

import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from tests.journeys.outside import Hub, serving, until
from tests.servers.github import TOKEN, FakeGitHub

REPO = "org/repo"
STALE = "Stale Lock Detected"

PROGRAM = """
import json, sys, time, urllib.request
name, task, *hubs = sys.argv[1:]
for seq in range(10_000):
    for hub, token in zip(hubs[::2], hubs[1::2]):
        beat = json.dumps({"agent_id": name, "seq": seq, "task_id": task or None}).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(hub + "/api/v1/beats", beat, headers)).read()
    time.sleep(0.5)
"""


def config(github: FakeGitHub) -> dict[str, Any]:
    return {
        "profile": "swift",
        "agents": {"worker-1": {"claim": {"lease": "4s", "grace": "3s", "check_wait": "1s"}}},
        "github": {
            "repos": REPO,
            "token": TOKEN,
            "api": github.url,
            "workers": ["worker-1"],
            "look_every": "1s",
        },
    }


def is_free(github: FakeGitHub) -> bool:
    return not github.assignees(REPO, 1) and github.labels(REPO, 1) == ["status:queued"]


def _is_healthy(hub: Hub, name: str) -> bool:
    return hub.health(name) == "healthy"


def worker(at: Hub, *hubs: Hub, name: str = "worker-1", task: str = f"{REPO}#1") -> subprocess.Popen[str]:
    """A process that beats to these hubs, and is known to them."""
    where = [word for hub in hubs for word in (hub.url, hub.token)]
    process = at.python(f"{name}.py", PROGRAM, name, task, *where)
    for hub in hubs:
        hub.until(partial(_is_healthy, hub, name), f"{name} is healthy")
    return process


def test_the_lock_of_a_killed_worker_is_released_once_by_two_hubs(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with FakeGitHub() as github:
        github.claim(REPO, 1, "worker-1")
        github.claim(REPO, 2, "alice")
        with (
            serving(tmp_path / "first", config(github)) as first,
            serving(tmp_path / "second", config(github)) as second,
        ):
            worker(first, first, second, name="bystander", task="")
            process = worker(first, first, second)
            first.until(
                lambda: github.said(REPO, 1, "Worker Heartbeat"), "there is a comment about the worker"
            )
            assert github.assignees(REPO, 1) == ["worker-1"]
            process.send_signal(signal.SIGKILL)
            first.until(lambda: is_free(github), "the lock is released")
            first.until(
                lambda: any("released -->" in said for said in github.said(REPO, 1, STALE)), "it is said"
            )
            first.until(
                lambda: len(first.events("LOCK_RECOVERED")) + len(second.events("LOCK_RECOVERED")) == 1,
                "it is on record once",
            )
            assert len(github.said(REPO, 1, STALE)) == 1
            assert len(github.said(REPO, 1, "Worker Heartbeat")) == 1
            assert github.assignees(REPO, 2) == ["alice"]
            shown = [hub.cli("claims", "recovered").stdout for hub in (first, second)]
            assert sum("org/repo#1" in one for one in shown) == 1


def test_a_worker_that_wakes_up_in_the_middle_of_the_release_loses_its_lock_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    with FakeGitHub() as github, serving(tmp_path, config(github)) as hub:
        github.claim(REPO, 1, "worker-1")
        worker(hub, hub, name="bystander", task="")
        process = worker(hub, hub)

        def wake(method: str, path: str) -> None:
            if method == "POST" and path.endswith("/comments") and hub.health("worker-1") == "disconnected":
                process.send_signal(signal.SIGCONT)
                until(lambda: hub.health("worker-1") == "healthy", "it is back before the comment is written")

        github.before = wake
        process.send_signal(signal.SIGSTOP)
        hub.until(
            lambda: any(call.method == "DELETE" and "/comments/" in call.path for call in github.calls),
            "the release is taken back",
        )
        assert github.said(REPO, 1, STALE) == []
        assert github.assignees(REPO, 1) == ["worker-1"]
        assert "status:in-progress" in github.labels(REPO, 1)
        assert hub.events("LOCK_RECOVERED") == []
