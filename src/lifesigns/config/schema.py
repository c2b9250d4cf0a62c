"""Which keys there are, and who reads each: nested names, with a reader at every end.

The policy's part is made from its dataclasses, so that a new threshold needs no second word here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from lifesigns.config import alerting, executors, readers, sections
from lifesigns.config.document import Document
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.readers import Reader
from lifesigns.config.values import Limits, Source
from lifesigns.core.policy import FleetPolicy, Policy

Path = tuple[str, ...]
Schema = Mapping[str, "Schema | Reader"]

ANY: Final = "*"
"""In a schema: any name, chosen by the user."""

PLAIN_NUMBERS: Final = frozenset(
    """
    false_suspicion_rate rate_max soft spike_slack spike_limit cost_max task_cost_max hour_cost_max
    idle_cpu spin_cpu cpu_degraded cpu_unhealthy memory_degraded_mb memory_unhealthy_mb jitter failure_rate slow_rate
    backoff_factor brake_share acted_share busy_factor overdue_factor wait_model_share
    """.split()
)
"""The policy's floats that are rates, shares, money or megabytes. All others are durations."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value somebody gave, read and right by itself; whether it fits the others is still to be seen."""

    path: Path
    value: Any
    source: Source


def of(cls: type) -> dict[str, Schema | Reader]:
    """The schema of a dataclass, whose fields may be dataclasses or mappings of names to them."""
    hints = get_type_hints(cls)
    return {f.name: _of_type(f.name, hints[f.name]) for f in fields(cls) if f.init}


def _of_type(name: str, hint: Any) -> Schema | Reader:
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return of(hint)
    arguments = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        inner = _of_type(name, next(a for a in arguments if a is not type(None)))
        assert callable(inner), f"{name}: an optional section cannot be configured"
        return readers.optional(inner)
    if get_origin(hint) is tuple:
        return readers.words if arguments[0] is str else readers.seconds_list
    if arguments:
        return {ANY: of(arguments[1])}
    if hint is float:
        return readers.number if name in PLAIN_NUMBERS else readers.seconds
    return {int: readers.whole, bool: readers.yes_no, str: readers.text}[hint]


POLICY: Final = of(Policy)
FLEET: Final = of(FleetPolicy)


def file_schema(tree: Schema) -> Schema:
    """The whole file, with `health_monitoring:` as `tree.py` describes it."""
    return {
        "profile": readers.text,
        "health_monitoring": tree,
        "policy": POLICY,
        "roles": {ANY: {**POLICY, "profile": readers.text}},
        "agents": {ANY: {**POLICY, "profile": readers.text, "role": readers.text}},
        "fleet": FLEET,
        "store": readers.store,
        "bus": readers.bus,
        "listen": readers.listen,
        "channels": {ANY: readers.opaque},
        "alerting": alerting.PACING,
        "routes": sections.listed,
        "silences": sections.listed,
        "maintenance": sections.listed,
        **executors.SECTIONS,
        "limits": of(Limits),
    }


def read(schema: Schema, document: Document, complaints: ErrorCollector) -> Iterator[Setting]:
    """Every setting of a document; what is wrong goes to the complaints and the rest is read on."""
    yield from _read(schema, document.value, (), document, complaints)


def _read(
    schema: Schema | Reader, value: Any, path: Path, document: Document, complaints: ErrorCollector
) -> Iterator[Setting]:
    key, where = ".".join(path), document.where(path)
    if callable(schema):
        try:
            yield Setting(path, schema(value), Source(key, where, written=True))
        except ValueError as error:
            complaints.add(key, str(error), where)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            inner = schema.get(name, schema.get(ANY))
            if inner is None:
                there = document.where((*path, name))
                complaints.add(".".join((*path, name)), _unknown(schema, path, name), there)
            else:
                yield from _read(inner, part, (*path, name), document, complaints)
    elif value is not None:
        complaints.add(key, f"needs named values (key: value), not {readers.kind(value)}", where)


def _unknown(schema: Schema, path: Path, name: str) -> str:
    """The usual sentence; but a section that stands on the wrong level is shown its place."""
    if not path:
        for section in ("policy", "health_monitoring"):
            inner = schema[section]
            if isinstance(inner, Mapping) and name in inner:
                return f"is unknown here; did you mean {section}.{name}?"
    return unknown(name, schema)


def end(schema: Schema, path: Path) -> Reader | None:
    """The reader at a path, or None if there is no such key."""
    here: Schema | Reader | None = schema
    for name in path:
        if here is None or callable(here):
            return None
        here = here.get(name, here.get(ANY))
    return here if callable(here) else None


def ends(schema: Schema, path: Path = ()) -> Iterator[Path]:
    """The paths of all keys; a name the user chooses is `ANY`."""
    for name, inner in schema.items():
        if callable(inner):
            yield (*path, name)
        else:
            yield from ends(inner, (*path, name))
