"""Tests that mostly wait: while one of them runs, the next one of its worker begins beside it, in a thread.

Only those of `FOLDERS`, and only if they need nothing of pytest but a folder of their own and their parameters. A test's result is
asked for, and told, in its own turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Final

import pytest

FOLDERS: Final = ("tests/journeys/", "tests/acceptance/")

_begun: Final = dict[str, "Future[None]"]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, bool, bool]:
    if isinstance(nextitem, pytest.Function) and _may_run_beside(item) and _may_run_beside(nextitem):
        _begin(nextitem)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    begun = _begun.pop(pyfuncitem.nodeid, None)
    if begun is None:
        return None
    begun.result()
    return True


def _may_run_beside(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or not item.nodeid.startswith(FOLDERS):
        return False
    needed = set(inspect.signature(item.function).parameters)
    known = {"tmp_path", *(item.callspec.params if hasattr(item, "callspec") else ())}
    marked = any(item.get_closest_marker(name) for name in ("skip", "skipif", "usefixtures"))
    return needed <= known and not marked and not inspect.iscoroutinefunction(item.function)


def _begin(item: pytest.Function) -> None:
    ended = _begun[item.nodeid] = Future[None]()

    def run() -> None:
        try:
            with TemporaryDirectory(prefix="journey-", ignore_cleanup_errors=True) as folder:
                given = {
                    "tmp_path": Path(folder),
                    **(item.callspec.params if hasattr(item, "callspec") else {}),
                }
                item.function(**{name: given[name] for name in inspect.signature(item.function).parameters})
        except BaseException as error:  # noqa: BLE001 -- raised again in the test's own turn
            ended.set_exception(error)
        else:
            ended.set_result(None)

    Thread(target=run, name=item.nodeid, daemon=True).start()
