"""Profiles and roles: named policies, written as differences, and the book that hands them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

from lifesigns.core.detectors import forecast
from lifesigns.core.policy import MINUTE, Policy
from lifesigns.core.policy_bounds import OwnPolicy, Path, differing, flat, tightened
from lifesigns.errors import PolicyError

DEFAULT_PROFILE: Final = "swarm"

PROFILES: Final[Mapping[str, Mapping[str, Any]]] = {
    "swift": {
        "silence": {"interval": 1.0, "timeout": 3.0, "ping_wait": 0.4},
        "freeze": {"after": 1.5},
    },
    "balanced": {
        "silence": {"interval": 2.0, "timeout": 5.0, "ping_wait": 1.0},
        "freeze": {"after": 1.8},
    },
    "tolerant": {
        "silence": {"interval": 3.0, "timeout": 10.0, "missed_max": 3, "ping_wait": 1.0},
        "freeze": {"after": 5.0},
    },
    "swarm": {},
    "fast_tasks": {
        "silence": {
            "interval": 2 * MINUTE,
            "timeout": 5 * MINUTE,
            "ping_wait": 15.0,
            "degrade_on_suspicion": True,
            "grace": 5 * MINUTE,
        },
        "freeze": {"after": 2 * MINUTE, "conclusive_after": 10 * MINUTE},
        "claim": {"lease": 5 * MINUTE, "check_wait": 30.0},
    },
    "fleet": {
        "silence": {
            "interval": 5 * MINUTE,
            "timeout": 10 * MINUTE,
            "ping_wait": 30.0,
            "degrade_on_suspicion": True,
            "grace": 10 * MINUTE,
        },
        "freeze": {"after": 5 * MINUTE, "conclusive_after": 15 * MINUTE},
        "claim": {"lease": 10 * MINUTE, "grace": 10 * MINUTE, "check_wait": MINUTE},
    },
    "long_tasks": {
        "silence": {
            "interval": 10 * MINUTE,
            "timeout": 30 * MINUTE,
            "ping_wait": 2.5 * MINUTE,
            "degrade_on_suspicion": True,
            "grace": 30 * MINUTE,
        },
        "freeze": {"after": 10 * MINUTE, "conclusive_after": 30 * MINUTE},
        "claim": {"lease": 30 * MINUTE, "grace": 30 * MINUTE, "check_wait": 5 * MINUTE},
    },
}

ROLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "critical-infrastructure": {
        "silence": {"interval": 30.0, "timeout": 60.0, "missed_max": 2, "ping_wait": 5.0}
    },
    "active-development": {
        "silence": {"interval": 60.0, "timeout": 180.0, "missed_max": 3, "ping_wait": 10.0}
    },
    "background": {
        "silence": {
            "interval": 5 * MINUTE,
            "timeout": 15 * MINUTE,
            "missed_max": 3,
            "ping_wait": 30.0,
            "grace": 10 * MINUTE,
        },
        "claim": {"lease": 15 * MINUTE},
    },
    "standby": {
        "silence": {
            "interval": 15 * MINUTE,
            "timeout": 75 * MINUTE,
            "missed_max": 5,
            "ping_wait": MINUTE,
            "grace": 30 * MINUTE,
        },
        "claim": {"lease": 75 * MINUTE},
    },
}


@cache
def profile(name: str) -> Policy:
    """The policy of a named profile."""
    if name not in PROFILES:
        raise PolicyError("profile", f"{name!r} is unknown; known are {', '.join(PROFILES)}")
    return Policy().with_changes(PROFILES[name])


OWN_MAX: Final = 1000
"""Different policies in use that the agents of one token may ask for by their own word; more of them are a mistake or an
attack."""

OWN_SIZE_MAX: Final = 8192
"""Signs of all words about one agent's policy. A policy in which every key is another has half of that."""

FIRST: Final = 0
"""The number of the default policy."""


@dataclass(slots=True)
class _OwnPolicyUse:
    """Who uses a policy that agents asked for."""

    key: tuple[str, ...]
    source: str
    users: int = 0


