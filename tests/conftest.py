"""How Hypothesis behaves in this suite, and what its processes inherit.

`dev` explores: every run tries other examples. `ci` repeats: the same examples for the same code, so that a
red build is the fault of the change in front of you. Counterexamples found elsewhere are pinned with `@example`.
`glance` does not shrink what it finds, for a quick look at long histories. `soak` looks for long: two thousand examples,
where a run of the suite has 50. A law that needs more to be tested at all says so beside it.
None has a deadline, because a busy machine is not a failure. Chosen by `CI` in the environment, or
`--hypothesis-profile`.

Nothing that collecting has made is garbage before the end, and it is a lot: the collector does not look at it.

Some workers begin with the tests that mostly wait (`WAITING`), the others with those that compute: workers that all wait
leave the machine idle, and so would the last tests if they wait.
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

settings.register_profile("dev", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("soak", settings.get_profile("dev"), max_examples=2000)
settings.register_profile("glance", deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Whoever was started by `nohup` or with `&` ignores these, and so would every child in these tests; some are about just them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

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


gc.disable()  # Until everything is collected: every worker would visit all modules and all tests, again and again.

WAITING = ("tests/journeys/", "tests/acceptance/", "tests/demo/", "tests/integrations/")
WAIT_SHARE = 2 / 3
"""Of the workers: the others keep the processors busy meanwhile."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A worker gets an equal part of the list, and when it is through, half of what another has left, from its end. Files that may take
    long come first: what is left at the end, for one worker alone, is short."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers == 1:
        return
    waiting: list[list[pytest.Item]] = [[] for _ in range(round(WAIT_SHARE * workers))]
    others: list[pytest.Item] = []
    files = [[*tests] for _, tests in groupby(items, lambda item: item.nodeid.partition("::")[0])]
    for n, tests in enumerate(sorted(files, key=_longest, reverse=True)):
        (waiting[n % len(waiting)] if tests[0].nodeid.startswith(WAITING) else others).extend(tests)
    parts = [*waiting, *([] for _ in range(workers - len(waiting)))]
    for n, part in enumerate(parts):
        room = (len(items) - sum(map(len, parts[:n]))) // (workers - n) - len(part)
        part += others[:room]
        del others[:room]
    items[:] = [test for part in parts for test in part]


def _longest(tests: list[pytest.Item]) -> float:
    """How long any of these may take."""
    return max((float(mark.args[0]) for test in tests for mark in test.iter_markers("timeout")), default=0.0)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One for all tests of a worker. A test that harms it lets it recover; what it finds there is of the test before."""
    with PostgresServer() as server:
        yield server
