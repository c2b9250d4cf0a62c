"""Calls: tool calls, model calls, tasks and declared long operations, as context managers.

They report their start and their end, whatever happens in between; an exception passes through untouched. A cancelled
call has not failed: its caller no longer wanted it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, Self

from lifesigns.agent.sender import evidence
from lifesigns.agent.sender.beat_builder import BeatBuilder, amount, count, prose, text
from lifesigns.core import signals as s
from lifesigns.core.health import Doing

CANCELLED: Final = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)


class CallBreaker(Protocol):
    """What a call needs of a `lifesigns.Breaker`."""

    def step_in(self) -> Any: ...
    def step_out(self, entry: Any, error: BaseException | None) -> None: ...


class ToolFailed(Exception):
    """A tool call failed without raising, for the breaker around it."""


class CallScope:
    """What the calls of one agent share: its identity, its beat builder, and where it reports."""

    def __init__(
        self, agent_id: str, incarnation: str, builder: BeatBuilder, say: Callable[[s.Report], None]
    ) -> None:
        self.agent_id, self.incarnation, self.builder, self.say = agent_id, incarnation, builder, say

    def began(self, call: object) -> None:
        """While a call is open, no nudge interrupts."""

    def ended(self, call: object) -> None:
        """Waiters for the end of a call may go on."""

    def unwell(self) -> None:
        """Something failed: a sender may beat faster."""

    def tell(self, kind: Callable[..., s.Report], **values: object) -> None:
        """Report for this agent's life."""
        self.say(kind(agent_id=self.agent_id, incarnation=self.incarnation, **values))


class Call:
    """An open call. While one is open the agent is busy, and no nudge interrupts it."""

    __slots__ = ("_bound", "_call_id", "_error", "_error_kind", "_scope", "_started_at")

    def __init__(self, scope: CallScope, call_id: str, bound: float | None) -> None:
        self._scope = scope
        self._call_id = call_id
        self._bound = None if bound is None else amount(bound, "bound")
        self._error: str | None = None
        self._error_kind: str | None = None
        self._started_at = 0.0

    def failed(self, error: object, kind: str | None = None) -> None:
        """It failed without raising. `kind` as the provider says it (429, 503, `rate_limit`): infrastructure errors
        do not count against the agent."""
        self._error = prose(error) or "failed"
        self._error_kind = None if kind is None else text(kind)

    def __enter__(self) -> Self:
        self._started_at = time.monotonic()
        self._scope.builder.set_working()
        self._scope.began(self)
        self._begin()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, CANCELLED) and self._error is None:
            self._error = _described(error)
            self._error_kind = _kind_of(error)
        self._end()
        self._scope.ended(self)
        if self._error is not None:
            self._scope.unwell()

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


class ToolCall(Call):
    """`with life.tool("grep", {"pattern": "x"}) as call: call.result(...)`."""

    __slots__ = ("_args", "_breaker", "_entry", "_result", "_retry", "_tool")

    def __init__(
        self,
        scope: CallScope,
        call_id: str,
        tool: str,
        args: object,
        bound: float | None,
        retry: bool,
        breaker: CallBreaker | None = None,
    ) -> None:
        super().__init__(scope, call_id, bound)
        self._breaker = breaker
        self._entry: Any = None
        self._tool = text(tool) or "tool"
        self._args = evidence.of_arguments(args)
        self._result = ""
        self._retry = retry

    def __enter__(self) -> Self:
        """With a breaker that is open this raises `BreakerOpen`: no call begins, so none is reported."""
        if self._breaker is not None:
            self._entry = self._breaker.step_in()
        return super().__enter__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if self._breaker is not None and self._entry is not None:
            entry, self._entry = self._entry, None
            failed = ToolFailed(self._error) if error is None and self._error is not None else error
            self._breaker.step_out(entry, failed)

    def result(self, value: object) -> None:
        """Its result. Only a digest leaves the process: it shows whether two results are the same, not what they say."""
        self._result = evidence.of_result(value)

    def _begin(self) -> None:
        scope = self._scope
        scope.builder.tool_at = time.time()
        scope.tell(
            s.ToolStarted,
            call_id=self._call_id,
            tool=self._tool,
            args_digest=self._args,
            bound=self._bound,
        )

    def _end(self) -> None:
        scope = self._scope
        scope.tell(
            s.ToolFinished,
            call_id=self._call_id,
            tool=self._tool,
            args_digest=self._args,
            result_digest=self._result,
            ok=self._error is None,
            error=self._error,
            error_kind=self._error_kind,
            duration_s=round(time.monotonic() - self._started_at, 6),
            retry=self._retry,
        )


