"""Commits as checkpoints: what git printed counts, in the words of each program, and nothing that only looks like it."""

from __future__ import annotations

from typing import Any

import pytest

from lifesigns.integrations.hooks.commits import checkpoints
from tests.integrations.hooked import event, session

COMMAND = "cd shop && git commit -qm 'Say more' || true"


def saved(**fields: Any) -> list[str]:
    one = session()
    return [found.checkpoint_id for found in checkpoints(one, one.main, event(**fields))]


def call(printed: Any, command: Any = COMMAND) -> dict[str, Any]:
    return {"hook_event_name": "PostToolUse", "tool_input": {"command": command}, "tool_response": printed}


@pytest.mark.parametrize(
    ("printed", "ids"),
    [
        ("[main 1a2b3c4] Say more\n 1 file changed", ["1a2b3c4"]),
        ("[main (root-commit) 1a2b3c4] Begin", ["1a2b3c4"]),
        ("[detached HEAD 1a2b3c4] Try", ["1a2b3c4"]),
        ("Output: [main 1a2b3c4] Say more\nExit Code: 0", ["1a2b3c4"]),
        ("hook ran\n[feature/x 1a2b3c4] One\n[feature/x 5d6e7f8] Two", ["1a2b3c4", "5d6e7f8"]),
        ({"stdout": "[main 1a2b3c4] Say more", "stderr": ""}, ["1a2b3c4"]),
        ([{"type": "text", "text": "[main 1a2b3c4] Say more"}], ["1a2b3c4"]),
        ("nothing to commit, working tree clean", []),
        ("see [main 1a2b3c4] in the log", []),
        (None, []),
    ],
)
def test_what_git_says_of_a_commit_is_its_hash(printed: Any, ids: list[str]) -> None:
    assert saved(**call(printed)) == ids


def test_it_counts_only_after_a_command_that_commits() -> None:
    printed = "[main 1a2b3c4] Say more"
    assert saved(**call(printed, "cat notes.txt")) == []
    assert saved(**call(printed, "git log; echo commit")) == []
    assert saved(**call(printed, ["bash", "-lc", "git -C shop commit -a"])) == ["1a2b3c4"]


def test_each_call_of_a_batch_is_read_and_a_call_that_only_begins_is_not() -> None:
    one = {"tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_use_id": "t"}
    calls = [{**one, "tool_response": f"[main 1a2b3c{n}] Say"} for n in range(2)]
    assert saved(hook_event_name="PostToolBatch", tool_calls=calls) == ["1a2b3c0", "1a2b3c1"]
    assert saved(hook_event_name="PreToolUse", **one, tool_response="[main 1a2b3c4] Say") == []
