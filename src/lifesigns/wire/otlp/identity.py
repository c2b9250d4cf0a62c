"""Identity: whose a record is. Which attributes say so, the configuration says.

A way to name an agent is one attribute or several (`service.name/session.id`), all of which must be there. An attribute
is looked for in the record and then in its resource; `resource.` before it means: in the resource alone. That is for what
some records of a run say and others do not: by the semantic conventions a span of a model call names its agent, and the
span of a tool call beside it names none. Were each taken by its own word, one agent would be torn into two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from lifesigns.core.digests import fingerprint
from lifesigns.wire.limits import ID_MAX, ID_SIGNS, TEXT_MAX
from lifesigns.wire.otlp.records import Attributes

OF_ONE_RUN: Final = frozenset(
    {"lifesigns.agent.id", "session.id", "conversation.id", "gen_ai.conversation.id", "gen_ai.agent.id"}
)
"""Attributes that name one run of one agent. Any other name may be that of a service in which many runs go on at once: then calls
of different processes and traces are no repetition of each other."""

_not_in_ids: Final = re.compile(f"[^{ID_SIGNS}]")
_ENDING: Final = 17
"""Signs of the digest that ends an id which was too long, and the dash before it."""


class Identity(NamedTuple):
    """An agent by its records."""

    agent_id: str
    task_id: str | None
    role: str | None
    shared: bool
    """Whether several runs may go by this id at once."""


class Identities:
    """Names agents, by the attributes that it was given for their id, task and role; the first that is there counts."""

    def __init__(self, agent_id: Sequence[str], task_id: Sequence[str], role: Sequence[str]) -> None:
        self._ids = [(names := way.split("/"), not OF_ONE_RUN.intersection(names)) for way in agent_id]
        self._tasks, self._roles = [[way] for way in task_id], [[way] for way in role]
        self.names = frozenset(name for way in (*agent_id, *task_id, *role) for name in way.split("/"))
        """All attributes that say something of it."""
        self._last: tuple[Attributes, Identity | None] = {}, None

    def of(self, attributes: Attributes, resource: Attributes) -> Identity | None:
        """Whose this is; None if nothing says so."""
        if not self.names.isdisjoint(attributes):
            return self._of(attributes, resource)
        # Nearly all records leave it to their resource, which they share with those before them.
        last, who = self._last
        if last is not resource:
            who = self._of({}, resource)
            self._last = resource, who
        return who

    def _of(self, attributes: Attributes, resource: Attributes) -> Identity | None:
        for names, shared in self._ids:
            found = _found(names, attributes, resource)
            if found is not None:
                task_id = _first(self._tasks, attributes, resource)
                return Identity(as_id(found), task_id, _first(self._roles, attributes, resource), shared)
        return None


def as_id(text: str) -> str:
    """A text as the id of an agent: what an id cannot have becomes a dash, and one that is too long ends in its digest."""
    made = _not_in_ids.sub("-", text)
    return made if len(made) <= ID_MAX else f"{made[: ID_MAX - _ENDING]}-{fingerprint(text)}"


def _first(ways: Sequence[Sequence[str]], attributes: Attributes, resource: Attributes) -> str | None:
    for names in ways:
        if (found := _found(names, attributes, resource)) is not None:
            return found[: TEXT_MAX // 4]
    return None


def _found(names: Sequence[str], attributes: Attributes, resource: Attributes) -> str | None:
    parts = []
    for name in names:
        inside = name.startswith("resource.")
        value = resource.get(name[9:]) if inside else attributes.get(name)
        if value is None and not inside:
            value = resource.get(name)
        if value is None or value == "" or not isinstance(value, str | int):
            return None
        parts.append(str(value))
    return "/".join(parts)
