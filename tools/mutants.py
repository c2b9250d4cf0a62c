"""`python -m tools.mutants`: which changes of the code that judges agents no test would notice.

Each mutant (`tools/mutations.py`) is the program with one small change. It is killed if a test fails with it, and survives if
none does: then either a test is missing, or the change means nothing. Survivors that were looked at are in `tools/mutants.toml`,
each with the reason why it may live, and are not tried again. Prints the others; exits with 1 if there are any.

One process has pytest, the tests and the program loaded. The tests run once, to learn which statements each of them reaches.
Then each mutant lives in a fork: the code of its functions is exchanged in place, and the tests that reach the changed
statement run until one fails, those first that killed its neighbours. So a mutant costs milliseconds, not a start of pytest.
"""

from __future__ import annotations

import argparse
import ast
import enum
import gc
import json
import os
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from tools.mutations import Mutation, mutations

TARGETS = (
    "src/lifesigns/core/judgement.py",
    "src/lifesigns/core/ladder.py",
    "src/lifesigns/core/detectors/*.py",
)
ARGUED = Path("tools/mutants.toml")

SLOW_AFTER = 0.5
"""We skip tests that take more seconds than this: long random histories that kill hardly anything by themselves."""

PATIENCE = 5.0
"""A test that takes this many times as long as without the change, and a second, counts as endless."""

SEEN = "__seen__"


@dataclass
class Target:
    """A module whose mutants are made."""

    module: ModuleType
    path: Path
    tree: ast.Module
    mutations: list[Mutation] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.stem


class Coverage(NamedTuple):
    """The statements a test reaches without any change, and its time."""

    seconds: float
    reaches: frozenset[str]


def main() -> int:
    """Let pytest collect the tests, and take over from there."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("targets", nargs="*", default=TARGETS, help="files, or patterns of files, to change")
    parser.add_argument("--tests", nargs="+", default=["tests/core"], help="where the tests are")
    parser.add_argument("--argued", type=Path, default=ARGUED, help="the survivors that may live")
    parser.add_argument("--again", action="store_true", help="ask about the argued ones, too")
    parser.add_argument("--only", default="", help="only changes of functions whose name contains this")
    parser.add_argument("--seconds", type=float, default=inf, help="of tests for each, for a quick look")
    options = parser.parse_args()
    run = MutationRun(options)
    asked = ["-q", "-s", "-p", "no:cacheprovider", "--timeout=0", "--assert=plain"]
    status = pytest.main([*asked, *options.tests], plugins=[run])
    return run.status if run.status is not None else int(status) or 1


class MutationRun:
    """Runs all mutants, one after the other, in place of pytest's own loop over the tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.status: int | None = None

    def pytest_configure(self) -> None:
        """The same examples every time, without shrinking: we only ask whether a test fails."""
        from hypothesis import Phase, settings

        phases = Phase.explicit, Phase.generate
        many = settings(deadline=None, derandomize=True, database=None, phases=phases, max_examples=100)
        settings.register_profile("mutants", many)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.collect()
        gc.freeze()
        self.status = self._run(session.items)
        return True

    def _run(self, items: Sequence[pytest.Item]) -> int:
        argued = ArguedSurvivors(self._options.argued)
        targets = list(find_targets(self._options.targets))
        known = json.loads(_in_fork(lambda: json.dumps(measure_coverage(items, targets)))[1])
        if isinstance(known, str):
            print(f"A test fails without any change: {known}")
            return 2
        tests = TestSelection(
            items,
            {test: Coverage(took, frozenset(seen)) for test, (took, seen) in known.items()},
            self._options.seconds,
        )
        print(
            f"{len(known)} of {len(items)} tests, {sum(took for took, _ in known.values()):.0f} s", flush=True
        )
        begun = time.monotonic()
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for target, mutation in self._wanted(targets):
            if argued.is_argued(target, mutation) and not self._options.again:
                fate = "argued"
            elif tests.kill(target, mutation):
                fate = "killed"
            else:
                fate = "argued" if argued.is_argued(target, mutation) else "left"
            if fate == "left":
                print(f"{target.path}:{mutation.line} {mutation.where}: {mutation.change}", flush=True)
            counts[target.name][fate] += 1
        print(f"{time.monotonic() - begun:.0f} s")
        _report(counts)
        for one in (stale := argued.stale(targets)):
            print(f"argued, but not there any more: {one}")
        return 1 if stale or any(fates["left"] for fates in counts.values()) else 0

    def _wanted(self, targets: Sequence[Target]) -> Iterator[tuple[Target, Mutation]]:
        for target in targets:
            yield from ((target, one) for one in target.mutations if self._options.only in one.where)


