"""Changed keys: which beliefs changed since the hub last stored them.

A beat without an effect is no change: the next one repeats it, and after a restart every silence starts from zero.
Everything else is a change: a believed report, a deadline that fell due, and the subject of every effect.
"""

from __future__ import annotations


class ChangedKeys:
    """Keys of beliefs. Dicts, because they keep the order in which things changed."""

    __slots__ = ("agents", "fleet", "messages", "tasks")

    def __init__(self) -> None:
        self.agents: dict[str, None] = {}
        """Agents, each with its lineage, policy, breakers and side orders."""
        self.tasks: dict[str, None] = {}
        """Tasks, and the claims on them."""
        self.messages: dict[str, None] = {}
        self.fleet = False
        """Whether something without an agent changed: a brake, a release."""

    def __bool__(self) -> bool:
        return bool(self.agents or self.tasks or self.messages or self.fleet)

    def clear(self) -> None:
        """Everything is stored: begin anew."""
        self.agents.clear()
        self.tasks.clear()
        self.messages.clear()
        self.fleet = False


class NoChangedKeys(ChangedKeys):
    """For an engine without a store: it notes nothing, so that nothing piles up."""

    def __init__(self) -> None:
        super().__init__()
        self.agents, self.tasks, self.messages = _Nothing(), _Nothing(), _Nothing()


class _Nothing(dict[str, None]):
    def __setitem__(self, key: str, value: None) -> None:
        pass
