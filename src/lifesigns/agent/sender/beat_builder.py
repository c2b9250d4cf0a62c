"""Beat builder: keeps what an agent says about itself until the next beat carries it.

Every call is an attribute write or two. Texts are cut to the wire's limits, so that a long phase cannot cost a beat;
values that make no sense raise `UsageError` at the call.

Not in a beat: `error_count`. Errors are reported the moment they happen; with a total in the beats too, the engine
would count them twice, and take every beat without a new error for a success.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from lifesigns.agent.sender.vitals import Vitals
from lifesigns.core.health import Doing
from lifesigns.core.signals import BeatReceived, Metrics
from lifesigns.errors import UsageError
from lifesigns.wire.beats import DOING_BY_STATUS
from lifesigns.wire.codec import written
from lifesigns.wire.limits import COUNT_MAX, METADATA_MAX, PROSE_MAX, TASKS_MAX, TEXT_MAX

STACK: Final = "stack"
"""The metadata key under which a frozen agent reports where it stands. Not reserved: it exists only during a freeze."""


class BeatBuilder:
    """What one agent last said about itself. Safe from any thread."""

    def __init__(
        self,
        *,
        host: str = "",
        pid: int = 0,
        role: str | None = None,
        task: str | None = None,
        between_calls: Doing = Doing.WORKING,
    ) -> None:
        self.host, self.pid, self.role = host, pid, role
        self._between_calls = between_calls
        """The assumed state of an agent without a task between two calls: it thinks, as far as a hub can tell."""
        self.status: str | None = None
        self.load: float | None = None
        self.phase: str | None = None
        self.progress: str | None = None
        self.capacity: int | None = None
        self.said: Doing | None = None
        """The agent's own statement; it wins over what follows from its calls and tasks."""
        self.said_until: float | None = None
        self.derived: Doing | None = Doing.WORKING if task else None
        self.busy: dict[int, tuple[float | None, str]] = {}
        """Open declared operations: until when, and what they are."""
        self.tasks: dict[str, None] = {task: None} if task else {}
        self.tasks_completed = 0
        self.tasks_failed = 0
        self.tool_at: float | None = None
        self.checkpoint_at: float | None = None
        self.idle_at: float | None = None
        """Since when it idles, by the monotonic clock."""
        self.metadata: dict[str, str] | None = None
        self._tokens: int | None = None
        self._cost: float | None = None
        self._born_at = time.monotonic()
        self._counting = threading.RLock()
        """Reentrant, so that a signal handler that counts cannot wait for the thread it interrupted."""

    # --- what it does -----------------------------------------------------------------------------------

    @property
    def doing(self) -> Doing | None:
        """The `doing` of a beat. A status that implies one wins over our guess."""
        if self.busy:
            return Doing.BUSY
        if self.said is not None:
            return self.said
        return DOING_BY_STATUS.get(self.status, self.derived)

    @property
    def until(self) -> float | None:
        """Until when, by the wall clock; of several declared operations the longest counts."""
        if self.busy:
            ends = [until for until, _ in list(self.busy.values())]
            return max((end for end in ends if end is not None), default=None)
        return self.said_until

    def set_working(self) -> None:
        self.derived, self.idle_at = Doing.WORKING if self.tasks else self._between_calls, None

    def set_doing(self, doing: Doing | None, until: float | None = None) -> None:
        self.said, self.said_until = doing, until
        self.idle_at = time.monotonic() if self.doing is Doing.IDLE else None

    @property
    def task(self) -> str | None:
        """The task it took last."""
        return next(reversed(list(self.tasks)), None) if self.tasks else None

    def take_task(self, task_id: str) -> None:
        self.tasks[task_id] = None
        self.set_working()

    def end_task(self, task_id: str, *, done: bool | None) -> None:
        """A task is over, done or failed; None if neither."""
        self.tasks.pop(task_id, None)
        if done is not None:
            self.count_task(done=done)
        if not self.tasks:
            self.derived, self.idle_at = Doing.IDLE, time.monotonic()

    def count_task(self, *, done: bool) -> None:
        with self._counting:
            if done:
                self.tasks_completed += 1
            else:
                self.tasks_failed += 1

    # --- what it has --------------------------------------------------------------------------------------

    def add_usage(self, tokens: int, cost: float) -> None:
        with self._counting:
            self._tokens = min(COUNT_MAX, (self._tokens or 0) + tokens)
            if cost or self._cost is not None:
                self._cost = (self._cost or 0.0) + cost

    @property
    def activity(self) -> tuple[object, ...]:
        """Changes whenever something was done."""
        return (
            self.tool_at,
            self.checkpoint_at,
            self.progress,
            self._tokens,
            self.tasks_completed,
            self.tasks_failed,
        )

    def set_metadata(self, values: Mapping[str, object]) -> None:
        """Metadata; None takes a key out. What does not fit is the caller's mistake."""
        with self._counting:
            tags = dict(self.metadata or {})
            for key, value in values.items():
                if value is None:
                    tags.pop(key, None)
                else:
                    tags[text(key)] = text(value)
            if len(tags) > METADATA_MAX:
                raise UsageError(f"metadata has {len(tags)} keys, a beat carries {METADATA_MAX}")
            self.metadata = tags or None

    @property
    def totals(self) -> tuple[object, ...]:
        """What only beats carry, so that it would be lost if it came after the last one."""
        return (
            self._tokens,
            self._cost,
            self.tasks_completed,
            self.tasks_failed,
            self.status,
            self.load,
            self.phase,
            self.progress,
            self.capacity,
            self.metadata,
        )

    # --- the beat -------------------------------------------------------------------------------------------

    def beat(
        self,
        agent_id: str,
        incarnation: str,
        seq: int,
        vitals: Vitals,
        lag: float | None,
        stack: str | None = None,
    ) -> BeatReceived:
        """A beat of this moment; `stack` is where a frozen loop stands."""
        tasks = tuple(list(self.tasks)[-TASKS_MAX:])
        return BeatReceived(
            agent_id,
            seq=seq,
            incarnation=incarnation,
            sent_at=time.time(),
            status=self.status,
            doing=self.doing,
            until=self.until,
            load=self.load,
            task_id=tasks[-1] if tasks else None,
            tasks=tasks,
            phase=self.phase,
            progress=self.progress,
            last_tool_call=_shown(self.tool_at),
            last_checkpoint=_shown(self.checkpoint_at),
            token_count=self._tokens,
            cost_usd=self._cost,
            capacity_available=self.capacity,
            loop_lag_ms=None if lag is None else round(lag * 1000.0, 1),
            metrics=Metrics(
                vitals.cpu_percent,
                vitals.memory_mb,
                self.tasks_completed,
                self.tasks_failed,
                round(time.monotonic() - self._born_at, 1),
            ),
            host=self.host,
            pid=self.pid,
            role=self.role,
            metadata=self.metadata if stack is None else self._tags_and(stack),
        )

    def _tags_and(self, stack: str) -> dict[str, str]:
        """Metadata with the stack, if there is room: a refused beat would be worse than a missing stack."""
        tags = {**(self.metadata or {}), STACK: text(stack)}
        if len(tags) > METADATA_MAX:
            del tags[STACK]
        return tags


def _shown(moment: float | None) -> str | None:
    return None if moment is None else str(written(moment))


# --- values at the door ---------------------------------------------------------------------------------------


def text(value: object) -> str:
    """A short text within the wire's limits."""
    said = value if isinstance(value, str) else str(value)
    if said.isascii() and len(said) <= TEXT_MAX:
        return said
    return said.encode("utf-8", "replace")[:TEXT_MAX].decode("utf-8", "ignore")


def prose(value: object) -> str:
    """A text for people, cut as the wire would."""
    said = (value if isinstance(value, str) else str(value))[:PROSE_MAX]
    return said if said.isascii() else said.encode("utf-8", "replace").decode("utf-8")


def amount(value: Any, what: str) -> float:
    """A number from 0 upwards."""
    if isinstance(value, int | float) and isfinite(value) and value >= 0:
        return float(value)
    raise UsageError(f"{what} is {value!r}, but it has to be a number from 0 upwards")


def count(value: Any, what: str) -> int:
    """A whole number from 0 upwards."""
    if isinstance(value, int) and 0 <= value <= COUNT_MAX:
        return int(value)
    raise UsageError(f"{what} is {value!r}, but it has to be a whole number from 0 upwards")
