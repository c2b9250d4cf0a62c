"""The errors of a configuration, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from lifesigns.errors import PolicyError

ERRORS_MAX: Final = 100
"""Nobody reads more, and a hostile file must not make us search a hundred thousand near misses."""


class ConfigError(PolicyError):
    """One error: the key as the user wrote it, what is wrong with it, and its place."""

    def __init__(self, key: str, detail: str, where: str = "") -> None:
        super().__init__(key, detail)
        self.where = where

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.key}: {self.detail}{place}"


class ConfigErrors(PolicyError):
    """All errors; `key` and `detail` are those of the first."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        super().__init__(errors[0].key, errors[0].detail)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


class ErrorCollector:
    """The errors found so far."""

    def __init__(self) -> None:
        self.errors: list[ConfigError] = []

    def add(self, key: str, detail: str, where: str = "") -> None:
        self.errors.append(ConfigError(key, detail, where))
        if len(self.errors) >= ERRORS_MAX:
            self.raise_if_any()

    def about(self, key: str) -> bool:
        """Whether this key has an error already."""
        return any(error.key == key for error in self.errors)

    def raise_if_any(self) -> None:
        if self.errors:
            raise ConfigErrors(self.errors)


def unknown(name: str, known: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> str:
    """The sentence for an unknown name: where it belongs, else the nearest known name, else all of them."""
    if elsewhere and name in elsewhere:
        return f"is unknown here; did you mean {elsewhere[name]}?"
    names = sorted(filter(None, known))
    near = get_close_matches(name[:100], names, n=1)
    if near:
        return f"is unknown; did you mean {near[0]}?"
    return f"is unknown; known are {', '.join(names)}"
