"""A frozen agent says where it stands, and never more than its beat can carry."""

import sys
import threading
from collections.abc import Callable

from lifesigns.agent.sender.beat_builder import STACK, BeatBuilder
from lifesigns.agent.sender.vitals import Vitals
from lifesigns.agent.standstill import STACK_MAX, stack_of
from lifesigns.wire.limits import METADATA_MAX, TEXT_MAX


def builder() -> BeatBuilder:
    return BeatBuilder(host="h", pid=1, role=None, task=None)


def beat_metadata(said: BeatBuilder, stack: str | None) -> dict[str, str]:
    return dict(said.beat("a", "i", 1, Vitals(0.0, 1.0), 5.0, stack).metadata or {})


class Standing:
    """A thread that stands in a function of its own until it is let go."""

    def __init__(self, stand: Callable[[threading.Event, threading.Event], None]) -> None:
        self._there, self._go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=stand, args=(self._there, self._go))

    def __enter__(self) -> int:
        self.thread.start()
        assert self._there.wait(30)
        assert self.thread.ident is not None
        return self.thread.ident

    def __exit__(self, *_: object) -> None:
        self._go.set()
        self.thread.join(30)


def fetch_page(there: threading.Event, go: threading.Event) -> None:
    there.set()
    go.wait(60)


def dig(there: threading.Event, go: threading.Event, deep: int = 200) -> None:
    if deep:
        dig(there, go, deep - 1)
    else:
        fetch_page(there, go)


def test_the_innermost_call_comes_last() -> None:
    with Standing(fetch_page) as thread_id:
        lines = (stack_of(thread_id) or "").splitlines()
    assert any("test_standstill.py" in line and line.endswith(" in fetch_page") for line in lines)
    names = [line.rsplit(" ", 1)[-1] for line in lines]
    assert names.index("run") < names.index("fetch_page") < names.index("wait")


def test_of_a_deep_stack_the_outermost_are_left_out() -> None:
    with Standing(dig) as thread_id:
        stack = stack_of(thread_id) or ""
    assert len(stack.encode()) <= STACK_MAX < TEXT_MAX
    assert " in fetch_page" in stack
    assert " in run" not in stack


def test_a_thread_that_is_not_there_stands_nowhere() -> None:
    assert stack_of(None) is None
    assert stack_of(max(sys._current_frames()) + 12345) is None


def test_it_rides_along_with_the_beat_and_changes_nothing_else() -> None:
    said = builder()
    said.set_metadata({"provider": "p"})
    assert beat_metadata(said, "a.py:1 in f") == {"provider": "p", STACK: "a.py:1 in f"}
    assert beat_metadata(said, None) == {"provider": "p"}


def test_metadata_that_is_full_stays_as_it_is() -> None:
    """One key more, and every beat of the frozen agent would be refused: then it would be silent as well."""
    said = builder()
    said.set_metadata({f"k{n}": n for n in range(METADATA_MAX)})
    assert STACK not in beat_metadata(said, "a.py:1 in f")
    assert len(beat_metadata(said, "a.py:1 in f")) == METADATA_MAX


def test_a_name_that_is_no_unicode_costs_no_beat() -> None:
    said = beat_metadata(builder(), "\udcff" * 2000)[STACK]
    assert len(said.encode("utf-8")) <= TEXT_MAX
