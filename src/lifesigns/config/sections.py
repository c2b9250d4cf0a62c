"""Sections: named values read one by one, where each section has keys of its own. What is wrong names the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lifesigns.config import readers
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.readers import Reader


class Section:
    """Complains about the keys of one section."""

    def __init__(self, complaints: ErrorCollector, name: str, where: str) -> None:
        self._complaints = complaints
        self._name = name
        self._where = where

    def complain(self, key: str, detail: str) -> None:
        """About a key of this section; about all of it, if the key is empty."""
        self._complaints.add(f"{self._name}.{key}" if key else self._name, detail, self._where)

    def read(self, said: Mapping[str, object], known: Mapping[str, Reader]) -> dict[str, Any]:
        """What is right of what was said."""
        read: dict[str, Any] = {}
        for key, value in said.items():
            reader = known.get(key)
            if reader is None:
                self.complain(str(key)[:64], unknown(str(key), known))
                continue
            try:
                read[key] = reader(value)
            except ValueError as error:
                self.complain(key, str(error))
        return read

    def complete(self, said: Mapping[str, object], read: Mapping[str, object], needed: Sequence[str]) -> bool:
        """Whether everything that is needed was said, and is right."""
        for key in needed:
            if key not in said:
                self.complain(key, "is missing")
        return all(key in read for key in needed)


def listed(value: object) -> tuple[Mapping[str, object], ...]:
    """A list of named values, to be read one by one. For the schema."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(part, Mapping) for part in value):
        raise ValueError("needs a list, each with named values (- key: value)")
    return tuple(value)


def one_of(value: object, known: Sequence[str]) -> str:
    """One of a few words."""
    if value not in known:
        raise ValueError(f"needs one of {in_a_row(known)}, not {readers.said(value)}")
    return str(value)


def in_a_row(names: Iterable[str]) -> str:
    """Names with commas between: in their order if they have one, else by the alphabet."""
    return ", ".join(names if isinstance(names, tuple) else sorted(names))
