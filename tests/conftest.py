"""How Hypothesis behaves in this suite, and what its processes inherit.

`dev` explores: every run tries other examples. `ci` repeats: the same examples for the same code, so that a
red build is the fault of the change in front of you. Counterexamples found elsewhere are pinned with `@example`.
`glance` does not shrink what it finds, for a quick look at long histories.
None has a deadline, because a busy machine is not a failure. Chosen by `CI` in the environment, or
`--hypothesis-profile`.

Nothing that collecting has made is garbage before the end, and it is a lot: the collector does not look at it.

Each worker begins with its part of the tests that mostly wait (`WAITING`): at the end they would have the machine for
themselves, and hardly use it.
"""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from itertools import groupby

import pytest
from hypothesis import Phase, settings

from tests.servers.postgres import PostgresServer

settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("glance", deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Whoever was started by `nohup` ignores SIGHUP, and so would every child in these tests; some are about just that signal.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test may find the hub of the person who runs it, or leave anything in that person's state folder.
FOR_TESTS = (
    "LIFESIGNS_CHROMIUM",
    "LIFESIGNS_INTEGRATIONS",
    "LIFESIGNS_OVERLOAD",
    "LIFESIGNS_TEST_MCP_MEMORY",
)
for name in [name for name in os.environ if name.startswith("LIFESIGNS_") and name not in FOR_TESTS]:
    del os.environ[name]
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="lifesigns-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)


gc.disable()  # Until everything is collected: six workers would visit all modules and all tests, again and again.

WAITING = ("tests/journeys/", "tests/acceptance/", "tests/demo/", "tests/integrations/")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers get equal parts of the list, one after the other: each part begins with files that wait."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers == 1:
        return
    files = [
        (name, list(tests)) for name, tests in groupby(items, lambda item: item.nodeid.partition("::")[0])
    ]
    waiting = [tests for name, tests in files if name.startswith(WAITING)]
    others = [test for name, tests in files if not name.startswith(WAITING) for test in tests]
    part = -(-len(others) // workers)
    items[:] = [
        test
        for n in range(workers)
        for test in (
            *(one for tests in waiting[n::workers] for one in tests),
            *others[n * part : (n + 1) * part],
        )
    ]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One for all tests of a worker. A test that harms it lets it recover; what it finds there is of the test before."""
    with PostgresServer() as server:
        yield server
