"""The metrics of all slots as one text: each sample gets the label `slot`, and a family is described once.

For Prometheus and for OpenMetrics, whose texts differ in nothing that matters here but their end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lifesigns.web.slot_calls import SlotAnswer

END: Final = "# EOF"
_describes: Final = re.compile(r"# (?:HELP|TYPE|UNIT) (\S+)").match
_sample: Final = re.compile(r"([^\s{]+)(\{)?").match


@dataclass(slots=True)
class _Family:
    about: dict[str, None] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)


def merged_metrics(answers: Sequence[SlotAnswer]) -> bytes:
    """The texts of these slots as one."""
    families: dict[str, _Family] = {}
    has_end = False
    for one in answers:
        family = _Family()  # Before the first description there is nothing.
        for line in one.body.decode().splitlines():
            if (described := _describes(line)) is not None:
                family = families.setdefault(described[1], _Family())
                family.about[line] = None
            elif line == END:
                has_end = True
            elif line:
                family.samples.append(_with_slot(line, one.slot))
    lines: Iterable[str] = (line for family in families.values() for line in (*family.about, *family.samples))
    return "".join(f"{line}\n" for line in (*lines, *([END] if has_end else []))).encode()


def _with_slot(line: str, slot: int) -> str:
    named = _sample(line)
    assert named is not None
    rest = line[named.end() :]
    if named[2] is None:
        return f'{named[1]}{{slot="{slot}"}}{rest}'
    return f'{named[1]}{{slot="{slot}"{"" if rest.startswith("}") else ","}{rest}'
