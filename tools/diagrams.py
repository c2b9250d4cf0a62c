"""The pictures of the state machines in the docs, drawn from the tables in the code.

    python tools/diagrams.py            draw them anew (`make diagrams`)
    python tools/diagrams.py --check    say which are out of date, and exit with 1 if any is

A picture stands between two marker lines of its page; everything else there is written by hand. What a table
cannot know, why a change happens, stands here. A change that is not explained is an error, and so is an
explanation of a change that the table does not allow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from lifesigns.core import breaker, health

ROOT: Final = Path(__file__).parents[1]
BEGIN: Final = "<!-- drawn by tools/diagrams.py from the table in the code: make diagrams -->"
END: Final = "<!-- end of drawing -->"

Table = Mapping[Any, Set[Any]]

HEALTH_WHY: Final = {
    ("starting", "judged"): "heard, or not heard within its grace",
    ("starting", "terminated"): "left, or was stopped",
    ("judged", "starting"): "a new incarnation",
    ("judged", "terminated"): "left, or was stopped",
    ("terminated", "starting"): "a new incarnation",
}
BREAKER_WHY: Final = {
    ("closed", "open"): "failures, rate or slowness",
    ("open", "half_open"): "its wait is over",
    ("half_open", "open"): "a probe fails or is lost",
    ("half_open", "closed"): "all probes succeed",
}


def health_picture(legal: Table = health.LEGAL) -> str:
    """Five states of which each may follow each are twenty arrows and one thought: we draw them as one."""
    judged = twins(legal, health.Health.HEALTHY)
    names = {state: "judged" if state in judged else str(state) for state in legal}
    arrows = {(names[was], names[to]) for was in legal for to in legal[was] if not {was, to} <= judged}
    lines = [
        "    state judged {",
        *(f"        {state}" for state in legal if state in judged),
        "    }",
        "    note right of judged : each may follow each, the worst open finding decides",
        "    [*] --> starting",
    ]
    return _picture(lines, arrows, HEALTH_WHY, legal)


def breaker_picture(legal: Table = breaker.LEGAL) -> str:
    """Its own transitions as arrows; those that a person can make from any state as a note."""
    by_hand = [state for state in legal if all(state in legal[was] for was in legal if was is not state)]
    arrows = {(str(was), str(to)) for was in legal for to in legal[was] if to not in by_hand}
    arrows |= {(was, to) for was, to in BREAKER_WHY if _allows(legal, was, to)}
    lines = [
        "    [*] --> closed",
        *(f"    {state}" for state in legal if not any(str(state) in arrow for arrow in arrows)),
        f"    note right of closed : by hand, from anywhere, {', '.join(by_hand)}",
    ]
    return _picture(lines, arrows, BREAKER_WHY, legal)


PICTURES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/reference/health.md": health_picture,
    "docs/reference/breaker.md": breaker_picture,
}


# --- parts -------------------------------------------------------------------------------------------


def twins(legal: Table, one: StrEnum) -> set[StrEnum]:
    """The states that lead to `one` and back, and otherwise to and from the same ones as it does."""
    return {one, *(other for other in legal if other is not one and _alike(legal, one, other))}


def _alike(legal: Table, one: StrEnum, other: StrEnum) -> bool:
    pair = {one, other}
    return (
        other in legal[one]
        and one in legal[other]
        and legal[one] - pair == legal[other] - pair
        and all((one in legal[third]) == (other in legal[third]) for third in legal if third not in pair)
    )


def _allows(legal: Table, was: str, to: str) -> bool:
    return any(str(one) == was and to in map(str, legal[one]) for one in legal)


def _picture(
    lines: list[str], arrows: Set[tuple[str, str]], why: Mapping[tuple[str, str], str], legal: Table
) -> str:
    if unexplained := arrows ^ set(why):
        raise SystemExit(f"tools/diagrams.py: the table and its explanations differ in {sorted(unexplained)}")
    told = (f"    {was} --> {to} : {text}" for (was, to), text in why.items())
    diagram = ["```mermaid", "stateDiagram-v2", *lines, *told, "```"]
    return "\n".join([*diagram, "", *_matrix(legal)])


def _matrix(legal: Table) -> Iterator[str]:
    """The whole table, for looking something up."""
    yield "| from / to | " + " | ".join(f"`{state}`" for state in legal) + " |"
    yield "|---" * (len(legal) + 1) + "|"
    for was, allowed in legal.items():
        yield f"| `{was}` | " + " | ".join("yes" if to in allowed else "·" for to in legal) + " |"


def renewed(page: str, picture: str) -> str:
    """The page with this picture between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"tools/diagrams.py: a page lacks its markers {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{picture}\n{END}{after}"


def outdated(root: Path = ROOT) -> dict[Path, str]:
    """The pages whose picture differs from the table, with the correct content."""
    pages = {root / name: picture() for name, picture in PICTURES.items()}
    found = {path: path.read_text(encoding="utf-8") for path in pages}
    wanted = {path: renewed(found[path], picture) for path, picture in pages.items()}
    return {path: page for path, page in wanted.items() if page != found[path]}


def main(words: Sequence[str], root: Path = ROOT) -> int:
    """Draw, or check."""
    check = "--check" in words
    old = outdated(root)
    for path, page in old.items():
        if check:
            print(f"{path.relative_to(root)} is out of date: make diagrams")
        else:
            path.write_text(page, encoding="utf-8")
            print(f"{path.relative_to(root)} was drawn anew")
    return 1 if old and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
