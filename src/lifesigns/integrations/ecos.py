"""The health files of ECOS: `heartbeat-config.json` and `task-tracking.json` in `.ecos/agent-health`, read and written.

An error names the file, the entry and the key, and says what would be right. Keys that are not ours are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from lifesigns.errors import UsageError
from lifesigns.files import write_whole

HEARTBEATS: Final = "heartbeat-config.json"
TASKS: Final = "task-tracking.json"
FOLDER: Final = Path(".ecos/agent-health")
FILE_MAX: Final = 64 * 1024 * 1024
READABLE: Final = 0o644

ROLES: Final[Mapping[str, str]] = {
    "background-batch-processing": "background",
    "background-processing": "background",
    "batch-processing": "background",
    "idle-standby": "standby",
    "idle": "standby",
}
"""Roles of the document that have another name here."""

T = TypeVar("T")


class EcosAgent(msgspec.Struct, frozen=True):
    """An entry of `heartbeat-config.json`."""

    agent_id: str
    role: str | None
    interval_seconds: float
    missed_threshold: int
    last_heartbeat: float | None = None
    consecutive_missed: int = 0


class EcosTask(msgspec.Struct, frozen=True):
    """An entry of `task-tracking.json`."""

    task_id: str
    agent: str
    description: str = ""
    assigned_at: float | None = None
    expected_completion: float | None = None
    last_progress_update: float | None = None
    progress_percentage: float | None = None
    status: str = "in_progress"


# --- writing -----------------------------------------------------------------------------------------


def write(folder: Path, agents: Sequence[EcosAgent], tasks: Sequence[EcosTask]) -> None:
    """Write both files anew, each as a whole."""
    entries = {
        agent.agent_id: {
            "role": agent.role,
            "interval_seconds": _plain(agent.interval_seconds),
            "missed_threshold": agent.missed_threshold,
            "last_heartbeat": _stamp(agent.last_heartbeat),
            "consecutive_missed": agent.consecutive_missed,
        }
        for agent in agents
    }
    _write(folder / HEARTBEATS, {"agents": entries})
    _write(folder / TASKS, {"tasks": [_task_entry(task) for task in tasks]})


def _task_entry(task: EcosTask) -> dict[str, Any]:
    """The document's queries look for open tasks under `in_progress`, late ones too: ours stands beside it."""
    return {
        "task_id": task.task_id,
        "agent": task.agent,
        "description": task.description,
        "assigned_at": _stamp(task.assigned_at),
        "expected_completion": _stamp(task.expected_completion),
        "last_progress_update": _stamp(task.last_progress_update),
        "progress_percentage": _plain(task.progress_percentage),
        "status": "in_progress",
        "lifesigns_status": task.status,
    }


def _write(path: Path, content: object) -> None:
    try:
        write_whole(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n", READABLE)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


# --- reading -----------------------------------------------------------------------------------------


def read(folder: Path) -> tuple[list[EcosAgent], list[EcosTask]]:
    """Both files; a missing one is empty. Raises `UsageError` with everything that is wrong in them, or if both are missing."""
    places = folder / HEARTBEATS, folder / TASKS
    if not any(place.exists() for place in places):
        raise UsageError(f"{folder} has neither {HEARTBEATS} nor {TASKS}")
    errors: list[str] = []
    agents: list[EcosAgent] = []
    tasks: list[EcosTask] = []
    for name, said in _entries(places[0], "agents", dict, errors):
        _read_one(f"{places[0]}: agents.{name}", said, partial(_agent, name), agents, errors)
    for number, said in _entries(places[1], "tasks", list, errors):
        _read_one(f"{places[1]}: tasks[{number}]", said, _task, tasks, errors)
    if errors:
        raise UsageError("\n".join(errors))
    return agents, tasks


def _entries(path: Path, key: str, shape: type, errors: list[str]) -> list[tuple[Any, object]]:
    if not path.exists():
        return []
    try:
        if path.stat().st_size > FILE_MAX:
            raise ValueError(f"has more than {FILE_MAX} bytes")
        content = msgspec.json.decode(path.read_bytes())
        if not isinstance(content, dict) or not isinstance(content.get(key), shape):
            raise ValueError(f'needs "{key}" with {"an object" if shape is dict else "a list"}')
    except OSError as error:
        errors.append(f"{path}: cannot be read: {error.strerror}")
    except (ValueError, RecursionError) as error:
        errors.append(f"{path}: {error}")
    else:
        found = content[key]
        return list(found.items()) if shape is dict else list(enumerate(found))
    return []


def _read_one(
    where: str, said: object, read_entry: Callable[[Mapping[str, Any]], T], into: list[T], errors: list[str]
) -> None:
    try:
        if not isinstance(said, dict):
            raise ValueError("is no object")
        into.append(read_entry(said))
    except ValueError as error:
        errors.append(f"{where}: {error}")


def _agent(name: str, said: Mapping[str, Any]) -> EcosAgent:
    role = _get(said, "role", _text, None)
    return EcosAgent(
        name,
        None if role is None else ROLES.get(role, role),
        _get(said, "interval_seconds", _positive),
        int(_get(said, "missed_threshold", _positive)),
        _get(said, "last_heartbeat", _moment, None),
        int(_get(said, "consecutive_missed", _number, 0)),
    )


def _task(said: Mapping[str, Any]) -> EcosTask:
    return EcosTask(
        _get(said, "task_id", _text),
        _get(said, "agent", _text),
        _get(said, "description", _text, ""),
        _get(said, "assigned_at", _moment, None),
        _get(said, "expected_completion", _moment, None),
        _get(said, "last_progress_update", _moment, None),
        _get(said, "progress_percentage", _percent, None),
        _get(said, "status", _text, "in_progress"),
    )


_NEEDED: Final = object()


def _get(said: Mapping[str, Any], key: str, convert: Callable[[Any], Any], usual: Any = _NEEDED) -> Any:
    value = said.get(key)
    if value is None:
        if usual is _NEEDED:
            raise ValueError(f"{key} is missing")
        return usual
    try:
        return convert(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{key} is {str(value)[:80]!r}, but needs {error}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError("a number that is not negative")
    return float(value)


def _positive(value: Any) -> float:
    if not _number(value):
        raise ValueError("a number greater than 0")
    return float(value)


def _percent(value: Any) -> float:
    if _number(value) > 100:
        raise ValueError("a number from 0 to 100")
    return float(value)


def _moment(value: Any) -> float:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError("a time such as 2025-01-15T10:30:00Z") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _stamp(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain(number: float | None) -> float | int | None:
    return int(number) if number is not None and number == int(number) else number
