"""Work reports: what an agent can say of its work. Each method is one signal of the core, heard at the next look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.errors import UsageError
from lifesigns.wire.evidence import digest_of

_calls: Final = count(1)


class ToolCall:
    """A tool call that runs; give it its result before it ends."""

    __slots__ = ("result_digest",)

    def __init__(self) -> None:
        self.result_digest = ""

    def result(self, value: object) -> None:
        """What came out. Only a digest is kept, to notice when the same comes out over and over."""
        self.result_digest = digest_of(value)


class ModelCall:
    """A model call that runs; tell it what it used before it ends."""

    __slots__ = ("cost_usd", "tokens_in", "tokens_out")

    def __init__(self) -> None:
        self.tokens_in = self.tokens_out = 0
        self.cost_usd = 0.0

    def used(self, tokens_in: int = 0, tokens_out: int = 0, cost_usd: float = 0.0) -> None:
        """Tokens and money, of this call."""
        self.tokens_in, self.tokens_out, self.cost_usd = tokens_in, tokens_out, cost_usd


class Reporting:
    """What both a person and an agent would call progress, trouble and expense. Never blocks, from any thread."""

    __slots__ = ()

    name: str
    incarnation: str

    def say(self, report: s.Report) -> None:
        """Hand a signal over."""
        raise NotImplementedError

    @contextmanager
    def tool(self, tool: str, args: object = None, *, bound: float | None = None) -> Iterator[ToolCall]:
        """A tool call. While it runs the agent is busy, for `bound` seconds or what its policy allows a call."""
        call_id, call, began = f"call-{next(_calls)}", ToolCall(), monotonic()
        args_digest = digest_of(args, exact=True)
        self.say(
            s.ToolStarted(
                agent_id=self.name,
                incarnation=self.incarnation,
                call_id=call_id,
                tool=tool,
                args_digest=args_digest,
                bound=bound,
            )
        )
        error: str | None = None
        try:
            yield call
        except BaseException as failure:
            error = f"{type(failure).__name__}: {failure}"
            raise
        finally:
            self.say(
                s.ToolFinished(
                    agent_id=self.name,
                    incarnation=self.incarnation,
                    call_id=call_id,
                    tool=tool,
                    args_digest=args_digest,
                    result_digest=call.result_digest,
                    ok=error is None,
                    error=error,
                    duration_s=monotonic() - began,
                )
            )

    @contextmanager
    def model(self, *, bound: float | None = None) -> Iterator[ModelCall]:
        """A model call; tell it what it `used`."""
        call_id, call = f"call-{next(_calls)}", ModelCall()
        self.say(
            s.ModelStarted(agent_id=self.name, incarnation=self.incarnation, call_id=call_id, bound=bound)
        )
        ok = False
        try:
            yield call
            ok = True
        finally:
            self.say(
                s.ModelFinished(
                    agent_id=self.name,
                    incarnation=self.incarnation,
                    call_id=call_id,
                    tokens_in=call.tokens_in,
                    tokens_out=call.tokens_out,
                    cost_usd=call.cost_usd,
                    ok=ok,
                )
            )

    def tokens(self, tokens_in: int = 0, tokens_out: int = 0, cost_usd: float = 0.0) -> None:
        """Used since the last time, outside of `model()`."""
        self.say(
            s.ModelFinished(
                agent_id=self.name,
                incarnation=self.incarnation,
                call_id=s.TOKENS_ONLY,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                cost_usd=cost_usd,
            )
        )

    def progress(self, note: str = "", *, percent: float | None = None) -> None:
        """It came forward."""
        self.say(s.ProgressMade(agent_id=self.name, incarnation=self.incarnation, percent=percent, note=note))

    def checkpoint(self, checkpoint_id: str) -> None:
        """It saved what it has."""
        self.say(
            s.CheckpointSaved(agent_id=self.name, incarnation=self.incarnation, checkpoint_id=checkpoint_id)
        )

    def error(self, message: str, *, recoverable: bool = True) -> None:
        """It hit an error outside of a tool call."""
        self.say(
            s.ErrorReported(
                agent_id=self.name, incarnation=self.incarnation, message=message, recoverable=recoverable
            )
        )

    def task(self, task_id: str) -> None:
        """It has this task now."""
        self.say(s.TaskAssigned(agent_id=self.name, incarnation=self.incarnation, task_id=task_id))

    def task_done(self, task_id: str) -> None:
        """It has finished this task."""
        self.say(s.TaskDone(agent_id=self.name, incarnation=self.incarnation, task_id=task_id))

    def doing(self, doing: Doing | str, *, lasts_for: float | None = None, note: str = "") -> None:
        """What it does, apart from how well it is: `working`, `idle`, `waiting_for_human`, `rate_limited` ..."""
        try:
            known = Doing(doing)
        except ValueError:
            raise UsageError(f"doing: {doing!r} is none of {', '.join(Doing)}") from None
        until = None if lasts_for is None else monotonic() + lasts_for
        self.say(
            s.DoingChanged(
                agent_id=self.name, incarnation=self.incarnation, doing=known, until=until, note=note
            )
        )
