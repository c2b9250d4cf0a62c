"""Principals: who sent a request, and what they may do.

    agent       speaks for its own ids, fetches its orders, reads its own agents; sees nothing else of the fleet
    viewer      reads everything, sends nothing
    operator    reads, speaks for any agent, acts on agents
    admin       the same, and manages tokens

A route names the roles that may call it (`web/routes.py`); the principal says which agents it may speak for and see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from msgspec import Struct

from lifesigns.errors import WireError


class Role(StrEnum):
    """What a token is for."""

    AGENT = "agent"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    KEY = "key"
    """It lets no one in: it is the public half of a key that agents sign with."""


PATTERNS_MAX: Final = 100
_is_pattern: Final = re.compile(r"[A-Za-z0-9._:@/-]{1,128}|[A-Za-z0-9._:@/-]{0,127}\*").fullmatch


class Patterns(Struct, frozen=True):
    """The ids an agent's token is for: `coder-7`, or `coder-*` for all that begin so, or several separated by commas.

    An id is a text and never a path: it is compared literally. A `*` stands for at least one more character, and never
    for a step upwards (`coder-7/../x`): if any program ever made a path of an id, it must not lead out of the prefix.
    """

    ids: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Patterns:
        """Parse patterns, or raise a `WireError` that says what would be right."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            raise WireError("agents", "is empty; a token of role agent needs ids, such as coder-7 or coder-*")
        if len(parts) > PATTERNS_MAX:
            raise WireError("agents", f"has {len(parts)} patterns, over the limit of {PATTERNS_MAX}")
        for part in parts:
            if _is_pattern(part) is None:
                raise WireError(
                    "agents",
                    f"has {part[:128]!r}, but a pattern is an id (A-Z a-z 0-9 . _ : @ / -), or its beginning with one * at the end",
                )
        whole = frozenset(part for part in parts if not part.endswith("*"))
        return cls(whole, tuple(part[:-1] for part in parts if part.endswith("*")))

    def match(self, agent_id: str) -> bool:
        """Whether this id is one of them."""
        if agent_id in self.ids:
            return True
        return (
            agent_id.startswith(self.prefixes)
            and agent_id not in self.prefixes
            and (".." not in agent_id or ".." not in agent_id.split("/"))
        )

    def texts(self) -> list[str]:
        """The patterns as text."""
        return [*sorted(self.ids), *(f"{prefix}*" for prefix in self.prefixes)]


NOBODY: Final = Patterns()


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of a valid token, or of a session made with one."""

    token_id: str
    name: str
    """The name for people."""
    role: Role
    patterns: Patterns = NOBODY
    speaks_for_all: bool = field(init=False)
    sees_all: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "speaks_for_all", self.role in (Role.OPERATOR, Role.ADMIN))
        object.__setattr__(self, "sees_all", self.role is not Role.AGENT)

    @property
    def by(self) -> str:
        """The author for the record. With the id, because two tokens may have the same name."""
        return f"{self.name} ({self.token_id})"

    def may_speak_for(self, agent_id: str) -> bool:
        """Whether it may report as this agent, and fetch this agent's orders."""
        return self.speaks_for_all or self.patterns.match(agent_id)

    def may_see(self, agent_id: str) -> bool:
        """Whether it may read about this agent."""
        return self.sees_all or self.patterns.match(agent_id)
