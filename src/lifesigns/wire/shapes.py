"""Shapes: the wire form of the core's values, derived from their annotations, so that a field is declared once.

The core's `str` is a text within its limit here, `float` an amount, `int` a count; a field with a default may be
missing or null; moments, prose and a few others go by their names. Beats have their own code: there are too many for
the general way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields

from lifesigns.core.effects import Finding
from lifesigns.wire.codec import Codec, seconds, written
from lifesigns.wire.limits import (
    OURS,
    PROSE,
    PROSE_MAX,
    Amount,
    Count,
    Finite,
    Integer,
    Moment,
    Name,
    Text,
    check_id,
)

MOMENTS: Final = frozenset({"answer_by", "at", "ended_at", "since", "until"})
AGENT_IDS: Final = frozenset({"agent_id", "to"})

KEYS_MAX: Final = 256
FINDINGS_MAX: Final = 64

_Leaf = Text | Integer | Finite | bool | list[Text | Integer | Finite | bool | None] | None
_Policy = Annotated[dict[Text, _Leaf | dict[Text, _Leaf | dict[Text, _Leaf]]], Meta(max_length=KEYS_MAX)]
"""Section, key, and for breakers a name between them. No deeper: we also walk through it."""

_BY_TYPE: Final[Mapping[Any, Any]] = {str: Text, int: Count, float: Amount}
_BY_NAME: Final[Mapping[str, Any]] = {
    **dict.fromkeys(PROSE, str),
    **dict.fromkeys(MOMENTS, Moment),
    "policy": _Policy,
    "numbers": Annotated[dict[Text, Finite | Text], Meta(max_length=KEYS_MAX)],
    "seq_seen": Integer,  # -1 before the first beat
}


class Shape:
    """One value of the core on the wire. `extra` are optional fields that only the wire has."""

    __slots__ = ("defaults", "names", "nullable", "of", "struct", "tag")

    def __init__(
        self, of: type[Struct], tag: str | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        kept = [field for field in fields(of) if field.name not in OURS]
        self.of = of
        self.tag = tag
        self.names = tuple(field.name for field in kept)
        self.nullable = {f.name: None for f in kept if f.required and NoneType in get_args(f.type)}
        self.defaults = self.nullable | {f.name: _default(f) for f in kept if not f.required}
        self.struct: type[Struct] = msgspec.defstruct(
            of.__name__,
            [self._field(field.name, field.type) for field in kept]
            + [(name, kind | None, None) for name, kind in (extra or {}).items()],
            tag_field="type" if tag else None,
            tag=tag,
            kw_only=True,
            namespace={"__doc__": of.__doc__},
        )

    def values(self, message: Struct) -> dict[str, Any]:
        """The message's values as the core expects them; absent ones are left to the default."""
        values = ((name, getattr(message, name)) for name in self.names)
        return self.nullable | {name: _read(name, value) for name, value in values if value is not None}

    def message(self, value: Any) -> dict[str, Any]:
        """The value as a message, without fields at their default."""
        parts = ((name, getattr(value, name)) for name in self.names)
        message = {
            name: _write(name, part)
            for name, part in parts
            if name not in self.defaults or part != self.defaults[name]
        }
        return {"type": self.tag} | message if self.tag else message

    def _field(self, name: str, hint: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
        kind = _wire_type(name, hint)
        if name in self.defaults:
            return name, kind | None, None
        return name, Name if kind is Text else kind


def _default(field: FieldInfo) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _wire_type(name: str, hint: Any) -> Any:
    if name == "findings":
        return Annotated[tuple[_FINDING.struct, ...], Meta(max_length=FINDINGS_MAX)]  # type: ignore[name-defined]
    if name in _BY_NAME:
        return _BY_NAME[name]
    plain = next((kind for kind in get_args(hint) if kind is not NoneType), hint)
    return _BY_TYPE.get(plain, plain)


def _read(name: str, value: Any) -> Any:
    if name in MOMENTS:
        return seconds(value)
    if name in AGENT_IDS:
        return check_id(value, name)
    if name in PROSE:
        return value[:PROSE_MAX]
    if name == "findings":
        return tuple(Finding(**_FINDING.values(finding)) for finding in value)
    return value


def _write(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in MOMENTS:
        return written(value)
    if name == "findings":
        return [_FINDING.message(finding) for finding in value]
    return value


_FINDING: Final = Shape(Finding)


class Shapes:
    """Message shapes, selected by `type`. They are made when they are needed: a sender writes a few and reads none."""

    def __init__(
        self, kinds: Mapping[str, type[Struct]], extra: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self._tags = {of: tag for tag, of in kinds.items()}
        self._extra = extra or {}
        self._made: dict[type[Struct], Shape] = {}

    @property
    def structs(self) -> tuple[type[Struct], ...]:
        """The shapes of the messages, for the API's description."""
        return tuple(self._by_struct)

    def read(self, raw: bytes) -> tuple[Shape, Any]:
        """The message and its shape; or a `WireError`."""
        message = self._codec.read(raw)
        return self._by_struct[type(message)], message

    def message(self, value: Any) -> dict[str, Any] | None:
        """The value as a message; None if this type does not go over the wire."""
        return self._shape(type(value)).message(value) if type(value) in self._tags else None

    def _shape(self, of: type[Struct]) -> Shape:
        shape = self._made.get(of)
        if shape is None:
            tag = self._tags[of]
            shape = self._made[of] = Shape(of, tag, self._extra.get(tag))
        return shape

    @cached_property
    def _by_struct(self) -> dict[type[Struct], Shape]:
        return {shape.struct: shape for shape in map(self._shape, self._tags)}

    @cached_property
    def _codec(self) -> Codec:
        return Codec(reduce(or_, self._by_struct))
