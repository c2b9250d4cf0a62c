"""Cron jobs that fetch a URL, with curl as in a crontab: one that stops coming, one that fails, one that takes too long."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, serving

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


def curl(hub: Hub, url: str, *more: str) -> int:
    """As in a crontab: the token is in a file."""
    header = hub.folder / "header"
    command = [
        "curl",
        "-fsS",
        "-m",
        "10",
        "-o",
        "/dev/null",
        "-H",
        f"@{header}",
        *more,
        f"{hub.url}/ping/{url}",
    ]
    return subprocess.run(command, check=False, timeout=30).returncode


def test_a_job_that_stays_away_fails_or_takes_too_long_is_found(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        made = hub.cli("token", "create", "--role", "agent", "--name", "cron", "--agents", "job-*", "--json")
        (tmp_path / "header").write_text(f"Authorization: Bearer {json.loads(made.stdout)['token']}\n")

        assert curl(hub, "job-away?every=2s&grace=2s") == 0
        assert curl(hub, "job-slow/start?every=1h&grace=2s") == 0
        assert curl(hub, "job-bad/start?every=1h&grace=1h") == 0
        assert curl(hub, "job-bad/3", "--data-raw", "disk full") == 0
        assert curl(hub, "job-well?every=1h&grace=1h") == 0

        hub.until(lambda: hub.health("job-away") == "disconnected", "the job that stays away is missed")
        hub.until(lambda: hub.health("job-slow") == "stuck", "the job that takes too long is found")
        hub.until(lambda: hub.health("job-bad") == "failing", "the job that failed is found")
        (failed,) = hub.get("/api/v1/agents/job-bad")["findings"]
        assert "exit status 3: disk full" in failed["text"]
        assert hub.health("job-well") == "healthy"

        assert curl(hub, "job-away") == 0
        assert curl(hub, "job-slow") == 0
        assert curl(hub, "job-bad/0") == 0
        for name in ("job-slow", "job-bad", "job-well"):
            hub.until(lambda name=name: hub.health(name) == "healthy", f"{name} is well")  # type: ignore[misc]


def test_a_job_cannot_ping_for_another_nor_with_the_token_in_the_query(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        made = hub.cli("token", "create", "--role", "agent", "--name", "cron", "--agents", "job-*", "--json")
        token = json.loads(made.stdout)["token"]
        (tmp_path / "header").write_text("X-Nothing: 1\n")
        assert curl(hub, f"job-1?token={token}") != 0
        assert curl(hub, "job-1", "-u", f"cron:{token}") == 0
        assert curl(hub, "other", "-u", f"cron:{token}") != 0
        assert hub.agent("other") is None
