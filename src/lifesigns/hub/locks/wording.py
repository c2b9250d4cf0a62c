"""What is written into issues, and the marks by which we find it again. Pure.

Everything an agent said about itself is shown as code, cut to size: a worker's id must not mention people or bring links.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NamedTuple

from msgspec import Struct

from lifesigns.core.printable import clean
from lifesigns.core.words import duration
from lifesigns.ports.issues import IssueComment

SHOWN_MAX: Final = 64
WORKERS_SHOWN: Final = 50
"""Of one issue: a comment has room for 65,536 characters."""

WORKERS: Final = "<!-- lifesigns:workers -->"
"""The mark of the comment about an issue's workers."""
_RECOVERY: Final = re.compile(r"\A<!-- lifesigns:lock=(\d{1,19}) by=([\w.-]{1,64}) (releasing|released) -->")
_CLAIM: Final = re.compile(r"<!-- lifesigns:claim worker=([^\s<>]{1,256}) -->")

_MARKS: Final = {"healthy": "✅", "degraded": "⚠️", "starting": "⏳"}


class WorkerState(Struct, frozen=True):
    """How a worker of an issue is, as far as its comment tells."""

    worker_id: str
    health: str
    heard_at: float
    status: str = ""
    tasks: int = 0
    capacity: int | None = None
    cpu_percent: float | None = None
    memory_mb: float | None = None
    uptime_s: float | None = None
    completed: int | None = None

    @property
    def news(self) -> tuple[str, str, str]:
        """What is worth an edit before its time."""
        return self.worker_id, self.health, self.status


# --- a stale lock -------------------------------------------------------------------------------------


class Recovery(NamedTuple):
    """A comment about a stale lock: which lock, which monitor wrote it, and whether it is released."""

    comment: IssueComment
    lock_id: int
    by: str
    done: bool


def releasing_text(lock_id: int, by: str, worker: str, silent_for: float) -> str:
    """The comment that takes on a release: of several monitors the first one whose comment stands does it."""
    return (
        f"<!-- lifesigns:lock={lock_id} by={by} releasing -->\n"
        f"⚠️ **Stale Lock Detected**\n\n{_seen(worker, silent_for)}\n\nThe lock is being released."
    )


def released_text(lock_id: int, by: str, worker: str, silent_for: float) -> str:
    """The same comment when it is done."""
    return (
        f"<!-- lifesigns:lock={lock_id} by={by} released -->\n"
        f"⚠️ **Stale Lock Detected**\n\n{_seen(worker, silent_for)}\n\n"
        "**Actions Taken:**\n- ✅ Assignment removed\n- ✅ Lock released\n- ✅ Task returned to queue\n\n"
        "Task is now available for other workers to claim."
    )


def recoveries(comments: Sequence[IssueComment], lock_id: int | None = None) -> list[Recovery]:
    """Comments about stale locks (about one, if it is named), the first one first."""
    found = []
    for comment in sorted(comments, key=lambda one: one.id):
        mark = _RECOVERY.match(comment.body) if comment.trusted else None
        if mark and lock_id in (None, int(mark[1])):
            found.append(Recovery(comment, int(mark[1]), mark[2], mark[3] == "released"))
    return found


def _seen(worker: str, silent_for: float) -> str:
    return f"Worker {as_code(worker)} last seen {duration(silent_for)} ago."


# --- workers ------------------------------------------------------------------------------------------


def workers_text(states: Sequence[WorkerState], now: float) -> str:
    """The comment about the workers of an issue: one in full, several as a table."""
    stamp = _stamp(now)
    if len(states) == 1:
        return f"{WORKERS}\n💓 **Worker Heartbeat**\n\n{_one(states[0], now)}"
    rows = [
        f"| {as_code(one.worker_id)} | {_health(one)} | {_ago(one, now)} | {one.tasks} "
        f"| {_number(one.capacity)} | {_number(one.cpu_percent, '%')} | {_number(one.memory_mb, ' MB')} |"
        for one in states[:WORKERS_SHOWN]
    ]
    more = len(states) - len(rows)
    return "\n".join(
        [
            WORKERS,
            f"💓 **Worker Heartbeats** ({len(states)} workers, {stamp})",
            "",
            "| Worker | Status | Last heartbeat | Tasks | Capacity | CPU | Memory |",
            "|---|---|---|---|---|---|---|",
            *rows,
            *([f"\nand {more} more."] if more > 0 else []),
        ]
    )


def _one(state: WorkerState, now: float) -> str:
    lines = [
        f"Worker: {as_code(state.worker_id)}",
        f"Status: {_health(state)}",
        f"Timestamp: {_stamp(state.heard_at)} ({_ago(state, now)})",
        f"Active Tasks: {state.tasks}",
    ]
    if state.capacity is not None:
        lines.append(f"Available Capacity: {state.capacity}")
    told = [
        f"- {name}: {shown}"
        for name, shown in (
            ("CPU", None if state.cpu_percent is None else f"{state.cpu_percent:.1f}%"),
            ("Memory", None if state.memory_mb is None else f"{state.memory_mb:.1f} MB"),
            ("Uptime", None if state.uptime_s is None else duration(state.uptime_s)),
            ("Completed", state.completed),
        )
        if shown is not None
    ]
    return "\n".join([*lines, *(["", "**Metrics:**", *told] if told else [])])


def is_monitors(body: str) -> bool:
    """Whether a monitor wrote this."""
    return body.startswith(WORKERS) or _RECOVERY.match(body) is not None


def find_workers_comment(comments: Sequence[IssueComment]) -> IssueComment | None:
    """Ours, the first one if there are several."""
    ours = [comment for comment in comments if comment.trusted and comment.body.startswith(WORKERS)]
    return min(ours, key=lambda one: one.id) if ours else None


def _health(state: WorkerState) -> str:
    declared = f", says {as_code(state.status)}" if state.status else ""
    return f"{_MARKS.get(state.health, '❌')} {state.health}{declared}"


def _ago(state: WorkerState, now: float) -> str:
    return f"{duration(now - state.heard_at)} ago"


def _number(value: float | None, unit: str = "") -> str:
    return "" if value is None else f"{value:.0f}{unit}"


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- who claimed it -----------------------------------------------------------------------------------


def claimed_by(comments: Sequence[IssueComment], assignees: Sequence[str]) -> list[tuple[str, str]]:
    """Login and worker of those assignees who themselves said in a comment that they are workers. A comment of anybody else says
    nothing: on a public repository everybody may write one."""
    logins = {login.lower(): login for login in assignees}
    said: dict[str, str] = {}
    for comment in comments:
        if comment.author.lower() in logins and (mark := _CLAIM.search(comment.body)):
            said[logins[comment.author.lower()]] = mark[1]
    return list(said.items())


def as_code(text: str) -> str:
    """Somebody's words, as they are and without effect."""
    return f"`{clean(text, SHOWN_MAX).replace('`', chr(39)).replace('|', '/') or '?'}`"


def anonymous(worker_id: str) -> str:
    """The same for the same worker, and nothing else about it."""
    return f"worker-{sha256(worker_id.encode()).hexdigest()[:8]}"
