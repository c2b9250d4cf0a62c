"""Schemas: our types as JSON Schema, with the docstrings of their fields.

msgspec knows the types, their limits and the docstrings of classes. The docstrings under fields this module reads from
the source: one sentence serves the readers of the code and of the API.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import pairwise
from operator import or_
from typing import Any, Final

import msgspec

from lifesigns.views import LastBeat, Orders, OrdersByAgent, ProblemDetails, Receipt
from lifesigns.wire import WireBeat
from lifesigns.wire.beats import FR_002
from lifesigns.wire.limits import OURS
from lifesigns.wire.signals_and_orders import order_types, signal_types

REF: Final = "#/components/schemas/{name}"

Schema = dict[str, Any]

_ORDER: Final = {"$ref": REF.format(name="Order")}
_LOAD: Final = {
    "anyOf": [{"type": "number"}, {"type": "null"}],
    "default": None,
    "description": "How busy it is, 0 to 1. What is beyond counts as 0 or 1: an agent under load must not become silent.",
}
_BEAT: Final = {"$ref": REF.format(name="WireBeat")}


def schemas(types: Iterable[Any]) -> tuple[dict[Any, Schema], dict[str, Schema]]:
    """The schema of each type, and the components they refer to. The messages of the wire are always included."""
    signal: Any = reduce(or_, signal_types())  # A union, told apart by `type`.
    order: Any = reduce(or_, order_types())
    wanted = [*types, WireBeat, signal, order, ProblemDetails]
    wanted += [Orders, OrdersByAgent, Receipt, LastBeat]
    found, components = msgspec.json.schema_components(wanted, ref_template=REF)
    by_type = dict(zip(map(key_of, wanted), found, strict=True))
    components["Signal"] = by_type[key_of(signal)]
    components["Order"] = by_type[key_of(order)]
    _describe(components, wanted)
    _name_messages(components)
    return by_type, portable(components)


def key_of(kind: Any) -> Any:
    """The key of a type's schema: equal unions are not the same object."""
    return kind if isinstance(kind, type) else repr(kind)


def portable(schema: Any) -> Any:
    """Remove what only Python understands: `\\Z`, and tuples."""
    if isinstance(schema, dict):
        return {name: portable(part) for name, part in schema.items()}
    if isinstance(schema, list | tuple):
        return [portable(part) for part in schema]
    return schema.replace("\\Z", "$") if isinstance(schema, str) else schema


# --- parts --------------------------------------------------------------------------------------------


def _name_messages(components: dict[str, Schema]) -> None:
    """The real schema of messages that the hub passes on unread; the views call them anything."""
    components["Orders"]["properties"]["orders"]["items"] = _ORDER
    for name in ("OrdersByAgent", "Receipt"):
        components[name]["properties"]["orders"]["additionalProperties"]["items"] = _ORDER
    components["LastBeat"]["properties"]["beat"] = _BEAT
    beat = components["WireBeat"]["properties"]
    for name in OURS:
        beat.pop(name, None)
    beat["load"] = _LOAD
    for theirs, ours in FR_002.items():
        beat[theirs] = {key: value for key, value in beat[ours].items() if key != "description"}


def _describe(components: dict[str, Schema], types: Sequence[Any]) -> None:
    for kind in _structs(types):
        component = components.get(kind.__name__)
        if component is not None and _is_sent_whole(kind):
            component["required"] = list(component["properties"])
        for name, text in sentences(kind).items() if component is not None else ():
            field = component["properties"].get(name)  # type: ignore[index]
            if field is not None:
                field.setdefault("description", text)


def _is_sent_whole(kind: type[msgspec.Struct]) -> bool:
    """Whether all fields are always sent: true of views, also for fields with a default."""
    return kind.__module__.startswith("lifesigns.views.") and not kind.__struct_config__.omit_defaults


def _structs(types: Sequence[Any]) -> Iterator[type[msgspec.Struct]]:
    """Every struct in these types, and in their fields."""
    seen: set[type] = set()
    waiting: list[Any] = [msgspec.inspect.type_info(kind) for kind in types]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in seen:
                continue
            seen.add(info.cls)
            yield info.cls
            waiting.extend(field.type for field in info.fields)
            continue
        inner = (getattr(info, name, None) for name in ("type", "item_type", "key_type", "value_type"))
        waiting.extend(part for part in inner if isinstance(part, msgspec.inspect.Type))
        for name in ("types", "item_types"):
            waiting.extend(getattr(info, name, ()))


def sentences(kind: type[msgspec.Struct]) -> dict[str, str]:
    """The docstring under each field, by the field's external name."""
    said: dict[str, str] = {}
    for part in reversed(kind.__mro__):
        if part.__module__.startswith("lifesigns."):
            said.update(_said_in(part.__module__).get(part.__name__, {}))
    outside = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    return {outside[name]: text for name, text in said.items() if name in outside}


@cache
def _said_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings under the fields of a module's classes."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return {}  # Without the source only the descriptions are missing.
    classes = (part for part in tree.body if isinstance(part, ast.ClassDef))
    return {definition.name: dict(_fields(definition)) for definition in classes}


def _fields(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(definition.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            yield field.target.id, " ".join(str(text.value.value).split())
