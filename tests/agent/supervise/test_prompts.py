"""A program that asks its user something waits for a human, and no nudge is typed into its prompt."""

from __future__ import annotations

import subprocess

import pytest

from lifesigns.agent.supervise.prompts import Screen, may_ask, question
from lifesigns.agent.supervise.reads_input import ReadsInput
from tests.agent.supervise.running import BOUND, PYTHON, RUN, on_screen, started

PROMPTS = {
    "a line": (["Do you want to proceed? "], True),
    "yes or no": (["3 files will be lost. Overwrite [y/N] "], True),
    "a password": (["Password for ada@ws-1: "], True),
    "choices": (["Do you want to proceed?", "❯ 1. Yes", "  2. No, tell it what to do"], False),
    "choices in a frame": (
        ["│ Run rm -rf build? │", "│ ❯ 1. Yes │", "│   2. No │", "╰─────╯", " Esc to cancel"],
        False,
    ),
}
NO_PROMPTS = {
    "a log": (["Why is the sky blue?", "Because of Rayleigh."], False),
    "a question in a log": (["What next?"], False),
    "progress": (["Downloading 45 %"], True),
    "a label": (["Building: "], True),
    "a list": (["What was done:", "1. read a.py", "2. wrote b.py"], False),
}


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("reading", [ReadsInput.YES, ReadsInput.MAYBE, ReadsInput.UNKNOWN])
def test_a_prompt_is_one_however_the_program_waits_for_a_key(name: str, reading: ReadsInput) -> None:
    lines, is_open = PROMPTS[name]
    assert question(Screen(lines, is_open, tty=True, raw=True), reading)


@pytest.mark.parametrize("name", PROMPTS)
def test_who_does_not_read_asks_nothing_but_nothing_is_typed_either(name: str) -> None:
    lines, is_open = PROMPTS[name]
    screen = Screen(lines, is_open, tty=True)
    assert question(screen, ReadsInput.NO) is None
    assert may_ask(screen, ReadsInput.NO)


@pytest.mark.parametrize("name", NO_PROMPTS)
@pytest.mark.parametrize("reading", [ReadsInput.MAYBE, ReadsInput.NO, ReadsInput.UNKNOWN])
def test_what_only_looks_like_a_prompt_is_none(name: str, reading: ReadsInput) -> None:
    lines, is_open = NO_PROMPTS[name]
    screen = Screen(lines, is_open, tty=True, raw=True)
    assert question(screen, reading) is None
    assert not may_ask(screen, reading)


def test_choices_below_a_question_in_a_log_are_no_prompt_for_who_reads_lines() -> None:
    """It may wait for the network; a program that is answered by a key has made its terminal raw."""
    screen = Screen(["Which files matter?", "1. a.py", "2. b.py"], open=False, tty=True)
    assert question(screen, ReadsInput.MAYBE) is None


def test_at_a_terminal_every_open_line_that_is_read_after_is_a_prompt() -> None:
    assert question(Screen(["Name your file", "> "], open=True, tty=True), ReadsInput.YES) == ">"
    assert question(Screen(["Which one?", "> "], open=True, tty=True), ReadsInput.YES) == "Which one? >"
    assert question(Screen(["ready"], open=False, tty=True), ReadsInput.YES) is None
    assert question(Screen(["> "], open=True), ReadsInput.YES) is None, "a pipe has programs at its other end"


# --- real programs -------------------------------------------------------------------------------------

STUCK = ("--id", "a", "--verbose", "--nudge", "stdin", "--idle-after", "2", "--max-time", "7")
ASKS = "print('got', input('Do you want to proceed? '))"
CHOOSES = r"""
import os, select, sys, tty
tty.setcbreak(0)
os.write(1, "Do you want to proceed?\r\n❯ 1. Yes\r\n  2. No\r\n".encode())
select.select([0], [], [])
print("got", os.read(0, 99))
"""
HIDES = "import getpass; print('got', getpass.getpass('Password: '))"


@pytest.mark.parametrize(
    ("program", "asked"),
    [(ASKS, r"Do you want to proceed\?"), (CHOOSES, r"Do you want to proceed\?"), (HIDES, "Password:")],
    ids=["a line", "choices", "a password"],
)
def test_a_program_that_asks_at_its_terminal_waits_for_a_human(program: str, asked: str) -> None:
    with on_screen(*RUN, *STUCK, "--", *PYTHON, program) as screen:
        screen.expect(f"a waits for a human: {asked}")
        assert screen.ends() == 124
        for never in ("is stuck", "nudged", "got"):
            assert never not in screen.shown, screen.shown


def test_a_program_that_asks_on_its_pipes_waits_for_a_human() -> None:
    with started(*STUCK[2:], "--", *PYTHON, ASKS, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.wait(BOUND) == 124
        out, err = process.stdout.read(), process.stderr.read()
    assert b"waits for a human: Do you want to proceed?" in err
    assert b"got" not in out
    assert b"is stuck" not in err


def test_who_was_answered_works_again() -> None:
    program = "input('Proceed? '); import time; time.sleep(300)"
    with on_screen(*RUN, *STUCK[:-1], "30", "--", *PYTHON, program) as screen:
        screen.expect(r"a waits for a human: Proceed\?")
        screen.type("yes\r")
        screen.expect("a is stuck: No output")


@pytest.mark.parametrize(
    "program",
    [
        "import sys, time; sys.stdout.write('Downloading 45 %'); sys.stdout.flush(); time.sleep(300)",
        "import time; print('Shall I? I shall.', flush=True); time.sleep(300)",
        "import select; print('What next?', flush=True); select.select([], [], [], 300)",
    ],
    ids=["progress", "a log", "a wait for the network"],
)
def test_a_program_that_only_looks_as_if_it_asked_is_stuck_and_nudged(program: str) -> None:
    with on_screen(*RUN, *STUCK[:-1], "30", "--", *PYTHON, program) as screen:
        screen.expect("a is stuck: No output")
        screen.expect("a was nudged")
        assert "waits for a human" not in screen.shown
