"""A link to a page, or to a heading of a page, leads there."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import FENCE, PAGES, ROOT, shown

LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """The names GitHub gives to a page's headings."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(FENCE.sub("", page))
    }


def dead_links(path: Path) -> Iterator[str]:
    for link in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            yield link


def test_links_lead_somewhere() -> None:
    assert {shown(page): dead for page in PAGES if (dead := list(dead_links(page)))} == {}


def test_every_page_of_the_docs_is_in_the_index() -> None:
    """The decisions are many, and have an index of their own."""
    docs = ROOT / "docs"
    indexes = [docs / "README.md", docs / "decisions" / "README.md"]
    linked = {
        (index.parent / link.partition("#")[0]).resolve()
        for index in indexes
        for link in LINK.findall(index.read_text(encoding="utf-8"))
    }
    assert [shown(p) for p in PAGES if p.is_relative_to(docs) and p not in {*linked, indexes[0]}] == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# The `one` law\n[a](page.md) [b](#the-one-law) [c](gone.md) [d](#gone) [e](https://x.y/z)\n"
    )
    assert list(dead_links(page)) == ["gone.md", "#gone"]