class PolicyBook:
    """Which policy an agent gets: the default, changed by its role, by patterns of its id, by what operators said of it; and by
    its own word, which can only tighten what the administrator set (`policy_bounds.py`).

    Policies are numbered, because a belief holds a number and not a policy: it is small, it can be stored, and
    after a restart with another configuration it is simply looked up again. A policy that agents asked for is dropped
    with its last user (`move`), and counts for the token that asked for it.
    """

    def __init__(
        self,
        default: Policy | None = None,
        *,
        roles: Mapping[str, Mapping[str, Any]] = ROLES,
        agents: Mapping[str, Mapping[str, Any]] | None = None,
        fixed: Collection[Path] = (),
        given_roles: Mapping[str, str] | None = None,
    ) -> None:
        self.default = default or profile(DEFAULT_PROFILE)
        self._role_words = roles
        self._roles = {
            name: _changed(self.default, changes, f"roles.{name}") for name, changes in roles.items()
        }
        self._agents = dict(agents or {})
        for pattern, changes in self._agents.items():
            _changed(self.default, changes, f"agents.{pattern}")
        self._given_roles = dict(given_roles or {})
        """By pattern of the id: the role that these agents have."""
        self._fixed = frozenset(fixed) | differing(self.default, Policy())
        """What the administrator set for everybody, be it to the usual value."""
        self._begin()

    def _begin(self) -> None:
        """No agent uses it yet."""
        self.policies: list[Policy] = [self.default]
        self.lines = [_lines(self.default)]
        """Of each policy: from which lag (ms), CPU (%) and memory (MB) on a beat is worth a second look; and
        from which memory on it is worth one if the agent is not followed yet (`detectors/forecast.py`)."""
        self.suspect_after = [self.default.silence.suspect_after]
        """Of each policy: the fixed margin of silence, at hand for every deadline that comes up."""
        self.refused: list[Sequence[str]] = [()]
        """Of each policy: the values that were asked for and do not count, and why."""
        self.conflicts: dict[str, str] = {}
        """Words that could not be followed, and why."""
        self._numbers: dict[tuple[str, ...], int] = {("",): FIRST}
        self._own: dict[int, _OwnPolicyUse] = {}
        self._unused: list[int] = []
        self._asked_by: Counter[str] = Counter()

    def unused_copy(self) -> PolicyBook:
        """The same book, before any agent used it. What the administrator said is shared, and not checked again."""
        book = PolicyBook.__new__(PolicyBook)
        book.__dict__.update(self.__dict__)
        book._begin()
        return book

    def role_of(self, agent_id: str, said: str | None) -> str | None:
        """The role that the administrator gave this agent, whatever it says; else the one it says."""
        given = [role for pattern, role in self._given_roles.items() if fnmatchcase(agent_id, pattern)]
        return given[-1] if given else said

    def of(self, agent_id: str, role: str | None = None, own: OwnPolicy | None = None) -> Policy:
        """The policy of an agent; later words win: role, then every matching pattern, then those about this agent."""
        return self[self.number(agent_id, role, own)]

    def __getitem__(self, number: int) -> Policy:
        return self.policies[number]

    def number(self, agent_id: str, role: str | None = None, own: OwnPolicy | None = None) -> int:
        """The number of an agent's policy."""
        known_role = role if role in self._roles else None
        patterns = tuple(p for p in self._agents if fnmatchcase(agent_id, p))
        key = (known_role or "", *patterns)
        if own is not None:
            key = (*key, repr(own.granted), repr(own.words))
        number = self._numbers.get(key)
        if number is None:
            policy = self._roles[known_role] if known_role else self.default
            for pattern in patterns:
                policy = self._with_pattern(policy, pattern, known_role)
            if own is None:
                number = self._add(key, policy)
            else:
                number = self._add_own(key, policy, own, self._fixed_for(known_role, patterns))
        return number

    def move(self, before: int, after: int) -> None:
        """An agent leaves one policy for another."""
        if after in self._own:
            self._own[after].users += 1
        use = self._own.get(before)
        if use is not None:
            use.users -= 1
            if not use.users:
                del self._own[before], self._numbers[use.key]
                self._asked_by[use.source] -= 1
                self._unused.append(before)

    def _add_own(self, key: tuple[str, ...], policy: Policy, own: OwnPolicy, fixed: frozenset[Path]) -> int:
        if len(key[-1]) > OWN_SIZE_MAX:
            raise PolicyError("policy", f"has {len(key[-1])} signs, over the limit of {OWN_SIZE_MAX}")
        if own.words and self._asked_by[own.source] >= OWN_MAX:
            raise PolicyError("policy", f"{OWN_MAX} different policies of this token's agents are in use")
        policy = policy.with_changes(own.granted)
        words, refused = tightened(policy, own.words, fixed | flat(own.granted).keys())
        number = self._add(key, policy.with_changes(words), refused)
        source = own.source if own.words else ""
        self._own[number] = _OwnPolicyUse(key, source)
        self._asked_by[source] += 1
        return number

    def _add(self, key: tuple[str, ...], policy: Policy, refused: Sequence[str] = ()) -> int:
        if self._unused:
            number = self._unused.pop()
            self.policies[number], self.lines[number], self.refused[number] = policy, _lines(policy), refused
            self.suspect_after[number] = policy.silence.suspect_after
        else:
            number = len(self.policies)
            self.policies.append(policy)
            self.lines.append(_lines(policy))
            self.suspect_after.append(policy.silence.suspect_after)
            self.refused.append(refused)
        self._numbers[key] = number
        return number

    def _fixed_for(self, role: str | None, patterns: Sequence[str]) -> frozenset[Path]:
        """What the administrator set for an agent. What a built-in role is by itself nobody has set."""
        usual = flat(ROLES.get(role or "", {}))
        said = flat(self._role_words.get(role or "", {})).items()
        fixed = self._fixed | {path for path, value in said if usual.get(path) != value}
        return fixed.union(*(flat(self._agents[pattern]) for pattern in patterns))

    def _with_pattern(self, policy: Policy, pattern: str, role: str | None) -> Policy:
        """A pattern that is possible by itself may be impossible on top of a role: then the role stands."""
        try:
            return policy.with_changes(self._agents[pattern])
        except PolicyError as error:
            self.conflicts[f"agents.{pattern} on top of role {role}"] = str(error)
            return policy


def _lines(policy: Policy) -> tuple[float, float, float, float]:
    load = policy.overload
    return (
        1000.0 * policy.freeze.after,
        load.cpu_degraded,
        load.memory_degraded_mb,
        forecast.memory_from(policy),
    )


def _changed(policy: Policy, changes: Mapping[str, Any], path: str) -> Policy:
    try:
        return policy.with_changes(changes)
    except PolicyError as error:
        raise PolicyError(f"{path}.{error.key}", error.detail) from None