def find_targets(patterns: Sequence[str]) -> Iterator[Target]:
    """The modules to change, as the tests have imported them."""
    files = {Path(f).resolve(): m for m in list(sys.modules.values()) if (f := getattr(m, "__file__", None))}
    for path in (path for pattern in patterns for path in sorted(Path().glob(pattern))):
        if module := files.get(path.resolve()):
            tree = ast.parse(path.read_text())
            enums = {
                name: kind
                for name, kind in vars(module).items()
                if isinstance(kind, type) and issubclass(kind, enum.Enum)
            }
            yield Target(module, path, tree, mutations(tree, enums))
        else:
            print(f"{path}: no test imports it")


class ArguedSurvivors:
    """The accepted survivors: `changes` are those of a function, "*" is all of them, `why` is for people."""

    def __init__(self, path: Path) -> None:
        content = tomllib.loads(path.read_text()) if path.exists() else {}
        entries = [(entry["in"], entry["changes"], entry["why"]) for entry in content.get("survivor", ())]
        self._changes = {(where, change) for where, changes, _ in entries for change in changes}

    def is_argued(self, target: Target, mutation: Mutation) -> bool:
        where = _where(target, mutation)
        return (where, mutation.change) in self._changes or (where, "*") in self._changes

    def stale(self, targets: Sequence[Target]) -> list[str]:
        """Accepted changes that these modules do not have."""
        there = {
            (_where(target, mutation), change)
            for target in targets
            for mutation in target.mutations
            for change in (mutation.change, "*")
        }
        names = tuple(f"{target.name}:" for target in targets)
        return sorted(
            f"{where}: {change}" for where, change in self._changes - there if where.startswith(names)
        )


def _where(target: Target, mutation: Mutation) -> str:
    return f"{target.name}: {mutation.where}"


class TestSelection:
    """Which tests to run for which statement, and in what order."""

    def __init__(
        self, items: Sequence[pytest.Item], coverage: Mapping[str, Coverage], seconds: float
    ) -> None:
        self._coverage = coverage
        self._seconds = seconds
        self._items = {item.nodeid: item for item in items if item.nodeid in coverage}
        self._kills: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def kill(self, target: Target, mutation: Mutation) -> bool:
        """Whether a test fails with this change."""
        kills = self._kills[_where(target, mutation)]
        tests = list(self._reaching(target, mutation, kills))

        def run_tests() -> str | None:
            """The test that fails."""
            mutation.apply()
            if not swap_code(target):
                return "it does not even load"
            for i, test in enumerate(tests):
                following = self._items[tests[i + 1]] if i + 1 < len(tests) else None
                limit = 1.0 + PATIENCE * self._coverage[test].seconds
                # Time of this process alone: others may be running.
                signal.setitimer(signal.ITIMER_VIRTUAL, limit)
                if not _passes(self._items[test], following):
                    return test
            return None

        status, killer = _in_fork(run_tests)
        if killer:
            kills[killer] += 1
        assert status <= 0, f"the run itself failed with {mutation.change}"
        return bool(killer) or status < 0  # It did not end, or crashed Python.

    def _reaching(self, target: Target, mutation: Mutation, kills: Counter[str]) -> Iterator[str]:
        """The tests to run, the likeliest and quickest first, as many as there is time for."""
        statement, own = _mark(target, mutation.statement), f"test_{target.name}"
        reaching = (
            test
            for test, coverage in self._coverage.items()
            if statement in coverage.reaches or (mutation.statement is None and own in test)
        )
        left = self._seconds
        for test in sorted(
            reaching, key=lambda test: (-kills[test], own not in test, self._coverage[test].seconds)
        ):
            if left > 0.0:
                yield test
            left -= self._coverage[test].seconds


