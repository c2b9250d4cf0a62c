"""`make mutants`: what it changes, and that it tells what a test notices from what none does."""

import ast
import subprocess
import sys
from enum import Enum
from pathlib import Path
from textwrap import dedent

import pytest

from tools.mutations import mutations

ROOT = Path(__file__).parents[2]


class Level(Enum):
    LOW = 1
    HIGH = 2


def changes(source: str) -> list[str]:
    return [mutation.change for mutation in mutations(ast.parse(dedent(source)), {"Level": Level})]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["x = a <= b"]),
        ("x = a is not b", ["x = a is b"]),
        ("x = a and b", ["x = a or b", "x = b", "x = a"]),
        ("x = not a", ["x = a"]),
        ("x = a + 3", ["x = a - 3", "x = a + 4", "x = a + 0"]),
        ("x = 0.5", ["x = 1.5", "x = 0.0"]),
        ("x = True", ["x = False"]),
        ("x = 'word'", ["x = 'word_'"]),
        ("x = max(a, b)", ["x = min(a, b)"]),
        ("x = f(a, b=c)", ["x = f(a)"]),
        ("x = Level.LOW", ["x = Level.HIGH"]),
        ("x = a if b else c", ["x = a if True else c", "x = a if False else c"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if True]"]),
    ],
)
def test_a_change_is_small(source: str, expected: list[str]) -> None:
    assert changes(source) == [f"{source} -> {change}" for change in expected]


@pytest.mark.parametrize(
    "source", ["'''Of the house.'''", "x = f'{a + 1}'", "x = 'two words'", "x: Final[1]"]
)
def test_what_people_read_and_types_stay_as_they_are(source: str) -> None:
    assert changes(source) == []


def test_a_struct_keeps_its_defaults_and_its_methods_do_not_stay_as_they_are() -> None:
    source = """
        class Limits(Struct, frozen=True):
            most: int = 3

            def reached(self, count):
                return count >= self.most
    """
    assert changes(source) == [
        "return count >= self.most -> return None",
        "return count >= self.most -> return count > self.most",
    ]


def test_statements_of_a_function_are_left_out_and_conditions_forced() -> None:
    source = """
        def f(a):
            if a:
                g()
            return a
    """
    assert changes(source) == ["a -> True", "a -> False", "g() -> pass", "return a -> return None"]


def test_changes_that_read_alike_are_numbered() -> None:
    source = """
        def f():
            g()
            g()
    """
    assert changes(source) == ["g() -> pass", "g() -> pass (2)"]


def test_finding_changes_changes_nothing() -> None:
    tree = ast.parse((ROOT / "src/lifesigns/core/ladder.py").read_text())
    before = ast.dump(tree)
    found = mutations(tree, {})
    assert len(found) > 500
    assert ast.dump(tree) == before
    found[0].apply()
    assert ast.dump(tree) != before


SAMPLE = """
    LIMIT = 3

    def is_late(waited, limit=LIMIT):
        return waited > limit

    def unused():
        return 1 + 1
"""
TESTS = """
    from sample import LIMIT, is_late

    def test_late():
        assert is_late(4)
        assert is_late(2, 1)
        assert LIMIT == 3
"""
COUNTING = """
    LIMIT = 3

    class Watch:
        def __init__(self):
            self.seen = 0

        def see(self):
            while self.seen < LIMIT:
                self.seen += 1
            return self.seen
"""
TESTS_OF_COUNTING = """
    from sample import LIMIT, Watch

    def test_watch():
        assert Watch().seen == 0
        assert Watch().see() == LIMIT == 3
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "sample.py").write_text(dedent(SAMPLE))
    (tmp_path / "test_sample.py").write_text(dedent(TESTS))
    return tmp_path


def run(project: Path) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "tools.mutants", "sample.py", "--tests", ".", "--argued", "argued.toml"]
    env = {"PYTHONPATH": f"{ROOT}:{project}", "PATH": ""}
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout.splitlines()


def survivors(lines: list[str]) -> set[str]:
    return {line.split(" ", 1)[1] for line in lines if line.startswith("sample.py:")}


def test_it_prints_the_changes_that_no_test_notices_until_they_are_argued(project: Path) -> None:
    """A boundary nobody stands on and a function nobody calls survive."""
    status, lines = run(project)
    assert status == 1
    assert survivors(lines) == {
        "is_late: return waited > limit -> return waited >= limit",
        "unused: return 1 + 1 -> return None",
        "unused: return 1 + 1 -> return 1 - 1",
        "unused: return 1 + 1 -> return 2 + 1",
        "unused: return 1 + 1 -> return 0 + 1",
        "unused: return 1 + 1 -> return 1 + 2",
        "unused: return 1 + 1 -> return 1 + 0",
    }
    (project / "argued.toml").write_text(
        dedent("""
            [[survivor]]
            in = "sample: is_late"
            why = "nobody stands there"
            changes = ["return waited > limit -> return waited >= limit"]

            [[survivor]]
            in = "sample: unused"
            why = "nobody calls it"
            changes = ["*"]
        """)
    )
    status, lines = run(project)
    assert (status, survivors(lines)) == (0, set())


def test_constants_methods_and_endless_loops_do_not_survive(project: Path) -> None:
    (project / "sample.py").write_text(dedent(COUNTING))
    (project / "test_sample.py").write_text(dedent(TESTS_OF_COUNTING))
    status, lines = run(project)
    assert (status, survivors(lines)) == (0, set()), lines


def test_a_field_without_its_factory_is_a_change_as_any_other(project: Path) -> None:
    """A constructor that dataclasses have made closes over its factories: with one less the old one cannot take its code."""
    (project / "sample.py").write_text(
        "from dataclasses import dataclass, field\n\n@dataclass\nclass Tape:\n"
        "    calls: list[str] = field(default_factory=list)\n"
        "    times: list[float] = field(default_factory=list)\n"
    )
    (project / "test_sample.py").write_text(
        "from sample import Tape\n\ndef test_calls():\n    assert Tape(times=[]).calls == []\n"
    )
    status, lines = run(project)
    assert (status, survivors(lines)) == (0, set()), lines


def test_an_argument_about_what_is_not_there_any_more_is_told(project: Path) -> None:
    (project / "sample.py").write_text("def f():\n    return True\n")
    (project / "test_sample.py").write_text("from sample import f\n\ndef test_f():\n    assert f() is True\n")
    assert run(project)[0] == 0
    (project / "argued.toml").write_text('[[survivor]]\nin = "sample: g"\nwhy = "-"\nchanges = ["*"]\n')
    status, lines = run(project)
    assert status == 1
    assert "argued, but not there any more: sample: g: *" in lines


def test_nothing_is_said_of_mutants_when_a_test_fails_without_any(project: Path) -> None:
    (project / "test_sample.py").write_text(
        "import sample\n\ndef test_sad():\n    assert sample.is_late(1)\n"
    )
    status, lines = run(project)
    assert status == 2
    assert "A test fails without any change: test_sample.py::test_sad" in lines
