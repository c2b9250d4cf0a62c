"""Reporting: what an agent says about itself and its work. The same for a `Sender` with its hub, and for an agent
that a `Monitor` in its own process watches.

No call waits, from any thread. A value that makes no sense raises `UsageError` at the call that brought it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Final

from lifesigns.agent.guard.guard import Breaker, guard
from lifesigns.agent.sender.beat_builder import BeatBuilder, amount, count, prose, text
from lifesigns.agent.sender.calls import BusyCall, CallScope, ModelCall, TaskScope, ToolCall
from lifesigns.agent.sender.states import content_of, digest_of
from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.errors import UsageError

Counts = tuple[int | None, int | None]
NO_COUNTS: Final[Counts] = (None, None)


class Reporting:
    """The reports of one agent. Its builder keeps what it says about itself and puts it into its beats."""

    __slots__ = ("_builder", "_call_ids", "_counts", "_scope")

    def __init__(self, builder: BeatBuilder, scope: CallScope) -> None:
        self._builder = builder
        self._scope = scope
        self._call_ids: Iterator[int] = itertools.count(1)
        self._counts = NO_COUNTS
        """Files and tests of its last progress."""

    # --- what it says about itself --------------------------------------------------------------------------------

    def status(self, status: str | None) -> None:
        """A status of your own; `idle`, `busy`, `waiting_for_human` and the like also say what it is doing."""
        self._builder.status = None if status is None else text(status)

    def load(self, load: float | None) -> None:
        """How full it is, 0 to 1; more is 1."""
        self._builder.load = None if load is None else min(1.0, amount(load, "load"))

    def capacity(self, tasks: int | None) -> None:
        """How many more tasks it could take."""
        self._builder.capacity = None if tasks is None else count(tasks, "capacity")

    def phase(self, phase: str | None) -> None:
        """Where in its work it is."""
        self._builder.phase = None if phase is None else text(phase)

    def metadata(self, **values: object) -> None:
        """Texts that go along with every beat; None takes one away. `provider` groups agents by their model provider."""
        self._builder.set_metadata(values)

    def progress(
        self,
        note: str | None = None,
        percent: float | None = None,
        *,
        files: int | None = None,
        tests: int | None = None,
    ) -> None:
        """It made progress. `files` (changed so far) and `tests` (that pass) are counts: without a note of its own, a
        report of the same counts as the last one is no progress, however often it comes."""
        counts = NO_COUNTS
        if files is not None or tests is not None:
            counts = (
                None if files is None else count(files, "files"),
                None if tests is None else count(tests, "tests"),
            )
        if note is None:
            if percent is None and counts in (NO_COUNTS, self._counts):
                return
            note = _counted(*counts)
        self._counts = counts
        self._builder.progress = text(note)
        done = None if percent is None else amount(percent, "percent")
        self._scope.tell(s.ProgressMade, task_id=self._builder.task, percent=done, note=prose(note))

    def checkpoint(
        self,
        checkpoint_id: str,
        *,
        parent: str | None = None,
        digest: str = "",
        size: int = 0,
        state: object = None,
    ) -> None:
        """It saved a checkpoint; `digest` and `parent` are compared before a later life continues from there.

        With `state` (bytes, a path, or anything that JSON can write) the hub keeps the content, if the sender reaches
        it over HTTP and the agent has a task; the checkpoint counts once the hub keeps it. Over a bus, and to a
        monitor, only its digest goes out.
        """
        self._builder.checkpoint_at = time.time()
        content = None if state is None else content_of(state)
        saved = s.CheckpointSaved(
            agent_id=self._scope.agent_id,
            incarnation=self._scope.incarnation,
            checkpoint_id=text(checkpoint_id),
            task_id=self._builder.task,
            parent_id=None if parent is None else text(parent),
            digest=text(digest) if content is None else digest_of(content),
            size=count(size, "size") if content is None else len(content),
        )
        self._report_saved(saved, content)

    def doing(self, doing: str | Doing | None, *, until: float | None = None, note: str = "") -> None:
        """Say what it does (`working`, `idle`, `waiting_for_human`, `rate_limited` ...), until when by the wall clock
        if that is known. It holds until you say otherwise; with None your calls and tasks decide."""
        known = None if doing is None else _doing(doing)
        self._builder.set_doing(known, None if until is None else amount(until, "until"))
        told = known or self._builder.derived or Doing.UNKNOWN
        self._scope.tell(s.DoingChanged, doing=told, until=until, note=prose(note))

    def tokens(self, tokens_in: int = 0, tokens_out: int = 0, cost: float = 0.0) -> None:
        """Tokens and money used since the last time; what `model()` calls report is added by itself."""
        used = count(tokens_in, "tokens_in") + count(tokens_out, "tokens_out")
        self._builder.add_usage(used, amount(cost, "cost"))

    def error(self, message: object, *, recoverable: bool = True) -> None:
        """Something went wrong outside of a tool or model call."""
        self._scope.unwell()
        self._scope.tell(s.ErrorReported, message=prose(message) or "error", recoverable=bool(recoverable))

    # --- what it is in the middle of --------------------------------------------------------------------------------

    def tool(
        self,
        name: str,
        args: object = None,
        *,
        bound: float | None = None,
        retry: bool = False,
        breaker: Breaker | str | None = None,
    ) -> ToolCall:
        """A tool call. `bound`: how long it may take before it becomes a finding; `retry`: a declared retry of a
        failed call, which never counts as a loop; `breaker`: one around it, or the name of one (`tool_execution` has
        its own policy). While that is open the block does not begin: it raises `BreakerOpen`."""
        around = guard(breaker) if isinstance(breaker, str) else breaker
        return ToolCall(self._scope, str(next(self._call_ids)), name, args, bound, retry, around)

    def model(self, *, bound: float | None = None) -> ModelCall:
        """A model call."""
        return ModelCall(self._scope, str(next(self._call_ids)), bound)

    def busy(self, note: str = "", *, bound: float | None = None) -> BusyCall:
        """A long operation that may block loop and thread: within its bound that is no freeze and no stall. The
        default bound is the policy's for a call (`stall.call_max`)."""
        return BusyCall(self._scope, str(next(self._call_ids)), note, bound)

    def task(self, task_id: str, *, expected_for: float | None = None, description: str = "") -> TaskScope:
        """A task: done when the block ends, failed if it raises."""
        return TaskScope(self._scope, task_id, expected_for, description)

    def _report_saved(self, saved: s.CheckpointSaved, content: bytes | None) -> None:
        """Report a checkpoint. A sender also uploads its content."""
        self._scope.say(saved)


def _counted(files: int | None, tests: int | None) -> str:
    parts = [
        f"{number} {what}"
        for number, what in ((files, "files changed"), (tests, "tests pass"))
        if number is not None
    ]
    return ", ".join(parts)


def _doing(doing: str | Doing) -> Doing:
    try:
        return Doing(doing)
    except ValueError:
        raise UsageError(f"doing is {doing!r}, known are {', '.join(Doing)}") from None