def measure_coverage(
    items: Sequence[pytest.Item], targets: Sequence[Target]
) -> dict[str, tuple[float, list[str]]] | str:
    """The time of each test and what it reaches; or which one fails."""
    seen: set[str] = set()
    signal.signal(signal.SIGVTALRM, _stop)
    for target in targets:
        _CoverageMarker(target).visit(target.tree)
        vars(target.module)[SEEN] = seen
        assert swap_code(target), f"{target.path} cannot be marked"
    known = {}
    for item, following in zip(items, [*items[1:], None], strict=True):
        seen.clear()
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, SLOW_AFTER)
        passes = _passes(item, following)
        in_time = signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0] > 0.0
        if passes and in_time:
            known[item.nodeid] = time.process_time() - begun, sorted(seen)
        elif in_time:
            return item.nodeid
    return known


class _TooSlow(BaseException):
    """A test takes too long."""


def _stop(*_: object) -> None:
    raise _TooSlow


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run a test that has not run in this process, without a report, which costs more than the test."""
    try:
        try:
            item.ihook.pytest_runtest_setup(item=item)
            item.ihook.pytest_runtest_call(item=item)
        finally:
            item.ihook.pytest_runtest_teardown(item=item, nextitem=following)
    except pytest.skip.Exception:
        return True
    except BaseException:  # noqa: BLE001  (whatever it is, the test noticed)
        return False
    return True


def _mark(target: Target, statement: int | None) -> str:
    return f"{target.name}:{statement or ''}"


class _CoverageMarker(ast.NodeTransformer):
    """Makes every statement of a function record that it was reached; the module counts as reached with any of them."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._depth:
            for name in ("body", "orelse", "finalbody"):
                body = getattr(node, name, None)
                if isinstance(body, list):
                    setattr(node, name, [part for one in body for part in (*self._marks(one), one)])
        return node

    def _marks(self, statement: ast.stmt) -> list[ast.stmt]:
        marks = _mark(self._target, statement.lineno), _mark(self._target, None)
        return ast.parse(f"{SEEN}.update({marks!r})").body


def swap_code(target: Target) -> bool:
    """Load the functions of a module from its current tree. False if that fails."""
    old, new = vars(target.module), {"__name__": target.module.__name__, "__file__": str(target.path)}
    try:
        code = compile(ast.fix_missing_locations(target.tree), str(target.path), "exec", dont_inherit=True)
        exec(code, new)
    except Exception:  # noqa: BLE001  (a change may break the module in any way)
        return False
    _swap(target.module.__name__, old, new)
    return True


def _swap(module: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name, was in list(old.items()):
        now = new.get(name)
        if isinstance(was, FunctionType) and isinstance(now, FunctionType):
            if was.__module__ == module:
                was.__code__ = now.__code__
                was.__defaults__, was.__kwdefaults__ = now.__defaults__, now.__kwdefaults__
        elif isinstance(was, property) and isinstance(now, property):
            _swap(module, {"get": was.fget}, {"get": now.fget})
        elif isinstance(was, type) and isinstance(now, type):
            if was.__module__ == module:
                if _closes_over(was) != _closes_over(now):
                    # A dataclass with other factories: the code alone does not fit.
                    type.__setattr__(was, "__init__", vars(now)["__init__"])
                _swap(module, vars(was), vars(now))
        elif name in new and name[:2] != "__" and isinstance(old, dict) and was != now:
            _rebind(name, was, now)


def _closes_over(kind: type) -> tuple[str, ...]:
    """The free variables of a class's constructor."""
    made = vars(kind).get("__init__")
    return made.__code__.co_freevars if isinstance(made, FunctionType) else ()


def _rebind(name: str, was: object, now: object) -> None:
    """Give a constant another value, wherever it was imported."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is was:
            vars(module)[name] = now


def _in_fork(run: Callable[[], str | None]) -> tuple[int, str]:
    """Run something in a child process: its exit status and its result."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as out, Path(os.devnull).open("w") as nowhere:
                sys.stdout = sys.stderr = nowhere
                out.write(run() or "")
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        returned = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), returned


def _report(counts: Mapping[str, Counter[str]]) -> None:
    columns = "killed", "argued", "left"
    print(f"\n{'':12}{'mutants':>8}" + "".join(f"{column:>8}" for column in columns))
    for name, fates in (*counts.items(), ("all", sum(counts.values(), Counter[str]()))):
        print(f"{name:12}{fates.total():8}" + "".join(f"{fates[column]:8}" for column in columns))


if __name__ == "__main__":
    sys.exit(main())
