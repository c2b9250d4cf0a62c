"""What is said outside the file: the environment, then flags.

`LIFESIGNS_PROFILE`, `_STORE`, `_BUS` and `_LISTEN` are settings; `LIFESIGNS_LISTEN__BEHIND_PROXY=yes` reaches a part of
one; `LIFESIGNS_POLICY__SILENCE__INTERVAL=2` and `LIFESIGNS_FLEET__TICK_EVERY=2` reach every threshold. An empty variable counts as not set. Other
variables that begin with LIFESIGNS_ may belong to somebody else and are left alone, unless one looks
like a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from lifesigns.config import readers
from lifesigns.config.document import scalar
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.readers import Reader
from lifesigns.config.schema import ANY, FLEET, POLICY, Path, Schema, Setting, end, ends
from lifesigns.config.values import Source

PREFIX: Final = "LIFESIGNS_"
DEEP: Final[Schema] = {"policy": POLICY, "fleet": FLEET, "listen": readers.LISTEN}
SIMPLE: Final[Mapping[str, Reader]] = {
    "profile": readers.text,
    "store": readers.store,
    "bus": readers.bus,
    "listen": readers.listen,
}
LISTEN_FLAGS: Final[Mapping[str, str]] = {
    **{name: f"--{name.replace('_', '-')}" for name in readers.LISTEN},
    "names": "--allow-host",
}
"""Flags that say one part of `listen`, and how they are written."""
RESERVED: Final = frozenset(
    PREFIX + name
    for name in """
    HUB TOKEN STATE CONFIG
    AGENT_ID TASK INCARNATION ATTEMPT CHECKPOINT HANDOFF RUN NUDGES
    """.split()
)
"""Read elsewhere: by clients and `find`; the second row is what `lifesigns run` tells its child."""

_VARIABLES: Final = {PREFIX + name.upper(): name for name in SIMPLE}


def environment(environ: Mapping[str, str], complaints: ErrorCollector) -> Iterator[Setting]:
    """The settings in the environment."""
    for variable in sorted(name for name, value in environ.items() if value.strip()):
        if not variable.startswith(PREFIX) or variable in RESERVED:
            continue
        source = Source(variable, "environment", written=True)
        if variable in _VARIABLES:
            name = _VARIABLES[variable]
            yield from _simple(name, environ[variable], source, complaints)
        elif variable.startswith((PREFIX + "POLICY", PREFIX + "FLEET", PREFIX + "LISTEN__")):
            path = tuple(variable.removeprefix(PREFIX).lower().split("__"))
            yield from _deep(path, environ[variable], source, complaints)
        elif near := get_close_matches(variable, (*_VARIABLES, *RESERVED), n=1, cutoff=0.85):
            complaints.add(variable, f"is unknown; did you mean {near[0]}?", "environment")


def flags(given: Mapping[str, object], complaints: ErrorCollector) -> Iterator[Setting]:
    """The settings in flags, by name (`profile`) or dotted key (`policy.silence.interval`)."""
    for name, value in given.items():
        written = LISTEN_FLAGS.get(name, f"--{name}" if "." not in name else name)
        source = Source(written, "flag", written=True)
        if value is None or value == ():
            continue
        if name in SIMPLE:
            yield from _simple(name, value, source, complaints)
        elif name in LISTEN_FLAGS:
            yield from _read(("listen", name), readers.LISTEN[name], value, source, complaints)
        else:
            yield from _deep(tuple(name.split(".")), value, source, complaints)


def _simple(name: str, value: object, source: Source, complaints: ErrorCollector) -> Iterator[Setting]:
    """A setting under its own name. `host:port` says these two, and nothing about the rest of `listen`."""
    for setting in _read((name,), SIMPLE[name], value, source, complaints):
        if name == "listen":
            yield from (Setting(("listen", part), v, source) for part, v in setting.value.items())
        else:
            yield setting


def _deep(path: Path, value: object, source: Source, complaints: ErrorCollector) -> Iterator[Setting]:
    reader = end(DEEP, path)
    if reader is None:
        complaints.add(source.key, _unknown(path, source), source.where)
    else:
        plain = scalar(value.strip()) if isinstance(value, str) else value
        yield from _read(path, reader, plain, source, complaints)


def _read(
    path: Path, reader: Reader, value: object, source: Source, complaints: ErrorCollector
) -> Iterator[Setting]:
    try:
        yield Setting(path, reader(value), source)
    except ValueError as error:
        complaints.add(source.key, str(error), source.where)


def _unknown(path: Path, source: Source) -> str:
    """The nearest whole variable or key: an underscore too few is the likeliest slip."""
    chosen = path[2] if len(path) > 2 else "name"
    known = [tuple(chosen if part == ANY else part for part in known) for known in ends(DEEP)]
    if source.where == "environment":
        names = [PREFIX + "__".join(parts).upper() for parts in known]
    else:
        names = [".".join(parts) for parts in known] + [*SIMPLE, *LISTEN_FLAGS]
    near = get_close_matches(source.key, names, n=1)
    if near:
        return unknown(source.key, near)
    return f"is unknown; it would be like {names[0]}"