class ModelCall(Call):
    """`with life.model() as call: call.tokens(812, 120, cost=0.004)`."""

    __slots__ = ("_context", "_cost", "_in", "_out", "_window")

    def __init__(self, scope: CallScope, call_id: str, bound: float | None) -> None:
        super().__init__(scope, call_id, bound)
        self._in = self._out = 0
        self._cost = 0.0
        self._context = self._window = 0

    def context(self, used: int, window: int) -> None:
        """How many tokens the model's context window holds now, and how many it can hold. An agent whose window stays
        full is failing."""
        self._context, self._window = count(used, "used"), count(window, "window")

    def tokens(self, tokens_in: int = 0, tokens_out: int = 0, cost: float = 0.0) -> None:
        """The tokens it used; repeated calls add up."""
        self._in += count(tokens_in, "tokens_in")
        self._out += count(tokens_out, "tokens_out")
        self._cost += amount(cost, "cost")

    def _begin(self) -> None:
        scope = self._scope
        scope.tell(
            s.ModelStarted,
            call_id=self._call_id,
            bound=self._bound,
        )

    def _end(self) -> None:
        scope = self._scope
        if self._in or self._out or self._cost:
            scope.builder.add_usage(self._in + self._out, self._cost)
        scope.tell(
            s.ModelFinished,
            call_id=self._call_id,
            tokens_in=self._in,
            tokens_out=self._out,
            cost_usd=self._cost,
            ok=self._error is None,
            error_kind=self._error_kind,
            context_tokens=self._context,
            context_window=self._window,
        )


class BusyCall(Call):
    """`with life.busy("compiling", bound=600)`: a declared long operation, which may block loop and thread."""

    __slots__ = ("_note",)

    def __init__(self, scope: CallScope, call_id: str, note: str, bound: float | None) -> None:
        super().__init__(scope, call_id, bound)
        self._note = prose(note)

    def _begin(self) -> None:
        until = None if self._bound is None else time.time() + self._bound
        self._scope.builder.busy[id(self)] = until, self._note
        self._tell(Doing.BUSY, until, self._note)

    def _end(self) -> None:
        builder = self._scope.builder
        builder.busy.pop(id(self), None)
        still = list(builder.busy.values())
        if still:
            self._tell(Doing.BUSY, builder.until, still[-1][1])
        else:
            self._tell(builder.said or builder.derived or Doing.WORKING, builder.until, "")

    def _tell(self, doing: Doing, until: float | None, note: str) -> None:
        scope = self._scope
        scope.tell(
            s.DoingChanged,
            doing=doing,
            until=until,
            note=note,
        )


class TaskScope:
    """`with life.task("t-19"):` done when the block ends, failed if it raises. Cancelled is neither."""

    __slots__ = ("_description", "_expected_for", "_failed", "_scope", "id")

    def __init__(
        self, scope: CallScope, task_id: str, expected_for: float | None, description: str = ""
    ) -> None:
        self._description = prose(description)
        self.id = text(task_id)
        self._scope = scope
        self._expected_for = None if expected_for is None else amount(expected_for, "expected_for")
        self._failed: str | None = None

    def failed(self, reason: object) -> None:
        """The task failed, though nothing raised."""
        self._failed = prose(reason) or "failed"

    def __enter__(self) -> Self:
        scope = self._scope
        scope.builder.take_task(self.id)
        scope.tell(
            s.TaskAssigned,
            task_id=self.id,
            expected_for=self._expected_for,
            description=self._description,
        )
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        scope, builder = self._scope, self._scope.builder
        if isinstance(error, CANCELLED):
            builder.end_task(self.id, done=None)
            if not builder.tasks:
                scope.tell(s.DoingChanged, doing=builder.doing or Doing.UNKNOWN, until=builder.until)
            return
        reason = self._failed or (None if error is None else _described(error))
        builder.end_task(self.id, done=reason is None)
        if reason is None:
            scope.tell(s.TaskDone, task_id=self.id)
        else:
            scope.tell(s.TaskFailed, task_id=self.id, reason=reason)
            scope.unwell()


def _described(error: BaseException) -> str:
    return prose(f"{type(error).__name__}: {error}")


def _kind_of(error: BaseException) -> str:
    """The status that HTTP clients leave on the error or its response; otherwise the name of its type."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and 400 <= status <= 599:
                return str(status)
    return type(error).__name__
