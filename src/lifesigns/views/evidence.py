"""Evidence: the numbers of a finding, with words and units for people."""

from __future__ import annotations

from msgspec import Struct


class Measure(Struct, frozen=True):
    """One measured value."""

    name: str
    value: int | float | str
    unit: str
    """`s`, `share` (of 1), `percent`, `MB`, `USD` ...; empty for counts and words."""
