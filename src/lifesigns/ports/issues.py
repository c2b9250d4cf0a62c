"""The issue tracker: issues with labels, assignees, comments and events. GitHub is one.

Moments come as ages, in seconds before the answer by the tracker's own clock: its clock and ours need not agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from lifesigns.ports.not_taken import NotTaken


class TrackerError(NotTaken):
    """The issue tracker did not do what it was asked."""


class IssueRef(NamedTuple):
    """Which issue: `org/repo#12`."""

    repo: str
    number: int

    def __str__(self) -> str:
        return f"{self.repo}#{self.number}"


class Issue(Struct, frozen=True):
    """An open issue."""

    ref: IssueRef
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    """Their logins."""
    version: str = ""
    """Changes when the issue does."""


class IssueEvent(Struct, frozen=True):
    """Something that happened to an issue: `assigned`, `labeled`, ..."""

    id: int
    kind: str
    age: float
    actor: str = ""
    assignee: str = ""
    label: str = ""


class IssueComment(Struct, frozen=True):
    """A comment. A higher id was written later."""

    id: int
    age: float
    author: str
    body: str
    url: str = ""
    trusted: bool = True
    """Its author may change the issue: what others write, on a public repository everybody, is no word of a monitor."""


class IssueTracker(Protocol):
    """Reads and changes issues. Raises `TrackerError`, with `retry_after` if it is known when to ask again."""

    async def labelled(self, repo: str, label: str) -> Sequence[Issue]:
        """The open issues of a repository that have this label."""

    async def issue(self, ref: IssueRef) -> Issue | None:
        """One issue; None if it is closed or gone."""

    async def events(self, ref: IssueRef) -> Sequence[IssueEvent]:
        """What happened to it, oldest first."""

    async def comments(self, ref: IssueRef, within: float) -> Sequence[IssueComment]:
        """Those written or edited in the last so many seconds, oldest first."""

    async def comment(self, ref: IssueRef, body: str) -> IssueComment: ...

    async def edit_comment(self, ref: IssueRef, comment_id: int, body: str) -> bool:
        """False if it is gone."""

    async def delete_comment(self, ref: IssueRef, comment_id: int) -> None: ...

    async def unassign(self, ref: IssueRef, logins: Sequence[str]) -> None: ...

    async def add_label(self, ref: IssueRef, label: str) -> None: ...

    async def remove_label(self, ref: IssueRef, label: str) -> None: ...

    async def close(self) -> None: ...
