"""What stands in `lifesigns.yaml` changes what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.journeys.outside import BOUND, environment

PROGRAM = """
import lifesigns
for name in ("tool_execution", "checkpoint_write", "search"):
    breaker = lifesigns.Breaker(name)
    print(name, breaker.policy.failure_threshold, breaker.policy.recovery_timeout, breaker.policy.half_open_requests)
print("shared", lifesigns.guard("other").policy.failure_threshold, lifesigns.guard("own", failure_threshold=9).policy.failure_threshold)
"""


def printed(folder: Path, **env: str) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment(HOME=str(folder), **env),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_the_circuit_breaker_tree_is_what_breakers_are_made_with(tmp_path: Path) -> None:
    """IMPL-REQ-003 section 7, in the file or in the environment."""
    assert printed(tmp_path)[:2] == [
        ["tool_execution", "5", "30.0", "1"],
        ["checkpoint_write", "3", "120.0", "1"],
    ]
    tree = {
        "default": {"failure_threshold": 7, "recovery_timeout_seconds": 11, "half_open_requests": 2},
        "overrides": {"tool_execution": {"failure_threshold": 4, "recovery_timeout_seconds": 13}},
    }
    (tmp_path / "lifesigns.yaml").write_text(json.dumps({"health_monitoring": {"circuit_breaker": tree}}))
    tool, _, search, shared = printed(tmp_path)
    assert tool == ["tool_execution", "4", "13.0", "2"]
    assert search == ["search", "7", "11.0", "2"]
    assert shared == ["shared", "7", "9"]
    by_environment = printed(tmp_path, LIFESIGNS_POLICY__BREAKERS__SEARCH__FAILURE_THRESHOLD="6")
    assert by_environment[2][:2] == ["search", "6"]


def test_a_configuration_that_is_wrong_does_not_end_an_agent_that_wants_a_breaker(tmp_path: Path) -> None:
    (tmp_path / "lifesigns.yaml").write_text(
        "health_monitoring: {circuit_breaker: {default: {failure_threshold: no}}}"
    )
    assert printed(tmp_path)[0] == ["tool_execution", "5", "30.0", "1"]
