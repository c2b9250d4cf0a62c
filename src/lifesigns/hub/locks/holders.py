"""Holders: which workers may hold a lock, and what the engine knows of them.

An assignee is a worker if the configuration says so, or the assignee itself did in a comment; everybody else is a person. An agent's
id that equals a login proves nothing: whoever has an agent's token chooses its id, and could have people unassigned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from lifesigns.core.agent import Agent
from lifesigns.core.engine import Engine
from lifesigns.core.fleet import groups_of
from lifesigns.core.policy import ClaimPolicy
from lifesigns.hub.locks.rules import LockRules
from lifesigns.hub.locks.staleness import WorkerSigns
from lifesigns.ports.issues import Issue, IssueRef

_NAMED: Final = re.compile(r"([^/\s#]+/[^/\s#]+)#(\d{1,10})")
_ADDRESS: Final = re.compile(r"https?://[^/\s]+/([^/\s#]+/[^/\s#]+)/issues/(\d{1,10})")
_NUMBER: Final = re.compile(r"(?:#|issue-|task-)?(\d{1,10})")


def issue_of(task_id: str, repos: Sequence[str]) -> IssueRef | None:
    """The issue that a task is: `org/repo#12`, its address, or, if there is only one repository, `12`, `#12`, `issue-12` or
    `task-12`."""
    if found := _NAMED.fullmatch(task_id) or _ADDRESS.fullmatch(task_id):
        known = {repo.lower(): repo for repo in repos}
        repo = known.get(found[1].lower())
        return None if repo is None else IssueRef(repo, int(found[2]))
    if len(repos) == 1 and (found := _NUMBER.fullmatch(task_id)):
        return IssueRef(repos[0], int(found[1]))
    return None


class Holders:
    """What the engine knows, for one look at the locks."""

    def __init__(
        self, engine: Engine, rules: LockRules, usual: ClaimPolicy, last_holders: Mapping[IssueRef, str]
    ) -> None:
        self._engine = engine
        self._rules = rules
        self._last_holders = last_holders
        """Who held the claim of an issue at the hub before it was released."""
        self.usual = usual
        """For workers that the engine does not know."""
        self._by_login: dict[str, list[Agent]] = {}
        self._claims: dict[IssueRef, list[str]] = {}
        self._tasks: dict[IssueRef, list[str]] = {}
        for task_id, claim in engine.beliefs.claims.items():
            if (ref := issue_of(task_id, rules.repos)) is not None:
                self._claims.setdefault(ref, []).append(claim.agent_id)
        for agent in engine.agents():
            if agent.task_id and (ref := issue_of(agent.task_id, rules.repos)) is not None:
                self._tasks.setdefault(ref, []).append(agent.id)

    def claimed_by(self, ref: IssueRef) -> str | None:
        """The agent that holds the issue's claim at the hub."""
        return next(iter(self._claims.get(ref, ())), None)

    def persons(self, issue: Issue, said: Mapping[str, str]) -> tuple[str, ...]:
        """Assignees that are no workers."""
        return tuple(one for one in issue.assignees if one not in said and not self._rules.agents_of(one))

    def workers(self, issue: Issue, said: Mapping[str, str]) -> Iterator[tuple[str, Agent | None]]:
        """Agents that may hold a lock: the one that its assignee named, those that work on it, the one that held its claim
        last, or everybody under that account; the first of these that there is. Without any there is only a name."""
        for login in issue.assignees:
            named = said.get(login)
            known = self._under(login)
            if named is not None:
                yield named, self._engine.agent(named)
            elif known:
                likely = _among(known, self._at(issue.ref)) or _among(
                    known, {self._last_holders.get(issue.ref, "")}
                )
                yield from ((agent.id, agent) for agent in likely or known)
            else:
                agents = self._rules.agents_of(login)
                only = agents[0] if len(agents) == 1 and not set("*?[") & set(agents[0]) else login
                yield only, None

    def at_work(self, issue: Issue) -> list[Agent]:
        """Workers under the accounts of its assignees that say they are at it."""
        at_it = self._at(issue.ref)
        found = {agent.id: agent for login in issue.assignees for agent in _among(self._under(login), at_it)}
        return [found[name] for name in sorted(found)]

    def signs(self, workers: Iterable[tuple[str, Agent | None]], now: float) -> tuple[WorkerSigns, ...]:
        return tuple(self._signs(name, agent, now) for name, agent in workers)

    def _signs(self, name: str, agent: Agent | None, now: float) -> WorkerSigns:
        if agent is None:
            return WorkerSigns(name, None, alive=False, lease=self.usual.lease, grace=self.usual.grace)
        policy, beliefs = self._engine.policy_of(agent).claim, self._engine.beliefs
        heard_at = None
        if agent.beats:
            heard_at = max(agent.heard_at, beliefs.awareness.silent_from(agent))
        groups = (beliefs.fleet.groups.get(group) for group in groups_of(agent))
        return WorkerSigns(
            agent.id,
            heard_at,
            alive=agent.alive or agent.past.paused_until > now,
            lease=policy.lease,
            grace=policy.grace,
            braked=any(group is not None and group.braked for group in groups),
        )

    def _at(self, ref: IssueRef) -> set[str]:
        return {*self._tasks.get(ref, ()), *self._claims.get(ref, ())}

    def _under(self, login: str) -> list[Agent]:
        if login not in self._by_login:
            patterns = self._rules.agents_of(login)
            self._by_login[login] = [
                agent
                for agent in self._engine.agents()
                if any(fnmatchcase(agent.id, pattern) for pattern in patterns)
            ]
        return self._by_login[login]


def _among(agents: Iterable[Agent], names: set[str]) -> list[Agent]:
    return [agent for agent in agents if agent.id in names]
