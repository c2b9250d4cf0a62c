"""Ids and names, in paths, queries and bodies alike: their rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from lifesigns.web.answers import Problem

AgentId = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._:@/-]{1,128}\Z",
        min_length=1,
        max_length=128,
        examples=["coder-7"],
        description="1 to 128 of A-Z a-z 0-9 . _ : @ / -",
    ),
]
Name = Annotated[str, Meta(min_length=1, max_length=1024)]
TaskId = Annotated[str, Meta(min_length=1, max_length=1024, examples=["t-19"])]
MessageId = Annotated[str, Meta(min_length=1, max_length=1024, examples=["m-1"])]

IN_PATHS: Final[Mapping[str, Any]] = {"agent_id": AgentId, "task_id": TaskId, "message_id": MessageId}
"""Parameters of paths by their name; all others are a `Name`."""


def check_path(path: Mapping[str, str]) -> None:
    """Raises a `Problem` that names the part of the path that is no id."""
    for name, value in path.items():
        try:
            msgspec.convert(value, IN_PATHS.get(name, Name))
        except msgspec.ValidationError:
            if name == "agent_id":
                right = "an id is 1 to 128 of A-Z a-z 0-9 . _ : @ / -"
            else:
                right = "it has at most 1024 signs"
            raise Problem(400, f"is {value[:128]!r}, but {right}", field=name) from None
