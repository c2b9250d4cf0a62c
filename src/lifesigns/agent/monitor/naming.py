"""Naming: an agent's name, and what kind of thing it is."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterable
from typing import Any

from lifesigns.agent.monitor.attachment import Attachment
from lifesigns.agent.monitor.emitters import EmitterAttachment
from lifesigns.agent.monitor.processes import ProcessAttachment, is_process
from lifesigns.agent.monitor.tasks import TaskAttachment, running_loop
from lifesigns.agent.monitor.threads import ThreadAttachment
from lifesigns.errors import UsageError, WireError
from lifesigns.wire.limits import check_id


def name_of(what: Any, name: str | None) -> str:
    """Its name: as given, or its own `name`, `id` or `get_name()`."""
    found = name if name is not None else _own_name(what)
    if found is None:
        raise UsageError(f"{what!r} has neither a name nor an id: watch(..., name='coder-7')")
    try:
        return check_id(str(found), "name")
    except WireError as error:
        raise UsageError(f"{error}; say another with watch(..., name='coder-7')") from None


def _own_name(what: Any) -> object:
    for attribute in ("name", "id"):
        value = getattr(what, attribute, None)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return value
    get_name = getattr(what, "get_name", None)
    if callable(get_name):
        return get_name()
    if is_process(what):
        return f"pid-{what if isinstance(what, int) else what.pid}"
    return None


def is_emitter(what: Any) -> bool:
    """Whether it has `.on(event, handler)` and is nothing else that we know."""
    known = (asyncio.Future, asyncio.AbstractEventLoop, threading.Thread)
    return callable(getattr(what, "on", None)) and not isinstance(what, known) and not is_process(what)


def tie_to(what: Any, events: Iterable[str]) -> Attachment:
    """The attachment for this kind of thing."""
    if inspect.iscoroutine(what):
        what.close()
        raise UsageError("a coroutine does not run by itself: watch the task, asyncio.create_task(...)")
    if isinstance(what, asyncio.Future):
        return TaskAttachment(what)
    if isinstance(what, asyncio.AbstractEventLoop):
        return Attachment(what, here=True)
    if isinstance(what, threading.Thread):
        return ThreadAttachment(what)
    if is_process(what):
        return ProcessAttachment(what)
    if is_emitter(what):
        return EmitterAttachment(what, running_loop(), events)
    loop = running_loop()
    return Attachment(loop, by_itself=loop is None)
