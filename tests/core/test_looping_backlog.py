"""A cycle of which some calls come out of a backlog: they count for nothing and do not break it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lifesigns.core.detectors.call_history import CallHistory
from lifesigns.core.detectors.looping import observe, thought
from lifesigns.core.effects import Finding, Severity
from lifesigns.core.health import Health
from lifesigns.core.policy import LoopingPolicy
from lifesigns.core.signals import ModelFinished, ModelStarted, ProcessExited, ToolFinished
from tests.core.harness import Watch

POLICY = LoopingPolicy()
ROUND = ("grep", "read", "bash")


class Tape:
    """Calls that are heard one after the other; before each of them the model thinks for a share of the time."""

    def __init__(self, every: float = 30.0, thinks: float = 1.0) -> None:
        self.history = CallHistory()
        self.now = 1000.0
        self._every, self._thinks = every, thinks

    def hear(self, tool: str, *, args: str = "x", ok: bool = True) -> Finding | None:
        """One in its time."""
        self.now += self._every
        thought(self.history, self.now - self._thinks * self._every, True, self.now)
        return self._observe(tool, args, ok=ok)

    def hear_late(self, tools: Sequence[str], *, args: str = "x") -> Finding | None:
        """Those of some time, all at once, while the hub does not trust its ears."""
        self.now += self._every * len(tools)
        found = None
        for tool in tools:
            found = self._observe(tool, args, truce_until=self.now + 5.0)
        return found

    def _observe(self, tool: str, args: str, truce_until: float = 0.0, *, ok: bool = True) -> Finding | None:
        call = ToolFinished(
            agent_id="a", call_id="c", tool=tool, args_digest=args, result_digest="same", ok=ok
        )
        return observe(self.history, call, POLICY, self.now, truce_until=truce_until)


@pytest.mark.parametrize("late", [1, 2, 3, 4, 22])
def test_a_cycle_goes_on_through_a_backlog(late: int) -> None:
    """Seven calls in their time before it, and two after it: nine, which is three rounds."""
    tape = Tape()
    turns = [ROUND[n % 3] for n in range(9 + late)]
    for tool in turns[:7]:
        assert tape.hear(tool) is None
    assert tape.hear_late(turns[7 : 7 + late]) is None
    assert tape.hear(turns[7 + late]) is None
    found = tape.hear(turns[8 + late])
    assert found is not None
    assert (found.severity, found.numbers["repeats"], found.numbers["period"]) == (Severity.DEGRADED, 3, 3)


def test_calls_out_of_a_backlog_make_no_cycle() -> None:
    tape = Tape()
    for tool in ("grep", "read", "grep", "read"):
        tape.hear(tool)
    assert tape.hear_late(["grep", "read"] * 50) is None
    assert tape.hear("grep") is None


def test_who_polls_in_turns_still_waits_after_a_backlog() -> None:
    """A look, a sleep, a look: mostly time between them, and an hour of it comes at once."""
    tape = Tape(every=60.0, thinks=0.05)
    for tool in ("squeue", "sleep") * 6:
        tape.hear(tool)
    for _ in range(3):
        tape.hear_late(["squeue", "sleep"] * 15)
        for tool in ("squeue", "sleep") * 2:
            found = tape.hear(tool)
            assert found is not None
            assert (found.severity, found.conclusive) == (Severity.NOTICE, False)


def test_what_is_out_of_turn_in_a_backlog_takes_no_turn() -> None:
    """Of other calls nobody knows when they were made: as if they had not been heard, unless they are new."""
    tape = Tape()
    for tool in ("edit", *ROUND, *ROUND, "grep"):
        tape.hear(tool)
    before = [*tape.history.rkeys]
    tape.hear_late(["edit", "edit"])
    assert tape.history.rkeys == before
    tape.hear_late(["edit"], args="new")
    assert tape.hear("read") is None
    assert tape.history.matched[len(ROUND) - 1] == 0


def test_the_same_call_over_and_over_takes_no_turns() -> None:
    tape = Tape()
    for _ in range(3):
        tape.hear("grep")
    tape.hear_late(["grep"] * 20)
    assert tape.history.rkeys == tape.history.rkeys[:1] * 3
    found = tape.hear("grep")
    assert found is not None
    assert found.numbers["repeats"] == 4


def test_a_call_without_arguments_told_takes_no_turn() -> None:
    tape = Tape()
    for args in ("x", "", "x"):
        tape.hear("grep", args=args)
    tape.hear_late(["grep"], args="")
    assert len(tape.history.rkeys) == 3


def test_a_turn_is_no_run_of_one_call() -> None:
    tape = Tape()
    for tool in ("grep", "read", "grep", "read", "grep"):
        tape.hear(tool)
    tape.hear_late(["read"])
    tape.hear("grep")
    assert tape.history.key_run == 1
    assert tape.history.times == sorted(tape.history.times)
    assert len(tape.history.marks) == len(tape.history.model_at) == len(tape.history.rkeys) == 7


def test_a_turn_changes_nothing_but_the_turn() -> None:
    """Rounds of two, of three and of six calls were under way; the call is out of turn in the first. A clock that goes back
    turns no time back."""
    tape = Tape()
    for tool in ("grep", "grep", "read", "grep", "grep", "read", "grep"):
        tape.hear(tool)
    history, now = tape.history, tape.now
    before = [*history.matched]
    assert (before[1], before[2], before[5]) == (1, 4, 1)
    tape.now -= 10.0
    tape.hear_late([])
    tape._observe("grep", "x", truce_until=tape.now + 5.0)
    assert history.matched == [n if period in (3, 6) else 0 for period, n in enumerate(before, start=1)]
    assert (history.key_run, history.marks[-1], history.times[-1]) == (1, 0, now)
    assert len(history.rkeys) == 8


def test_a_cycle_has_begun_when_one_call_came_again() -> None:
    tape = Tape()
    for tool in (*ROUND, "grep"):
        tape.hear(tool)
    tape.hear_late(["read"])
    assert len(tape.history.rkeys) == 5


@pytest.mark.parametrize("ok", [True, False], ids=["often", "failing"])
@pytest.mark.parametrize("late", [7, 30])
def test_what_turns_of_a_backlog_have_pushed_off_the_tape_is_not_told_of_any_more(
    late: int, ok: bool
) -> None:
    """A culprit that was not on its own tape any more was an error of ours, and its agent was not judged from then on."""
    tape = Tape()
    for _ in range(POLICY.recent_notice):
        tape.hear("search", ok=ok)
    assert tape.hear("search", ok=ok) is not None
    for tool in (*ROUND, "grep", "read"):
        tape.hear(tool)
    found = tape.hear_late([ROUND[(2 + n) % 3] for n in range(late)])
    assert tape.history.failing == ""
    assert (tape.history.often != "", found is not None) == (late < POLICY.recent_window,) * 2


def test_a_full_tape_of_an_older_version_has_the_time_of_a_call_that_takes_its_turn() -> None:
    """An older version stored neither marks nor times; what such a tape lacks is at its beginning, not at its end."""
    tape = Tape()
    for n in range(POLICY.recent_window):
        tape.hear(ROUND[n % 3])
    tape.history.marks, tape.history.model_at, tape.history.took = [], [], []
    tape.hear_late([ROUND[POLICY.recent_window % 3]])
    assert tape.history.model_at == [0.0] * (POLICY.recent_window - 1) + [tape.history.model_s]


# --- a life that worked before it was heard ----------------------------------------------------------


def second_life(*, calls: int, every: float) -> Watch:
    """An agent that reports its calls ends, and its next life makes these."""
    watch = Watch()
    watch.beat(incarnation="one")
    watch.hear(poll("one"))
    watch.hear(ProcessExited(agent_id="a", incarnation="one", status=1))
    watch.beat(at=watch.now + 600, incarnation="two", seq=1)
    for _ in range(calls):
        watch.hear(poll("two"), watch.now + every)
    return watch


def poll(life: str) -> ToolFinished:
    return ToolFinished(
        agent_id="a",
        incarnation=life,
        call_id="c",
        tool="gh_run",
        args_digest="x",
        result_digest="in progress",
    )


def test_polls_of_a_life_that_was_cut_off_from_its_beginning_come_at_once_and_make_no_loop() -> None:
    watch = second_life(calls=20, every=0.0)
    assert watch.health() is Health.HEALTHY
    watch.hear(poll("two"), watch.now + 60)
    assert watch.health() is Health.HEALTHY


def test_a_second_life_that_goes_on_looping_is_found() -> None:
    """The look-alike: its first call is new, the others of the first ten seconds count for nothing, the seven after them do."""
    assert second_life(calls=15, every=1.0).health() is Health.DEGRADED
    assert second_life(calls=16, every=1.0).health() is Health.STUCK


def test_a_model_call_that_ended_while_nobody_listened_shows_no_thinking() -> None:
    """A poller is cut off for ten minutes in the middle of one: it waited most of that time, as before and after."""
    watch = Watch()
    for number in range(6):
        look(watch, number)
    watch.hear(ModelStarted(agent_id="a", call_id="cut"))
    watch.run_until(watch.now + 600)
    watch.beat()
    watch.hear(ModelFinished(agent_id="a", call_id="cut"))
    for number in range(6, 12):
        look(watch, number)
    assert watch.health() is Health.HEALTHY


def look(watch: Watch, number: int) -> None:
    """One round of a poller: it waits for 55 s, thinks for four and looks."""
    watch.live(watch.now + 55)
    watch.hear(ModelStarted(agent_id="a", call_id=f"m{number}"))
    watch.hear(ModelFinished(agent_id="a", call_id=f"m{number}"), watch.now + 4)
    watch.hear(
        ToolFinished(
            agent_id="a", call_id=f"c{number}", tool="gh_run", args_digest="x", result_digest="in progress"
        )
    )
