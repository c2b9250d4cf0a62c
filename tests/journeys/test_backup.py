"""A hub whose machine is lost comes back from one file: docs/runbooks/restore.md, played through."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.journeys.outside import BOUND, Hub, environment, serving

pytestmark = pytest.mark.timeout(300)  # Many processes are started one after the other.


def lifesigns(state: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """A command where no hub answers: it has only the state folder."""
    return subprocess.run(
        [sys.executable, "-m", "lifesigns", *args],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        env=environment(LIFESIGNS_STATE=str(state)),
        cwd=state.parent,
    )


def live_in(hub: Hub) -> str:
    """An agent with a checkpoint that has content, something in the audit log; the agent's own token."""
    hub.post("/api/v1/beats", {"agent_id": "coder"})
    hub.request(
        "PUT", "/api/v1/tasks/t1/checkpoints/c1?agent_id=coder", b"half done", Content_Type="text/plain"
    )
    hub.post("/api/v1/agents/coder/pause")
    hub.until(lambda: "coder" in str(hub.get("/api/v1/audit")), "the pause is in the audit log")
    return str(hub.post("/api/v1/tokens", {"role": "agent", "name": "its own", "agents": "coder"})["token"])


def test_the_runbook_brings_a_lost_hub_back(tmp_path: Path) -> None:
    """Backed up while it runs, deleted, restored: the same tokens, agents, contents, and an audit log that verifies."""
    file = tmp_path / "hub.tar"
    with serving(tmp_path) as hub:
        token = live_in(hub)
        report = json.loads(hub.cli("backup", str(file), "--json").stdout)
        assert report["manifest"]["store_included"] is True
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        admin = hub.token
        hub.kill()
        shutil.rmtree(hub.state)

        restored = lifesigns(hub.state, "restore", str(file))
        assert restored.returncode == 0, restored.stderr
        verified = lifesigns(hub.state, "audit", "verify", "--json")
        assert json.loads(verified.stdout)["verified"] is True, verified.stdout + verified.stderr
        assert json.loads(verified.stdout)["entries"] > 0
        hub.start()
        assert hub.token == admin
        hub.request("POST", "/api/v1/beats", {"agent_id": "coder"}, token=token)
        hub.until(lambda: hub.health("coder") is not None, "the agent is known")
        assert hub.get("/api/v1/tasks/t1/checkpoints/c1") == "half done"
        assert hub.cli("doctor", check=False).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_it_is_restored_on_another_machine_too(tmp_path: Path) -> None:
    """Another folder, another port; without the audit key in the backup it would be `wrong_key`."""
    with serving(tmp_path) as hub:
        live_in(hub)
        hub.cli("backup", "hub.tar")
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(tmp_path / "hub.tar", other / "hub.tar")
    new = Hub(other)
    assert lifesigns(new.state, "restore", str(other / "hub.tar")).returncode == 0
    try:
        new.start()
        assert new.agent("coder") is not None
        assert lifesigns(new.state, "audit", "verify").returncode == 0
    finally:
        new.end()


def test_nothing_is_overwritten_and_no_running_hub_is_restored_over(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        hub.cli("backup", "hub.tar")
        again = hub.cli("backup", "hub.tar", check=False)
        assert (again.returncode, "not overwritten" in again.stderr) == (2, True)
        over = hub.cli("restore", "hub.tar", check=False)
        assert (over.returncode, "serves from" in over.stderr) == (2, True)
        inside = hub.cli("backup", str(hub.state / "hub.tar"), check=False)
        assert (inside.returncode, "write the backup elsewhere" in inside.stderr) == (2, True)
        hub.stop()
        over = lifesigns(hub.state, "restore", str(tmp_path / "hub.tar"))
        assert (over.returncode, "not empty" in over.stderr) == (2, True)


@pytest.mark.parametrize("harm", ["flipped", "cut", "not a backup", "newer"])
def test_a_backup_that_is_not_whole_restores_nothing(tmp_path: Path, harm: str) -> None:
    file = tmp_path / "hub.tar"
    with serving(tmp_path) as hub:
        hub.cli("backup", str(file))
    content = bytearray(file.read_bytes())
    match harm:
        case "flipped":
            with tarfile.open(file) as tar:
                content[tar.getmember("state/lifesigns.db").offset_data + 5000] ^= 1
        case "cut":
            del content[len(content) // 2 :]
        case "newer":
            content = content.replace(b'"format":1', b'"format":2', 1)
        case _:
            content = bytearray(b"hello")
    file.write_bytes(content)
    state = tmp_path / "new"
    refused = lifesigns(state, "restore", str(file))
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: ")
    assert "Traceback" not in refused.stderr
    assert [path.name for path in state.iterdir() if path.name != "hub.lock"] == []


def test_a_store_on_a_server_is_left_to_its_own_tools(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        hub.stop()
        done = lifesigns(hub.state, "backup", "hub.tar", "--store", "postgres://me:secret@db/lifesigns")
    assert done.returncode == 0, done.stderr
    assert "pg_dump" in done.stderr
    assert "secret" not in done.stderr
    with tarfile.open(tmp_path / "hub.tar") as tar:
        names = tar.getnames()
    assert "state/audit.key" in names
    assert "state/lifesigns.db" not in names
