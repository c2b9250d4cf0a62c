"""Reads the YAML file as a `Document`.

We read only the part of YAML that a configuration needs: no tags and no aliases (with them a page of text can mean a
gigabyte), every key is text and unique. We never construct an object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from lifesigns.config.document import Document, KeyPath, name_of, scalar
from lifesigns.config.errors import ConfigError, ConfigErrors

SIZE_MAX: Final = 1024 * 1024
DEPTH_MAX: Final = 16
"""The deepest key has six levels; a list of lists of lists is no configuration."""
NODES_MAX: Final = 50_000
"""About five seconds of reading: enough for thousands of agents by name, too little to hang."""


def read(path: Path) -> Document:
    """Read a file. Raises `ConfigErrors` with file and line."""
    return parse(_text(path), name_of(path))


def parse(text: str, name: str) -> Document:
    """Read YAML text; `name` stands for the file in errors."""
    lines: dict[KeyPath, int] = {}
    try:
        node = _Loader(text).get_single_node()
        value = None if node is None else _value(node, (), lines)
    except yaml.YAMLError as error:
        raise _unreadable(name, error) from None
    if not isinstance(value, dict | None):
        raise ConfigErrors([ConfigError(name, "needs `key: value` lines at the top level")])
    return Document(name, value, lines)


class _Loader(yaml.BaseLoader):
    """Composes nodes and nothing more: BaseLoader knows no tags, no types, no merging."""

    depth = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _refused(event, 'aliases are not read; a pattern that begins with * needs quotes: "*-x"')
        if getattr(event, "anchor", None) is not None:
            raise _refused(event, "anchors are not read; a text that begins with & needs quotes")
        if getattr(event, "tag", None) is not None:
            raise _refused(event, "tags are not read; a text that begins with ! needs quotes")
        self.depth += 1
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise _refused(event, f"has more than {NODES_MAX} keys and values")
        if self.depth > DEPTH_MAX:
            raise _refused(event, f"is nested deeper than {DEPTH_MAX} levels")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _refused(at: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def _value(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> object:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_entry(part, (*path, f"[{number}]"), lines) for number, part in enumerate(node.value, 1)]
    assert isinstance(node, yaml.ScalarNode)
    return scalar(node.value) if node.style is None else node.value


def _entry(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> object:
    lines[path] = node.start_mark.line + 1
    return _value(node, path, lines)


def _mapping(node: yaml.MappingNode, path: KeyPath, lines: dict[KeyPath, int]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, part in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _refused(key, "a key must be a single word or text")
        if key.value in made:
            first = lines[(*path, key.value)]
            raise _refused(key, f"{key.value!r} stands here twice, first on line {first}")
        lines[(*path, key.value)] = key.start_mark.line + 1
        made[key.value] = _value(part, (*path, key.value), lines)
    return made


def _text(path: Path) -> str:
    name = name_of(path)
    try:
        with path.open("rb") as file:
            raw = file.read(SIZE_MAX + 1)
    except OSError as error:
        detail = f"cannot be read: {error.strerror or error}"
        raise ConfigErrors([ConfigError(name, detail)]) from error
    if len(raw) > SIZE_MAX:
        raise ConfigErrors([ConfigError(name, f"is larger than {SIZE_MAX // 1024} KiB")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigErrors([ConfigError(f"{name}:{line}", "is not UTF-8 text")]) from error


def _unreadable(name: str, error: yaml.YAMLError) -> ConfigErrors:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = f"{name}:{mark.line + 1}" if mark else name
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    return ConfigErrors([ConfigError(place, f"{context}: {problem}" if context else str(problem))])
