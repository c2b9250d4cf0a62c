"""Commits: a `git commit` that an agent made is a checkpoint of its work, by the hash that git prints.

Nothing is run and no repository is read: what a hook tells of a call is enough, and cannot be of another folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lifesigns.core.signals import CheckpointSaved
from lifesigns.integrations.hooks import waiting
from lifesigns.integrations.hooks.events import CALLS_MAX, HookEvent
from lifesigns.integrations.hooks.sessions import Session, Speaker

DEPTH_MAX: Final = 4
_COMMITS: Final = re.compile(r"\bgit\b[^\n;|&]{0,500}\bcommit\b")
_COMMITTED: Final = re.compile(r"^(?:Output: )?\[[^\]\n]{1,300} ([0-9a-f]{7,64})\] ", re.MULTILINE)
"""`[main 1a2b3c4] Say more`, `[main (root-commit) 1a2b3c4] Begin`, `[detached HEAD 1a2b3c4] Try`; Gemini says before it that this is the output."""
_ENDS: Final = ("PostToolUse", "PostToolBatch")


def checkpoints(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[CheckpointSaved]:
    """A checkpoint for each commit that this event tells of."""
    if event.hook_event_name not in _ENDS:
        return
    told = [(call.tool_input, call.tool_response) for call in event.tool_calls[:CALLS_MAX]]
    result = event.tool_response if event.tool_response is not None else event.tool_result
    for asked, printed in [*told, (event.tool_input, result)]:
        if any(_COMMITS.search(text) for text in _texts(asked)):
            for text in _texts(printed):
                for commit in _COMMITTED.findall(text):
                    yield CheckpointSaved(**waiting.named(session, speaker), checkpoint_id=commit)


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict) and depth < DEPTH_MAX:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one, depth + 1)
