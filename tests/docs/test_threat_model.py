"""Every attack that the threat model names is tried by the test it names, and every file of `tests/security` keeps a promise there."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/explanation/threat-model.md").read_text(encoding="utf-8")
ATTACKS = re.findall(r"^\| ([^|]+) \| \[`(\w+)`\]\(../../(tests/[\w/]+\.py)\) \|$", PAGE, re.MULTILINE)
TESTS = re.findall(r"\[`(\w+)`\]\(../../(tests/[\w/]+\.py)\) \|$", PAGE, re.MULTILINE)
"""Those of attacks that broke something once, too."""


def test_every_attack_has_its_test() -> None:
    assert len(ATTACKS) >= 52
    assert len({name for name, _, _ in ATTACKS}) == len(ATTACKS)
    assert len(TESTS) >= len(ATTACKS) + 28
    missing = [
        test for test, file in TESTS if f"def test_{test}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_file_of_attacks_keeps_a_promise() -> None:
    promised = set(re.findall(r"\]\(../../tests/security/(\w+\.py)\)", PAGE.partition("## Attacks")[0]))
    assert promised == {file.name for file in (ROOT / "tests/security").glob("test_*.py")}
