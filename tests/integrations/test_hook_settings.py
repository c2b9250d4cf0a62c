"""Our hooks in somebody's settings: put in once, taken out whole, and nothing else is touched."""

from __future__ import annotations

import json

import pytest

from lifesigns.errors import UsageError
from lifesigns.integrations.hooks.settings import (
    command,
    installed,
    shared_command,
    with_hooks,
    without_hooks,
)

EVENTS = ("SessionStart", "PreToolUse")
OURS = command("claude-code", "/home/dev/.local/state/lifesigns/hooks/client")
THEIRS = {
    "model": "opus",
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./lint.sh"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
    "größe": 3,
}


@pytest.mark.parametrize("indent", [None, 2, 4, "\t"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_in_and_out_again_leaves_the_file_as_it_was(indent: int | str | None, end: str) -> None:
    text = json.dumps(THEIRS, indent=indent, ensure_ascii=False) + end
    there = with_hooks(text, "f", EVENTS, OURS)
    assert installed(there, "f") == ("PreToolUse", "SessionStart")
    assert without_hooks(there, "f") == text


BY_HAND = """{
    "permissions": {"allow": ["Bash(ls:*)"], "deny": []},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./lint.sh"}]}
        ],
        "Stop": [ { "hooks": [ {"type": "command", "command": "say done"} ] } ]
    },
    "model": "opus"
}
"""


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_what_a_person_has_written_keeps_every_line(ends: str) -> None:
    text = BY_HAND.replace("\n", ends)
    there = with_hooks(text, "f", EVENTS, OURS)
    lines = {line.strip().rstrip(",") for line in there.split(ends)}
    assert [line for line in BY_HAND.splitlines() if line.strip().rstrip(",") not in lines] == []
    assert there.count("PreToolUse") == 1
    assert without_hooks(there, "f") == text


def test_the_hooks_of_others_stay_first_and_whole() -> None:
    there = json.loads(with_hooks(json.dumps(THEIRS), "f", EVENTS, OURS))
    assert there["hooks"]["PreToolUse"][0] == THEIRS["hooks"]["PreToolUse"][0]  # type: ignore[index]
    assert there["hooks"]["Stop"] == THEIRS["hooks"]["Stop"]  # type: ignore[index]
    assert list(there) == list(THEIRS)


def test_installing_twice_changes_nothing_and_another_state_folder_replaces_the_first() -> None:
    once = with_hooks("", "f", EVENTS, OURS)
    assert with_hooks(once, "f", EVENTS, OURS) == once
    moved = with_hooks(once, "f", EVENTS, command("claude-code", "/elsewhere/client"))
    assert "/home/dev" not in moved
    assert moved.count("/elsewhere/client") == 2 * len(EVENTS)


def test_a_hook_of_ours_in_somebody_elses_group_is_taken_out_alone() -> None:
    group = {"matcher": "*", "hooks": [{"command": "mine"}, {"command": OURS}]}
    left = without_hooks(json.dumps({"hooks": {"Stop": [group]}}), "f")
    assert json.loads(left) == {"hooks": {"Stop": [{"matcher": "*", "hooks": [{"command": "mine"}]}]}}


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, // why\n}', "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"a": 1, "a": 2}', "{"],
)
def test_what_we_cannot_read_we_do_not_touch(text: str) -> None:
    with pytest.raises(UsageError, match="left as it is"):
        with_hooks(text, "f", EVENTS, OURS)
    with pytest.raises(UsageError, match="left as it is"):
        without_hooks(text, "f")


def test_a_shared_command_has_no_path_of_anybody() -> None:
    assert "/home/" not in shared_command("claude-code").replace('"$HOME/', "")
