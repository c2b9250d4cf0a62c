"""Our plugin for opencode, called by Node as opencode calls it, beside a real hub."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, Json, environment, serving

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    NODE is None, reason="opencode's plugin is JavaScript: it needs Node to run here"
)

SESSION = "ses_e16368785ffeb2sjKZcPW80PMS"
AGENT = f"opencode/shop/{SESSION[-8:]}"
BEGIN = [
    {
        "hook": "event",
        "input": {"event": {"type": "session.created", "properties": {"info": {"id": SESSION}}}},
    },
    {"hook": "chat.message", "input": {"sessionID": SESSION}, "output": {}},
]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with serving(tmp_path) as hub:
        hub.cli("hooks", "install", "opencode", HOME=str(tmp_path))
        yield hub


def played(hub: Hub, steps: list[Json], patience: str = "5") -> Json:
    plugin = hub.folder / ".config/opencode/plugins/lifesigns.js"
    module = hub.folder / "plugin.mjs"
    module.write_text(plugin.read_text())
    done = subprocess.run(
        [str(NODE), str(Path(__file__).parent / "plugin_driver.mjs"), str(module)],
        input=json.dumps(steps),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment(LIFESIGNS_HOOK_PATIENCE=patience),
    )
    return json.loads(done.stdout)


def call(n: int, status: int = 0) -> list[Json]:
    about = {"tool": "bash", "sessionID": SESSION, "callID": f"call_{n}"}
    before = {"hook": "tool.execute.before", "input": about, "output": {"args": {"command": "cat x"}}}
    result = {"output": "no x", "metadata": {"exit": status}}
    return [
        before,
        {"hook": "tool.execute.after", "input": {**about, "args": {"command": "cat x"}}, "output": result},
    ]


def test_a_loop_is_found_and_the_model_reads_of_it_in_a_result(hub: Hub) -> None:
    pause: dict[str, Any] = {"hook": "chat.params", "input": {"sessionID": SESSION, "agent": "build"}}
    pause["thinks"] = 300  # Milliseconds: the hub stores its order before it gives it.
    steps = [*BEGIN]
    for n in range(10):
        steps += [pause, *call(n, status=1)]
    said = played(hub, [*steps, {"hook": "dispose"}])
    opened = [event["data"]["finding"] for event in hub.events("FINDING_OPENED")]
    assert any(one["text"].startswith("bash failed 3 times in a row") for one in opened)
    told = [
        str(one["output"]) for one in said["results"] if "Note from the monitor" in str(one.get("output"))
    ]
    assert "bash failed" in told[0]
    (agent,) = hub.get("/api/v1/agents")["agents"]
    assert (agent["agent_id"], agent["state"]) == (AGENT, "terminated")
    assert agent["metrics"]["tool_call_count"] == 10


def test_a_hub_that_is_away_costs_nothing_and_hears_of_the_session_later(hub: Hub) -> None:
    hub.stop()
    said = played(hub, [*BEGIN, *call(1)])
    assert not any("error" in one for one in said["results"])
    names = [path.name for path in (hub.state / "hooks/spool").iterdir()]
    assert len(names) == 2  # The start and the prompt; calls are of no use later.
    assert all(name.endswith("@opencode") for name in names)
    hub.start()
    hub.until(lambda: not any((hub.state / "hooks/spool").iterdir()), "the hub has read them")


def test_a_hub_that_hangs_costs_a_moment_and_then_nothing(hub: Hub) -> None:
    hub.signal(signal.SIGSTOP)
    try:
        said = played(hub, [*BEGIN, *call(1), *call(2)], patience="")
    finally:
        hub.signal(signal.SIGCONT)
    assert not any("error" in one for one in said["results"])
    assert max(one["ms"] for one in said["results"][-3:]) < 50.0  # The calls after it was left alone.


def test_without_a_state_folder_it_does_nothing(hub: Hub) -> None:
    (hub.state / "hooks/token").unlink()
    assert played(hub, [])["hooks"] == []
