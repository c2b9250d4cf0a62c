"""Settings outside the file: the environment, then flags.

`LIFESIGNS_PROFILE`, `_STORE`, `_BUS`, `_DEAD_MAN_SWITCH`, `_ZONE` and `_LISTEN` are settings; `LIFESIGNS_LISTEN__BEHIND_PROXY=yes` sets a part of
one; `LIFESIGNS_POLICY__SILENCE__INTERVAL=2` and `LIFESIGNS_FLEET__TICK_EVERY=2` set any threshold. An empty variable
counts as not set. A variable with two underscores in a row can only be meant for us, so an unknown one is an error. We
ignore other variables that begin with LIFESIGNS_, unless one looks like a typo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from lifesigns.config import readers
from lifesigns.config.document import Source, dotted, scalar
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.schema import (
    ANY,
    FLEET,
    POLICY,
    SHORT,
    Path,
    Schema,
    Setting,
    end,
    keys,
    read_value,
    readers_of,
)
from lifesigns.config.values import (
    AccessSettings,
    AuditSettings,
    BusSettings,
    DeadManSettings,
    HookSettings,
    HubsSettings,
    Limits,
    Listen,
    MemorySettings,
    OtlpSettings,
)

PREFIX: Final = "LIFESIGNS_"
SCHEMA: Final[Schema] = {
    "profile": readers.text,
    "policy": POLICY,
    "fleet": FLEET,
    "store": readers.store,
    "bus": {SHORT: lambda value: {"url": readers.bus(value)}, **keys(BusSettings)},
    "dead_man_switch": {
        SHORT: lambda value: {"url": readers.secret_url(value)},
        **keys(DeadManSettings),
    },
    "listen": {SHORT: readers.listen, **keys(Listen)},
    "zone": readers.zone,
    "hubs": keys(HubsSettings),
    "access": keys(AccessSettings),
    "limits": keys(Limits),
    "audit": keys(AuditSettings),
    "otlp": keys(OtlpSettings),
    "hooks": keys(HookSettings),
    "memory": keys(MemorySettings),
}
"""The part of the schema that can also be set outside the file."""
PLAIN_NUMBERS: Final = frozenset(
    path[-1]
    for path, reader in readers_of(SCHEMA)
    if reader in (readers.number, readers.optional(readers.number), readers.part)
)
"""The floats that are rates, shares, money or megabytes. All others are durations."""
LISTEN_FLAGS: Final[Mapping[str, str]] = {
    **{name: f"--{name.replace('_', '-')}" for name in keys(Listen)},
    "names": "--allow-host",
}
"""Flags for one part of `listen`, and their spelling."""
RESERVED: Final = frozenset(
    PREFIX + name
    for name in """
    HUB TOKEN KEY STATE CONFIG
    AGENT_ID TASK INCARNATION ATTEMPT CHECKPOINT HANDOFF RUN NUDGES
    """.split()
)
"""Read elsewhere: by clients and `find`; the second row is what `lifesigns run` sets for its child."""

VARIABLES: Final = tuple(PREFIX + name.upper() for name in SCHEMA if end(SCHEMA, (name,)))
THRESHOLDS: Final = (PREFIX + "POLICY", PREFIX + "FLEET")
"""With one underscore too few they are errors as well, and no variables of somebody else."""


def environment(environ: Mapping[str, str], errors: ErrorCollector) -> Iterator[Setting]:
    """The settings in the environment."""
    for variable in sorted(name for name, value in environ.items() if value.strip()):
        if not variable.startswith(PREFIX) or variable in RESERVED:
            continue
        source = Source(variable, "environment", written=True)
        if variable in VARIABLES or variable.startswith(THRESHOLDS) or "__" in variable:
            path = tuple(variable.removeprefix(PREFIX).lower().split("__"))
            yield from _read(path, environ[variable], source, errors)
        elif near := get_close_matches(variable, (*VARIABLES, *RESERVED), n=1, cutoff=0.85):
            errors.add(variable, f"is unknown; did you mean {near[0]}?", "environment")


def flags(given: Mapping[str, object], errors: ErrorCollector) -> Iterator[Setting]:
    """The settings in flags, by name (`profile`) or dotted key (`policy.silence.interval`)."""
    for name, value in given.items():
        if value is None or value == ():
            continue
        path = ("listen", name) if name in LISTEN_FLAGS else tuple(name.split("."))
        written = LISTEN_FLAGS.get(name, f"--{name}" if "." not in name else name)
        yield from _read(path, value, Source(written, "flag", written=True), errors)


def _read(path: Path, value: object, source: Source, errors: ErrorCollector) -> Iterator[Setting]:
    node = end(SCHEMA, path)
    if node is None:
        errors.add(source.key, _unknown(path, source), source.where)
    else:
        plain = scalar(value.strip()) if isinstance(value, str) and len(path) > 1 else value
        yield from read_value(node, path, plain, source, errors)


def _unknown(path: Path, source: Source) -> str:
    """The nearest whole variable or key: a missing underscore is the likeliest typo."""
    chosen = path[2] if len(path) > 2 else "name"
    paths = [tuple(chosen if part == ANY else part for part in path) for path, _ in readers_of(SCHEMA)]
    if source.where == "environment":
        names = [PREFIX + "__".join(parts).upper() for parts in paths]
    else:
        names = [dotted(parts) for parts in paths] + ["listen", *LISTEN_FLAGS]
    if source.where == "environment" and len(path) > 1 and not get_close_matches(path[0], SCHEMA):
        return "is unknown: what has names of your own, like channels and agents, is set in lifesigns.yaml"
    near = get_close_matches(source.key, names, n=1)
    if near:
        return unknown(source.key, near)
    return f"is unknown; it would be like {next(name for name in names if 'policy' in name.lower())}"
