"""Output that says nothing new, beside output that only looks like it: in pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from lifesigns.agent.supervise.repetition import KNOWN_MAX, ROUNDS, Novelty, Repetition
from lifesigns.agent.supervise.tail import Tail

LOOKS = 60
"""Ten minutes of a look every ten seconds."""


def looked(pieces: Iterator[str]) -> list[Novelty]:
    """One piece of output before each look, as `Life` reads it."""
    tail, repetition, found = Tail(), Repetition(), []
    for piece in itertools.islice(pieces, LOOKS):
        tail.add(piece.encode())
        found.append(repetition.look(tail.fresh(len(piece.encode()))).novelty)
    return found


def same_error() -> Iterator[str]:
    for n in itertools.count():
        yield (
            f"2026-03-01 10:{n:02}:07 Attempt {n}: connecting to 10.0.0.1:54{n:02}\n"
            f"Error: connect ECONNREFUSED (took {n}.3s, request 7d1f0c2e-0000-4000-8000-{n:012d})\n"
        )


def same_traceback() -> Iterator[str]:
    yield from itertools.repeat(
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nKeyError: "x"\n'
    )


def three_lines() -> Iterator[str]:
    for n in itertools.count():
        yield f"[{n % 60:02}:00:01] Reading plan.md\n[{n % 60:02}:00:02] Thinking\n[{n % 60:02}:00:03] Nothing to do\n"


def spinner() -> Iterator[str]:
    for n in itertools.count():
        yield "".join(f"\r\x1b[2K{frame} Waiting for the model ({n}s)" for frame in "⠋⠙⠹⠸⠼⠴⠦⠧")


def bouncing_bar() -> Iterator[str]:
    for n in itertools.count():
        yield "".join(f"\r[{' ' * (at % 20)}<=>{' ' * (20 - at % 20)}]" for at in range(n, n + 5))


def backspaces() -> Iterator[str]:
    yield from itertools.cycle(["\b|\b/", "\b-\b\\"])


def same_screen() -> Iterator[str]:
    for n in itertools.count():
        yield f"\x1b[H\x1b[2Jworker  state\x1b[2;1Ha  pending\x1b[3;1Hb  pending\x1b[4;1Hup {n}m"


SICK = {
    same_error: Novelty.REPEATED_ERROR,
    same_traceback: Novelty.REPEATED_ERROR,
    three_lines: Novelty.REPETITION,
    spinner: Novelty.REPETITION,
    bouncing_bar: Novelty.REPETITION,
    backspaces: Novelty.REPETITION,
    same_screen: Novelty.REPETITION,
}


@pytest.mark.parametrize("program", SICK)
def test_what_only_repeats_itself_is_seen(program: Callable[[], Iterator[str]]) -> None:
    found = looked(program())
    assert set(found[50:]) == {SICK[program]}
    assert found[0] is Novelty.NEW


def other_errors() -> Iterator[str]:
    for n in itertools.count():
        yield f"Error: test_case_{n} failed\n"


def progress_bar() -> Iterator[str]:
    for n in itertools.count():
        yield f"\rDownloading {n}%  eta 00:{60 - n:02}"


def lines_read() -> Iterator[str]:
    for n in itertools.count(1):
        yield f"\rProcessed line {n}"


def runner_of_tests() -> Iterator[str]:
    for n in itertools.count():
        yield f"tests/test_{n}.py::test_it PASSED\n"


def dots() -> Iterator[str]:
    yield from itertools.repeat(".")


def compiler() -> Iterator[str]:
    for n in itertools.count():
        yield f"cc -O2 -c part{n}.c -o part{n}.o\n"


def health_checks() -> Iterator[str]:
    """The log of a server that nobody but its monitor asks."""
    for n in itertools.count():
        yield f"10:00:{n % 60:02} GET /health 200\n10:00:{n % 60:02} GET /metrics 200\n"


def rebuilt_a_few_times() -> Iterator[str]:
    """A compiler in watch mode: the same four lines each time somebody saves a file."""
    for n in itertools.count():
        yield (
            f"{n}:00:00 File change detected.\nCompiling\nFound 0 errors.\nWatching for changes.\n"
            if n % 10 == 0
            else "\n"
        )


def changing_screen() -> Iterator[str]:
    for n in itertools.count():
        yield f"\x1b[H\x1b[2Jworker  state\x1b[2;1Ha  {n} of 90 done\x1b[3;1Hb  pending\x1b[4;1Hup {n}m"


def spinner_with_tokens() -> Iterator[str]:
    for n in itertools.count():
        yield "".join(f"\r\x1b[2K{frame} Thinking ({n}s, {n * 37} tokens)" for frame in "⠋⠙⠹")


def long_row() -> Iterator[str]:
    yield "." * 5000
    yield from itertools.repeat(".")


HEALTHY = [
    other_errors,
    progress_bar,
    lines_read,
    runner_of_tests,
    dots,
    compiler,
    health_checks,
    rebuilt_a_few_times,
    changing_screen,
    spinner_with_tokens,
    long_row,
]


@pytest.mark.parametrize("program", HEALTHY)
def test_what_goes_on_is_no_repetition(program: Callable[[], Iterator[str]]) -> None:
    assert set(looked(program())) <= {Novelty.NEW, Novelty.ROUTINE}


def test_it_takes_many_rounds() -> None:
    found = looked(same_traceback())
    assert found.index(Novelty.REPEATED_ERROR) == ROUNDS
    assert set(found[1:ROUNDS]) == {Novelty.ROUTINE}


def test_anything_new_begins_the_count_anew() -> None:
    repetition = Repetition()
    for _ in range(ROUNDS):
        repetition.look("Error: x\n")
    assert repetition.look("Error: x\n").novelty is Novelty.REPEATED_ERROR
    assert repetition.look("Error: x\nfound it\n").novelty is Novelty.NEW
    assert repetition.look("Error: x\n").novelty is Novelty.ROUTINE


def test_the_line_that_shows_it_is_the_error() -> None:
    repetition = Repetition()
    looks = [repetition.look("trying\nError: no \x1b[31mroute\x1b[0m\nagain\n") for _ in range(ROUNDS + 1)]
    assert looks[-1].line == "Error: no route"


def test_it_forgets_and_reads_within_bounds() -> None:
    """A circle longer than its memory is new for ever, and costs no more than that memory."""
    repetition = Repetition()
    circle = [f"Error in part {name}\n" for name in map(str, range(10_000, 10_000 + KNOWN_MAX + 1))]
    assert {repetition.look(line).novelty for line in circle * 3} == {Novelty.NEW}
    assert len(repetition._known) == KNOWN_MAX
    assert repetition.look("Error: x\n" * 8_000).novelty is Novelty.NEW
    assert len(repetition._rounds) <= KNOWN_MAX
