"""The schema: nested names, with a reader for each key.

A key is a field of a value, and is described nowhere else: its name (without a trailing `_`: `from_`), its default
(none: required) and its type, which selects the reader, unless one is given: `until: Annotated[float, moment]`. So a
new threshold of the policy needs no change here.

An `Entry` reads keys together that depend on each other. All other keys are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

from lifesigns.config import readers
from lifesigns.config.document import Document, KeyPath, Source, dotted
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.readers import Reader
from lifesigns.core.policy import FleetPolicy, Number, Policy

Path = KeyPath
Schema = Mapping[str, Any]
"""Names, and the `Node` that reads each."""

ANY: Final = "*"
"""In a schema: any name, chosen by the user."""
SHORT: Final = ""
"""In a schema: reads a single value that stands for named values, and returns them by name."""

NOWHERE: Final[Mapping[str, str]] = {}

_BY_TYPE: Final[Mapping[Any, Reader]] = {
    Number: readers.number,
    float: readers.seconds,
    int: readers.whole,
    bool: readers.yes_no,
    str: readers.text,
    tuple[str, ...]: readers.words,
    tuple[float, ...]: readers.seconds_list,
    FilePath: readers.file,
}


class Setting(Struct, frozen=True):
    """One value, valid by itself; whether it fits the others is not checked yet."""

    path: Path
    value: Any
    source: Source


class Section(Struct, frozen=True):
    """Named values of a document. Errors name the key and its line."""

    path: Path
    document: Document
    errors: ErrorCollector

    @property
    def source(self) -> Source:
        return Source(dotted(self.path), self.document.where(self.path), written=True)

    def at(self, name: str) -> Section:
        """The section below a name, or a number of a list."""
        return Section((*self.path, name), self.document, self.errors)

    def add_error(self, key: str, detail: str) -> None:
        """Add an error about a key of this section; about all of it, if the key is empty."""
        source = self.at(key).source if key else self.source
        self.errors.add(source.key, detail, source.where)

    def read(
        self, given: Mapping[str, object], known: Mapping[str, Reader], elsewhere: Mapping[str, str] = NOWHERE
    ) -> dict[str, Any]:
        """The valid values. `elsewhere` has keys of other sections that users may look for here."""
        right: dict[str, Any] = {}
        for key, value in given.items():
            if key not in known:
                self.add_error(str(key)[:64], unknown(str(key), known, elsewhere))
                continue
            try:
                right[key] = known[key](value)
            except ValueError as error:
                self.add_error(key, str(error))
        return right

    def make(self, cls: type[Struct], given: Mapping[str, object], right: Mapping[str, Any]) -> Any:
        """A `cls` of the valid values; None if a required key is missing or wrong."""
        needed = _needed(cls)
        for key, hint in needed.items():
            if key not in given:
                self.add_error(key, f"is missing{hint}")
        if not all(key in right for key in needed):
            return None
        names = {name.rstrip("_"): name for name in cls.__struct_fields__}
        return cls(**{names[key]: value for key, value in right.items() if key in names})


class Entry(Struct, frozen=True):
    """Keys read together: `read` makes a value of them, or adds an error and returns None."""

    keys: Mapping[str, Reader]
    read: Callable[[Section, Mapping[str, object]], Any]


Node = Schema | list[Entry] | Entry | Reader
"""Named values, a list of entries, one entry, or a single value."""


@cache
def keys(cls: type[Struct]) -> dict[str, Any]:
    """The keys of a part of the configuration, whose fields may be other parts or mappings of names to them."""
    return {f.name.rstrip("_"): _of_type(f.type) for f in fields(cls)}


def entry(cls: type[Struct], check: Callable[[Section, Any, Mapping[str, object]], None]) -> Entry:
    """An entry that becomes one value; `check` adds errors about values that do not fit together."""

    def read(section: Section, given: Mapping[str, object]) -> Any:
        made = section.make(cls, given, section.read(given, keys(cls)))
        if made is not None:
            check(section, made, given)
        return made

    return Entry(keys(cls), read)


def _of_type(hint: Any) -> Any:
    if hint in _BY_TYPE:
        return _BY_TYPE[hint]
    arguments = get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return keys(hint)
    if get_origin(hint) is Annotated:
        return arguments[1]
    if get_origin(hint) in (Union, UnionType):
        return readers.optional(_BY_TYPE[next(a for a in arguments if a is not type(None))])
    return {ANY: keys(arguments[1])}


@cache
def _needed(cls: type[Struct]) -> dict[str, str]:
    """The required keys of a value, and the hint for a missing one: a text beside its reader."""
    return {
        f.name.rstrip("_"): "".join(f"; {part}" for part in getattr(f.type, "__metadata__", ())[1:])
        for f in fields(cls)
        if f.required
    }


def read(schema: Schema, document: Document, errors: ErrorCollector) -> Iterator[Setting]:
    """Every setting of a document; collects errors and reads the rest."""
    yield from _read(schema, document.value, Section((), document, errors))


def read_value(
    node: Schema | Reader, path: Path, value: object, source: Source, errors: ErrorCollector
) -> Iterator[Setting]:
    """The settings of a single value: one, or several where it is short for them."""
    try:
        if isinstance(node, Mapping):
            yield from (Setting((*path, name), part, source) for name, part in node[SHORT](value).items())
        else:
            yield Setting(path, node(value), source)
    except ValueError as error:
        errors.add(source.key, str(error), source.where)


def _read(node: Node, value: Any, here: Section) -> Iterator[Setting]:
    if isinstance(node, list):
        yield from _read_list(node[0], value, here)
    elif callable(node) or (isinstance(node, Mapping) and SHORT in node and not isinstance(value, Mapping)):
        yield from read_value(node, here.path, value, here.source, here.errors)
    elif not isinstance(value, Mapping | None):
        here.add_error("", f"needs named values (key: value), not {readers.kind(value)}")
    elif isinstance(node, Entry):
        if (made := node.read(here, value or {})) is not None:
            yield Setting(here.path, made, here.source)
    else:
        for name, part in (value or {}).items():
            inner = node.get(name or ANY, node.get(ANY))
            if inner is None:
                here.add_error(name, unknown(name, node, {} if here.path else _below(node)))
            else:
                yield from _read(inner, part, here.at(name))


def _read_list(entry: Entry, value: Any, here: Section) -> Iterator[Setting]:
    listed = value if isinstance(value, list | tuple) else [] if value is None else [value]
    if not all(isinstance(one, Mapping) for one in listed):
        here.add_error("", "needs named values (key: value), or a list of such entries")
        return
    for number, one in enumerate(listed, 1):
        yield from _read(entry, one, here.at(f"[{number}]") if listed is value else here)


def _below(schema: Schema) -> dict[str, str]:
    """Sections that users may put on the wrong level, and where they belong."""
    return {name: f"{top}.{name}" for top in ("health_monitoring", "policy") for name in schema[top]}


def end(schema: Schema, path: Path) -> Any:
    """The reader of a single value at a path, or None if there is no such key."""
    here: Any = schema
    for name in path:
        here = here.get(name or ANY, here.get(ANY)) if isinstance(here, Mapping) else None
    return here if callable(here) or (isinstance(here, Mapping) and SHORT in here) else None


def readers_of(node: Node, path: Path = ()) -> Iterator[tuple[Path, Reader]]:
    """All keys with their readers; a name chosen by the user is `ANY`."""
    if isinstance(node, list | Entry):
        node = (node[0] if isinstance(node, list) else node).keys
    if callable(node):
        yield path, node
        return
    for name, inner in node.items():
        if name != SHORT:
            yield from readers_of(inner, (*path, name))


POLICY: Final = keys(Policy)
FLEET: Final = keys(FleetPolicy)
