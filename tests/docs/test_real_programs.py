"""What our pages say was shown with the real programs is what `make integrations` runs."""

import re
from types import FunctionType, ModuleType

import pytest

from tests.docs.pages import ROOT
from tests.integrations import test_with_coders, test_with_frameworks
from tests.integrations.frameworks import FRAMEWORKS

ROW = re.compile(r"^\| ([a-h]?) \| `(\w+)` \|(.*)\|$", re.MULTILINE)
SHOWN = {
    "docs/reference/cli/hooks.md": test_with_coders,
    "docs/howto/watch-your-framework.md": test_with_frameworks,
}


def rows(page: str) -> list[tuple[str, FunctionType, str]]:
    """By case: its test, and what the page says of the programs."""
    module: ModuleType = SHOWN[page]
    return [
        (case, getattr(module, f"test_{name}"), rest)
        for case, name, rest in ROW.findall((ROOT / page).read_text(encoding="utf-8"))
    ]


def skipped(test: FunctionType) -> set[str]:
    """The programs that have no such case."""
    (mark,) = (mark for mark in test.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    return {param.id for param in mark.args[1] if param.marks}


@pytest.mark.parametrize("page", SHOWN)
def test_every_case_has_its_test(page: str) -> None:
    assert "".join(case for case, _, _ in rows(page)) == "abcdefgh"


def test_frameworks_without_a_case_stand_beside_it() -> None:
    page = "docs/howto/watch-your-framework.md"
    said = {test.__name__: set(re.findall(r"`(\w+)`", rest)) for _, test, rest in rows(page)}
    assert said == {test.__name__: skipped(test) for _, test, _ in rows(page)}
    assert set.union(*said.values()) <= set(FRAMEWORKS)
