"""Changed keys: which beliefs changed since whoever stores them last asked, by key.

A beat without an effect is no change: the next one says the same again, and after a restart every silence starts from zero.
Everything else is: a report that was believed, anything that fell due, and whatever an effect is about.
"""

from __future__ import annotations


class ChangedKeys:
    """Keys of beliefs. Dicts, because they keep the order in which things changed."""

    __slots__ = ("agents", "fleet", "messages", "tasks")

    def __init__(self) -> None:
        self.agents: dict[str, None] = {}
        """Agents, with everything that is kept for one: lineage, policy, breakers, side orders."""
        self.tasks: dict[str, None] = {}
        """Tasks, and the claims on them."""
        self.messages: dict[str, None] = {}
        self.fleet = False
        """Whether something changed that belongs to no agent: a brake, a release."""

    def __bool__(self) -> bool:
        return bool(self.agents or self.tasks or self.messages or self.fleet)

    def clear(self) -> None:
        """All of it is stored."""
        self.agents.clear()
        self.tasks.clear()
        self.messages.clear()
        self.fleet = False


class Unstored(ChangedKeys):
    """For an engine whose beliefs nobody stores: it notes nothing, so that nothing piles up."""

    def __init__(self) -> None:
        super().__init__()
        self.agents, self.tasks, self.messages = _Nothing(), _Nothing(), _Nothing()


class _Nothing(dict[str, None]):
    def __setitem__(self, key: str, value: None) -> None:
        pass
