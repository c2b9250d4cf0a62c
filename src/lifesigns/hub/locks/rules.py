"""Which locks are watched, whose they are, and how much is written into the tracker."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct, field


class LockRules(Struct, frozen=True):
    """The rules. When a lock is stale, the policy of its worker says: `claim.lease` and `claim.grace`."""

    repos: tuple[str, ...]
    workers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Logins (patterns) of accounts that are workers, and the agents (patterns) that work under each. Every other
    assignee is a person."""
    claimed: str = "status:in-progress"
    queued: str = "status:queued"
    look_every: float = 60.0
    release: bool = True
    comments: bool = True
    comment_every: float = 300.0
    per_minute: int = 20
    per_hour: int = 300
    """Comments written or edited."""
    anonymous: bool = False
    """Comments show a digest instead of a worker's id."""

    def agents_of(self, login: str) -> tuple[str, ...]:
        """The agents (patterns) behind an account; empty if it is no worker's. Logins have no case at GitHub."""
        return tuple(
            agent
            for account, agents in self.workers.items()
            if fnmatchcase(login.lower(), account.lower())
            for agent in agents
        )
