"""Logs: one line for each thing worth knowing, for people at a terminal or as JSON for machines.

All modules use the standard library's logging, with an `action` as extra; this renders it. docs/reference/logs.md
explains the actions. We remove secrets at the last moment, whatever their source: our own messages, those of a driver,
a traceback.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from typing import Final, TextIO

from lifesigns.core.printable import spelled_out
from lifesigns.errors import UsageError
from lifesigns.ports.correlation import correlation_id
from lifesigns.views import moment

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
FORMATS: Final = ("text", "json")

HIDDEN: Final = "***"
_NAME: Final = "(?:token|secret|password|passwd|api_?key)"
_SECRETS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), rf"\1{HIDDEN}")
    for pattern in (
        r"(ls_[0-9a-z]{4,32}_)[0-9a-z]{32,128}",
        r"""((?:authorization|cookie)["']?\s*[:=]\s*(?:b?["'])?)[^\r\n"']+""",
        r"""\b(bearer\s+)(?!token\b)[^\s"',;]+""",
        rf"""({_NAME}["']?\s*[:=]\s*b?["'])[^\r\n"']+""",
        rf"""({_NAME}=)[^\s&"',;)]+""",
        r"""(://)[^/\s"'<>]+(?=@)""",
    )
)
"""Our tokens keep their id. Each pattern begins with a word, so that a long text is searched once."""
_SECRET_NAME: Final = re.compile(r"(?i)(?:^|_)(?:authorization|cookie|token|secret|password|passwd|api_key)$")

_NO_EXTRAS: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})
"""What every record has, and what other formatters leave on one."""

Fields = dict[str, object]
Render = Callable[[Fields], str]

_COLOURS: Final = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[1;31m"}
_PLAIN, _FAINT = "\x1b[0m", "\x1b[2m"


def set_up_logs(log_format: str, level: str, stream: TextIO | None = None) -> None:
    """Log this process to `stream` (standard error), from `level` on; drivers' messages from warnings on.

    Silences uvicorn's line for each request. Start it with `log_config=None`, or it undoes this.
    """
    if log_format not in FORMATS:
        raise UsageError(f"the format of the log is {log_format!r}, but is one of {', '.join(FORMATS)}")
    if level not in LEVELS:
        raise UsageError(f"the level of the log is {level!r}, but is one of {', '.join(LEVELS)}")
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(_Formatter(json.dumps if log_format == "json" else _text(_coloured(handler.stream))))
    root = logging.getLogger()
    for former in [h for h in root.handlers if isinstance(h, _Handler)]:
        root.removeHandler(former)
    root.addHandler(handler)
    ours = getattr(logging, level.upper())
    root.setLevel(max(ours, logging.WARNING))
    logging.getLogger("lifesigns").setLevel(ours)
    logging.getLogger("uvicorn.access").disabled = True


class _Handler(logging.StreamHandler[TextIO]):
    """Marks our own handler."""


def _coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")


class _Formatter(logging.Formatter):
    """A record as one line, without secrets."""

    def __init__(self, render: Render) -> None:
        super().__init__()
        self._render = render

    def format(self, record: logging.LogRecord) -> str:
        return self._render({name: _shown(name, value) for name, value in self._fields(record).items()})

    def _fields(self, record: logging.LogRecord) -> Fields:
        """Time, level, logger and event in this order; then everything else."""
        fields: Fields = {
            "timestamp": moment(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        extras = {name: value for name, value in vars(record).items() if name not in _NO_EXTRAS}
        if "action" in extras:
            fields["action"] = extras["action"]
        if about := correlation_id.get():
            fields["correlation_id"] = about
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = record.stack_info
        return fields | {name: value for name, value in extras.items() if name not in fields}


# --- secrets --------------------------------------------------------------------------------------------


def _shown(name: object, value: object) -> object:
    if isinstance(name, str) and _SECRET_NAME.search(name):
        return HIDDEN
    match value:
        case str():
            return without_secrets(value)
        case bool() | int() | None:
            return value
        case float():
            return value if isfinite(value) else str(value)  # JSON has no infinity.
        case Mapping():
            return {str(key): _shown(key, one) for key, one in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_shown("", one) for one in value]
        case _:
            return without_secrets(repr(value))


def without_secrets(text: str) -> str:
    """The text with tokens, passwords and the like masked."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


# --- lines ----------------------------------------------------------------------------------------------


def _text(coloured: bool) -> Render:
    """`18:00:00 warning  the store takes commits again  store_back`; with the logger's name if it is not ours."""

    def paint(colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if coloured and colour and text else text

    def render(fields: Fields) -> str:
        at, level, logger = (str(fields.pop(name)) for name in ("timestamp", "level", "logger"))
        what, action = _one_line(fields.pop("event")), str(fields.pop("action", ""))
        trace = "".join(_indented(str(fields.pop(name))) for name in ("exception", "stack") if name in fields)
        if not logger.startswith("lifesigns"):
            what = f"{logger}: {what}"
        rest = " ".join([action, *(f"{key}={_one_line(value)}" for key, value in fields.items())]).strip()
        line = f"{_clock(at)} {paint(_COLOURS.get(level, ''), f'{level:8}')} {what}"
        return f"{line}  {paint(_FAINT, rest)}{trace}" if rest else f"{line}{trace}"

    return render


def _clock(at: str) -> str:
    """A person at a terminal knows the day, and lives by the local time."""
    return datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S")


def _one_line(value: object) -> str:
    """Foreign text must not look like a line of ours, nor control a terminal."""
    return "\t".join(map(spelled_out, str(value).split("\t")))


def _indented(trace: str) -> str:
    return "".join(f"\n    {_one_line(line)}" for line in trace.split("\n"))
