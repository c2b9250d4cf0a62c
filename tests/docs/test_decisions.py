"""A decision record has a number of its own, in its name, its title and the index."""

import re
from collections import Counter

from tests.docs.pages import ROOT

DECISIONS = ROOT / "docs" / "decisions"
RECORDS = sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")


def test_no_two_records_have_one_number() -> None:
    """Two people who write a record on the same day both take the next number."""
    numbers = Counter(path.name[:4] for path in RECORDS)
    assert [number for number, count in numbers.items() if count > 1] == []


def test_title_and_index_have_the_number_of_the_file() -> None:
    index = dict(re.findall(r"- \[(\d{4})\]\(([^)]+)\)", (DECISIONS / "README.md").read_text()))
    assert index == {path.name[:4]: path.name for path in RECORDS}
    assert [path.name for path in RECORDS if not path.read_text().startswith(f"# {path.name[:4]}: ")] == []
