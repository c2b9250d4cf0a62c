"""Which keys there are, and who reads each: nested names, with a reader at every end.

A key is a field of a dataclass, and is described nowhere else: its name (a last `_` is left out: `from_`), its default (none: it
must be there) and its type, which says how it is read, unless a reader is named: `until: Annotated[float, moment]`.
So a new threshold of the policy needs no second word here.

Keys that depend on each other are read together, as an `Entry`. Everything else is read key by key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path as FilePath
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from lifesigns.config import readers
from lifesigns.config.document import Document, KeyPath, Source, dotted
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.readers import Reader
from lifesigns.core.policy import FleetPolicy, Number, Policy

Path = KeyPath
Schema = Mapping[str, Any]
"""Names, and what reads each: a `Node`."""

ANY: Final = "*"
"""In a schema: any name, chosen by the user."""
SHORT: Final = ""
"""In a schema: reads what may stand in the place of named values, and gives them by name."""

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


@dataclass(frozen=True, slots=True)
class Setting:
    """One value somebody gave, read and right by itself; whether it fits the others is still to be seen."""

    path: Path
    value: Any
    source: Source


@dataclass(frozen=True, slots=True)
class Section:
    """Named values of a document. What is wrong with them is said about the key, where it stands."""

    path: Path
    document: Document
    errors: ErrorCollector

    @property
    def source(self) -> Source:
        return Source(dotted(self.path), self.document.where(self.path), written=True)

    def at(self, name: str) -> Section:
        """What stands below a name, or a number of a list."""
        return Section((*self.path, name), self.document, self.errors)

    def complain(self, key: str, detail: str) -> None:
        """About a key of this section; about all of it, if the key is empty."""
        source = self.at(key).source if key else self.source
        self.errors.add(source.key, detail, source.where)

    def read(
        self, given: Mapping[str, object], known: Mapping[str, Reader], elsewhere: Mapping[str, str] = NOWHERE
    ) -> dict[str, Any]:
        """What is right of what was given. `elsewhere` has keys of other sections that are easily looked for here."""
        right: dict[str, Any] = {}
        for key, value in given.items():
            if key not in known:
                self.complain(str(key)[:64], unknown(str(key), known, elsewhere))
                continue
            try:
                right[key] = known[key](value)
            except ValueError as error:
                self.complain(key, str(error))
        return right

    def make(self, cls: type, given: Mapping[str, object], right: Mapping[str, Any]) -> Any:
        """A `cls` of what is right; None if a key that it needs is missing, or wrong."""
        needed = _needed(cls)
        for key, hint in needed.items():
            if key not in given:
                self.complain(key, f"is missing{hint}")
        if not all(key in right for key in needed):
            return None
        names = {f.name.rstrip("_"): f.name for f in fields(cls)}
        return cls(**{names[key]: value for key, value in right.items() if key in names})


@dataclass(frozen=True, slots=True)
class Entry:
    """Keys that are read together: `read` makes a value of them, or complains and gives None."""

    keys: Mapping[str, Reader]
    read: Callable[[Section, Mapping[str, object]], Any]


Node = Schema | list[Entry] | Entry | Reader
"""Named values, one entry or a list of them, an entry, or a single value."""


@cache
def keys(cls: type) -> dict[str, Any]:
    """The keys of a dataclass, whose fields may be dataclasses or mappings of names to them."""
    hints = get_type_hints(cls, include_extras=True)
    return {f.name.rstrip("_"): _of_type(hints[f.name]) for f in fields(cls) if f.init}


def entry(cls: type, check: Callable[[Section, Any, Mapping[str, object]], None]) -> Entry:
    """An entry that is a dataclass; `check` looks at what was made of what was given, and complains if that does not fit together."""

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
    if is_dataclass(hint):
        return keys(hint)  # type: ignore[arg-type]
    if get_origin(hint) is Annotated:
        return arguments[1]
    if get_origin(hint) in (Union, UnionType):
        return readers.optional(_BY_TYPE[next(a for a in arguments if a is not type(None))])
    return {ANY: keys(arguments[1])}


@cache
def _needed(cls: type) -> dict[str, str]:
    """The keys of a dataclass that have no default, and what is said of one that is missing: a text beside its reader."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        f.name.rstrip("_"): "".join(f"; {part}" for part in getattr(hints[f.name], "__metadata__", ())[1:])
        for f in fields(cls)
        if f.default is MISSING and f.default_factory is MISSING
    }


def read(schema: Schema, document: Document, errors: ErrorCollector) -> Iterator[Setting]:
    """Every setting of a document; what is wrong goes to the errors and the rest is read on."""
    yield from _read(schema, document.value, Section((), document, errors))


def read_value(
    node: Schema | Reader, path: Path, value: object, source: Source, errors: ErrorCollector
) -> Iterator[Setting]:
    """The settings that a single value says: one, or several where it is short for them."""
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
        here.complain("", f"needs named values (key: value), not {readers.kind(value)}")
    elif isinstance(node, Entry):
        if (made := node.read(here, value or {})) is not None:
            yield Setting(here.path, made, here.source)
    else:
        for name, part in (value or {}).items():
            inner = node.get(name or ANY, node.get(ANY))
            if inner is None:
                here.complain(name, unknown(name, node, {} if here.path else _below(node)))
            else:
                yield from _read(inner, part, here.at(name))


def _read_list(entry: Entry, value: Any, here: Section) -> Iterator[Setting]:
    listed = value if isinstance(value, list | tuple) else [] if value is None else [value]
    if not all(isinstance(one, Mapping) for one in listed):
        here.complain("", "needs named values (key: value), or a list of such entries")
        return
    for number, one in enumerate(listed, 1):
        yield from _read(entry, one, here.at(f"[{number}]") if listed is value else here)


def _below(schema: Schema) -> dict[str, str]:
    """Sections that may stand on the wrong level, and where they belong."""
    return {name: f"{top}.{name}" for top in ("health_monitoring", "policy") for name in schema[top]}


def end(schema: Schema, path: Path) -> Any:
    """What reads a single value at a path, or None if there is no such key."""
    here: Any = schema
    for name in path:
        here = here.get(name or ANY, here.get(ANY)) if isinstance(here, Mapping) else None
    return here if callable(here) or (isinstance(here, Mapping) and SHORT in here) else None


def readers_of(node: Node, path: Path = ()) -> Iterator[tuple[Path, Reader]]:
    """All keys with their readers; a name the user chooses is `ANY`."""
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
PLAIN_NUMBERS: Final = frozenset(
    path[-1]
    for section in (POLICY, FLEET)
    for path, reader in readers_of(section)
    if reader in (readers.number, readers.optional(readers.number))
)
"""The floats that are rates, shares, money or megabytes. All others are durations."""
