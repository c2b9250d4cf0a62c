"""Templates: texts a user may change, with places for facts: `No progress for {since}: {facts}`.

A place is a plain name in braces; `{{` and `}}` are braces. A name gives no access to parts of its value (no
attributes, no indices, no formats), and a fact goes in as it is: braces in it mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

TEMPLATE_MAX: Final = 4096

NUDGE_FACTS: Final = ("agent_id", "facts", "last_tool", "since")
"""What a nudge's template may name: who, the findings and the last tool call as sentences, that tool alone, and for how
long its health has been what it is."""

_PLACES: Final = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}|[{}]")


def fault(template: str, names: Iterable[str]) -> str:
    """What is wrong with a template that may use these names; empty if nothing is."""
    known = sorted(names)
    if len(template) > TEMPLATE_MAX:
        return f"has {len(template)} signs, more than {TEMPLATE_MAX}"
    for place in _PLACES.finditer(template):
        if place[1] is None and place[0] in "{}":
            said = template[place.start() : place.start() + 20]
            return f"has a brace at {said!r} that belongs to no name; a brace itself is written twice"
        if place[1] is not None and place[1] not in known:
            return f"has {{{place[1]}}}, but knows only {', '.join(f'{{{name}}}' for name in known)}"
    return ""


def places(template: str) -> Iterator[tuple[str, int]]:
    """The names in a template, each with where it begins."""
    return ((place[1], place.start()) for place in _PLACES.finditer(template) if place[1])


def filled(template: str, facts: Mapping[str, str]) -> str:
    """A template without fault, with its facts."""
    return _PLACES.sub(lambda place: facts[place[1]] if place[1] else place[0][:1], template)
