"""Each rule about loops: the sick shapes it finds, and the healthy look-alikes it spares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from lifesigns.core.digests import digest
from lifesigns.core.effects import Kind, NeedsHuman, SendNudge, Severity, Terminate
from lifesigns.core.health import Doing, Health
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.core.signals import (
    ActivitySeen,
    BeatReceived,
    DoingChanged,
    MessageSent,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    Signal,
    TaskAssigned,
    ToolFinished,
    ToolStarted,
)
from tests.core.harness import Watch

Step = tuple[float, Signal]
"""How long after the one before it is heard, and what."""
Life = Callable[[], Iterator[Step]]


def tool(
    name: str = "bash",
    args: object = "x",
    result: object = "same",
    *,
    error: str | None = None,
    kind: str | None = None,
    retry: bool = False,
) -> ToolFinished:
    return ToolFinished(
        agent_id="a",
        call_id="t",
        tool=name,
        args_digest=digest(args, exact=True),
        result_digest="" if error or result is None else digest(result),
        ok=error is None,
        error=error,
        error_kind=kind,
        retry=retry,
    )


def thinking(seconds: float, then: ToolFinished) -> Iterator[Step]:
    """A model call, and right after it the tool it chose."""
    yield 0.0, ModelStarted(agent_id="a")
    yield seconds, ModelFinished(agent_id="a", tokens_out=100)
    yield 0.0, then


def turns(count: int, model: float, wait: float, *calls: ToolFinished) -> Life:
    """So many times: think for so long, call, and wait for so long inside the call."""

    def life() -> Iterator[Step]:
        for i in range(count):
            one = calls[i % len(calls)]
            yield 0.0, ModelStarted(agent_id="a")
            yield model, ModelFinished(agent_id="a", tokens_out=100)
            yield 0.0, ToolStarted(agent_id="a", call_id="t", tool=one.tool, args_digest=one.args_digest)
            yield wait, one

    return life


def calls(*given: ToolFinished, every: float = 5.0) -> Life:
    """Tool calls alone: nobody tells of model calls."""
    return lambda: iter([(every, one) for one in given])


def talk(
    *between: Signal, count: int = 9, rounds: int = 1, tells_begin: bool = True, pause: float = 1.0
) -> Life:
    """Rounds of so many model calls, with something in between."""

    def life() -> Iterator[Step]:
        for _ in range(rounds):
            for i in range(count):
                if tells_begin:
                    yield pause, ModelStarted(agent_id="a", call_id=f"m{i}")
                yield 5.0, ModelFinished(agent_id="a", call_id=f"m{i}", tokens_out=100)
            yield from ((1.0, one) for one in between)

    return life


def after_a_deed(life: Life) -> Life:
    """It is known to use tools."""
    return lambda: iter([(1.0, GREP), *life()])


def side_by_side() -> Iterator[Step]:
    """Thirty documents at once, each in a model call of its own."""
    yield from ((0.1, ModelStarted(agent_id="a", call_id=f"m{i}")) for i in range(30))
    yield from ((0.5, ModelFinished(agent_id="a", call_id=f"m{i}")) for i in range(30))


def retries(waits: list[float], error: str = "Connection to db:5432 refused") -> Life:
    """The same call that fails, after one wait after the other."""
    return lambda: iter([(wait, tool("query", "select 1", error=error, kind="db")) for wait in waits])


def interleaved(again: ToolFinished, between: Callable[[int], ToolFinished], count: int = 20) -> Life:
    return calls(*(one for i in range(count) for one in (again, between(i))))


@dataclass(frozen=True)
class Seen:
    """What became of a life: the worst that was found, and what was done."""

    worst: Severity | None
    conclusive: bool
    nudged: bool
    ended: bool
    told: bool
    """Whether people were told."""


SEVERITIES: Final = (Severity.NOTICE, Severity.DEGRADED, Severity.STUCK, Severity.FAILING)


def live(life: Life) -> Seen:
    """An agent that beats, and lives this life; what was found about its calls."""
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    worst: Severity | None = None
    conclusive = False
    for wait, signal in life():
        watch.live(watch.now + wait)
        watch.hear(signal)
        found = watch.agent().finding(Kind.LOOPING)
        if found is not None:
            worst = max(worst or found.severity, found.severity, key=SEVERITIES.index)
            conclusive |= found.conclusive
    told = [fact for fact in watch.facts(NeedsHuman) if fact.reason == "looping"]
    return Seen(worst, conclusive, bool(watch.orders(SendNudge)), bool(watch.orders(Terminate)), bool(told))


GREP: Final = tool("grep", "needle", "no match")
READ: Final = tool("read", "a.py", "text of a.py")
FAILS: Final = tool("bash", "make", error="no rule to make target")

SICK: Final[dict[str, tuple[Severity, bool, Life]]] = {
    # name: how bad it is found to be at most, whether beyond doubt, the life
    "same: a model that asks the same": (Severity.STUCK, True, turns(12, 8.0, 0.2, GREP)),
    "same: one that thinks for a minute each time": (Severity.STUCK, True, turns(12, 60.0, 5.0, GREP)),
    "same: a loop without a model": (Severity.STUCK, True, calls(*[GREP] * 12, every=0.2)),
    "cycle: two calls in turn": (Severity.STUCK, True, turns(10, 8.0, 0.2, GREP, READ)),
    "cycle: of twelve": (
        Severity.STUCK,
        True,
        turns(60, 9.0, 0.1, *[tool("read", i, i) for i in range(12)]),
    ),
    "cycle: of slow thoughts": (Severity.STUCK, True, turns(15, 40.0, 1.0, GREP, READ, tool("ls"))),
    "wait: calls 40 s apart, and nobody tells what lies between": (
        Severity.DEGRADED,
        False,
        calls(*[GREP] * 20, every=40.0),
    ),
    "wait: a job that is waited for since yesterday": (
        Severity.DEGRADED,
        False,
        turns(90, 5.0, 290.0, tool("bash", "sleep 290; squeue", "77 PENDING")),
    ),
    "wait: half of the time is model time": (Severity.STUCK, True, turns(12, 30.0, 30.0, GREP)),
    "unknown: five in a row": (Severity.DEGRADED, False, calls(*[tool(result=None)] * 5)),
    "unknown: in a cycle": (
        Severity.DEGRADED,
        False,
        calls(*[tool(args=1, result=None), tool(args=2, result=None)] * 5),
    ),
    "unknown: failures that say nothing": (
        Severity.DEGRADED,
        False,
        calls(*[ToolFinished(agent_id="a", call_id="t", tool="x", args_digest="1", ok=False)] * 5),
    ),
    "no arguments: the same state over and over": (
        Severity.STUCK,
        False,
        calls(*[tool("get_state", None, "same")] * 20),
    ),
    "recent: a dozen of thirty, and nothing new": (
        Severity.STUCK,
        False,
        calls(*(one for i in range(15) for one in (GREP, tool("read", i * i % 5, i * i % 5)))),
    ),
    "recent: between attempts that fail": (
        Severity.STUCK,
        False,
        interleaved(READ, lambda i: tool("edit", i, error=f"no such text: {i}"), 15),
    ),
    "recent: six of thirty": (
        Severity.DEGRADED,
        False,
        interleaved(READ, lambda i: tool("edit", i, error=f"no such text: {i}"), 6),
    ),
    "failing: three of ten": (
        Severity.DEGRADED,
        False,
        calls(READ, GREP, FAILS, READ, FAILS, GREP, READ, FAILS),
    ),
    "failing: with another failure between": (
        Severity.DEGRADED,
        False,
        calls(*(one for i in range(3) for one in (FAILS, tool("bash", f"try {i}", error=f"no {i}")))),
    ),
    "failing: with the same looks between": (
        Severity.DEGRADED,
        False,
        calls(READ, FAILS, READ, READ, FAILS, READ, FAILS),
    ),
    "polling: check_* as fast as it can": (
        Severity.STUCK,
        True,
        calls(*[tool("check_answer", 1, "no")] * 20, every=2.0),
    ),
    "polling: check_* with nothing but model calls between": (
        Severity.STUCK,
        True,
        turns(20, 9.0, 0.1, tool("check_answer", 1, "no")),
    ),
    "polling: *_status in a burst": (
        Severity.STUCK,
        True,
        turns(20, 4.0, 0.5, tool("job_status", 7, "pending")),
    ),
    "talk: ten model calls": (Severity.DEGRADED, False, after_a_deed(talk(count=10))),
    "talk: with pauses as short as its calls": (
        Severity.DEGRADED,
        False,
        after_a_deed(talk(count=10, pause=5.0)),
    ),
    "talk: in the next task": (
        Severity.DEGRADED,
        False,
        after_a_deed(lambda: iter([(1.0, TaskAssigned(agent_id="a", task_id="t2")), *talk(count=10)()])),
    ),
    "talk: after work": (
        Severity.DEGRADED,
        False,
        lambda: iter([*thinking(5, GREP), *talk(count=10)()]),
    ),
    "talk: by those who tell the end only": (
        Severity.DEGRADED,
        False,
        after_a_deed(talk(count=10, tells_begin=False)),
    ),
    "backoff: none at all": (Severity.STUCK, True, retries([5.0] * 8)),
    "backoff: that does not grow": (Severity.STUCK, True, retries([1.0, 9.0] * 4)),
    "backoff: shorter and shorter": (Severity.STUCK, True, retries([40, 30, 20, 10, 5, 3, 2, 1, 1, 1])),
}


@pytest.mark.parametrize("name", SICK)
def test_the_sick_are_found(name: str) -> None:
    severity, conclusive, life = SICK[name]
    seen = live(life)
    assert (seen.worst, seen.conclusive) == (severity, conclusive)


def edit(i: int) -> ToolFinished:
    return tool("edit", f"change {i}", "ok")


HEALTHY: Final[dict[str, Life]] = {
    "waits for a job of three hours": turns(36, 9.0, 290.0, tool("bash", "sleep 290; squeue", "77 PENDING")),
    "looks into an empty mailbox every five minutes": lambda: (
        step
        for _ in range(48)
        for step in (
            (295.0, ToolStarted(agent_id="a", call_id="i", tool="x")),
            *thinking(5, tool("fetch_mail", {}, [])),
        )
    ),
    "polls its CI each minute, in the same words": turns(
        45, 6.0, 54.0, tool("bash", "sleep 50; gh run view 7", "in progress")
    ),
    "polls with two commands in turn": turns(
        60, 4.0, 30.0, tool("bash", "squeue", "PENDING"), tool("bash", "tail log", "")
    ),
    "polls with a tool made for it": calls(*[tool("check_ci", 7, "pending")] * 100, every=30.0),
    "polls every ten seconds with a tool made for it": turns(100, 1.0, 9.0, tool("check_ci", 7, "pending")),
    "was away for half an hour, and all its polls arrive at once": lambda: iter(
        [*[(30.0, tool("check_ci", 7, "pending"))] * 9, *[(0.01, tool("check_ci", 7, "pending"))] * 60]
    ),
    "sleeps, by a tool": turns(100, 2.0, 20.0, tool("sleep", 20, "")),
    "ends each step of its plan in the same words": interleaved(
        tool("step_done", {}, "Step completed."), lambda i: tool("bash", f"step {i}", f"output {i}")
    ),
    "ends each step without arguments": interleaved(tool("step_done", None, "ok"), edit),
    "goes back after each page": interleaved(
        tool("go_back", {}, "Navigated back."), lambda i: tool("click", f"link {i}", f"page {i}")
    ),
    "goes back, and the next link has the same name": interleaved(
        tool("go_back", {}, "Navigated back."), lambda i: tool("click", "next", f"page {i}")
    ),
    "removes what it built, and that says nothing": interleaved(
        tool("bash", "rm -rf build", ""), lambda i: tool("bash", f"make part{i}", f"built {i}")
    ),
    "runs the same green test after each change": interleaved(
        tool("bash", "pytest -q", "97 passed in 3.10s"), edit
    ),
    "runs the same red test after each change": interleaved(
        tool("bash", "pytest -q", error="1 failed"), edit
    ),
    "test, then two changes": calls(
        *(one for i in range(10) for one in (tool("test"), edit(2 * i), edit(2 * i + 1)))
    ),
    "converts files, and does not tell which": calls(*[tool("convert", None, None)] * 100),
    "converts files one by one": calls(*(tool("convert", i, "ok") for i in range(100))),
    "does not tell its results": calls(*(tool("convert", i, None) for i in range(100))),
    "edits and tests, and tells no results": interleaved(
        tool("test", "-q", None), lambda i: tool("edit", i, None)
    ),
    "cannot reach the world for a while": calls(*[tool(error="down", kind="503")] * 20, every=20.0),
    "says that it tries again": calls(*[tool(retry=True)] * 20),
    "talks with tools between": talk(ToolStarted(agent_id="a", call_id="t", tool="bash"), count=9, rounds=4),
    "talks with a human": talk(
        DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN),
        DoingChanged(agent_id="a", doing=Doing.WORKING),
        count=4,
        rounds=8,
    ),
    "talks and comes forward": talk(ProgressMade(agent_id="a", note="page"), count=9, rounds=4),
    "talks to other agents": talk(MessageSent(agent_id="a", message_id="1", to="b"), count=9, rounds=4),
    "writes chapter after chapter": talk(ActivitySeen(agent_id="a", kind="output"), count=9, rounds=4),
    "reads thirty documents side by side": side_by_side,
    "reads thirty documents one by one, and has no tools": talk(count=30),
    "has no tools, and tells the end of its model calls only": talk(count=30, tells_begin=False),
    "answers whoever writes": after_a_deed(talk(count=30, pause=5.1)),
    "tries a model that is down": lambda: iter(
        (5.0, ModelFinished(agent_id="a", call_id=f"m{i}", ok=False, error_kind="529")) for i in range(15)
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_look_alikes_are_spared(name: str) -> None:
    """A wait may be noted; nobody is degraded, nudged or ended for what it says, and no human is woken."""
    seen = live(HEALTHY[name])
    assert seen.worst in (None, Severity.NOTICE)
    assert (seen.conclusive, seen.nudged, seen.ended, seen.told) == (False, False, False, False)


BACKOFFS: Final = {
    "doubles": [float(2**i) for i in range(12)],
    "doubles, with jitter": [2**i * (1.1 if i % 2 else 0.9) for i in range(12)],
    "doubles up to five minutes": [min(300.0, 2.0**i) for i in range(40)],
    "starts at half a minute": [30.0 * 2**i for i in range(8)],
    "each minute, for hours": [60.0] * 200,
}


@pytest.mark.parametrize("name", BACKOFFS)
def test_a_retry_with_backoff_is_never_ended(name: str) -> None:
    """Its errors, its loop and the silence in between have one cause. People may be asked; they decide."""
    seen = live(retries(BACKOFFS[name]))
    assert not seen.ended
    assert not seen.conclusive
    assert seen.worst is Severity.DEGRADED


def test_a_poller_with_a_stale_checkpoint_is_not_ended_when_nobody_answers() -> None:
    """The loop that may be a wait, and the checkpoint that stays away meanwhile, are one thing."""
    for every in (40.0, 290.0):
        watch = Watch()
        watch.beat(doing=Doing.WORKING)
        watch.hear(ProgressMade(agent_id="a"))
        for _ in range(int(4 * HOUR / every)):
            watch.live(watch.now + every)
            watch.hear(GREP)
        assert watch.agent().finding(Kind.LOOPING) is not None
        assert watch.agent().finding(Kind.NO_CHECKPOINT) is not None
        assert not watch.orders(Terminate)


def test_people_are_told_once_of_a_wait_that_does_not_end() -> None:
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    for wait, signal in turns(100, 5.0, 55.0, tool("bash", "sleep 55; squeue", "77 PENDING"))():
        watch.live(watch.now + wait)
        watch.hear(signal)
    assert [fact.reason for fact in watch.facts(NeedsHuman)] == ["looping"]
    assert watch.health() is Health.DEGRADED
    assert not watch.orders(SendNudge)


def test_a_loop_that_begins_after_a_long_wait_is_found() -> None:
    """What is long past is no excuse: only the calls on the tape are looked at."""
    squeue = tool("bash", "squeue", "77 PENDING")
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    for life in (turns(40, 5.0, 290.0, squeue), turns(30, 8.0, 0.1, squeue)):
        for wait, signal in life():
            watch.live(watch.now + wait)
            watch.hear(signal)
    assert (found := watch.agent().finding(Kind.LOOPING)) is not None
    assert found.conclusive


@pytest.mark.parametrize("share", [0.8, 1.0])
def test_work_after_a_wait_makes_no_loop_of_it(share: float) -> None:
    """The calls of the wait are among the last thirty for a while; between them it waited, whatever it thinks since."""

    def life() -> Iterator[Step]:
        for _ in range(30):
            yield from thinking(4.0, tool("gh_run", "77", "in progress"))
            yield 56.0, ActivitySeen(agent_id="a")
        for n in range(25):
            yield from thinking(30.0 * share, tool("edit", n, n))
            yield 30.0 * (1.0 - share), ActivitySeen(agent_id="a")

    assert live(life).worst is Severity.NOTICE


def test_one_long_pause_makes_no_wait_of_a_loop() -> None:
    """A rate limit of twenty minutes, or a time in which we heard nothing: the other turns are model calls and nothing else."""

    def life() -> Iterator[Step]:
        for i in range(8):
            if i == 3:
                yield 20 * MINUTE, ActivitySeen(agent_id="a")
            yield from thinking(40.0, tool())

    seen = live(life)
    assert seen.worst is Severity.STUCK


def test_who_waits_in_each_turn_waits_though_one_turn_was_all_thought() -> None:
    def life() -> Iterator[Step]:
        for i in range(14):
            yield 0.0, ModelStarted(agent_id="a")
            yield 200.0 if i == 5 else 10.0, ModelFinished(agent_id="a", tokens_out=100)
            yield 100.0, tool()

    seen = live(life)
    assert seen.worst is not Severity.STUCK


def test_a_tool_call_ends_the_talk_at_once() -> None:
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    for wait, signal in after_a_deed(talk(count=10))():
        watch.hear(signal, watch.now + wait)
    assert watch.health() is Health.DEGRADED
    watch.hear(ToolStarted(agent_id="a", call_id="t", tool="bash"))
    assert watch.health() is Health.HEALTHY


def test_endless_timeouts_do_not_stay_degraded_for_ever() -> None:
    """People are asked about a world that is broken for half an hour; nobody is ended for it."""
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    watch.hear(ProgressMade(agent_id="a"))
    down = tool("fetch", "x", error="timed out", kind="timeout")
    for _ in range(29):
        watch.live(watch.now + MINUTE)
        watch.hear(down)
    assert watch.health() is Health.DEGRADED
    for _ in range(2):
        watch.live(watch.now + MINUTE)
        watch.hear(down)
    assert watch.health() is Health.FAILING
    for _ in range(180):
        watch.live(watch.now + MINUTE)
        watch.hear(down)
    assert watch.agent().finding(Kind.NO_CHECKPOINT) is not None
    assert watch.facts(NeedsHuman)
    assert not watch.orders(Terminate)


# --- what came late --------------------------------------------------------------------------------------------


def test_work_that_is_heard_out_of_a_backlog_still_explains_the_same_test_after_it() -> None:
    """A lossy link: each time a beat is missed and a ping answered, what is heard next may have waited. Polls that did count for
    nothing; an edit that did was made. The simulation found healthy agents accused of looping over 5 % of lost beats."""
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    for number in range(20):
        watch.run_until(watch.now + 12.0)
        assert watch.agent().suspicion is not None
        watch.beat()
        watch.hear(tool("edit", str(number), "ok"))
        watch.live(watch.now + 12.0)
        watch.hear(tool("pytest", "all", "14 passed"))
        assert watch.agent().finding(Kind.LOOPING) is None


def test_while_our_clock_stands_still_nobody_knows_whether_a_poll_waited() -> None:
    """It was set back by an hour. A poll each minute looked like sixty at once, and a healthy agent was nudged for it."""
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    watch.live(watch.now + 5.0)
    seq = 100
    for minute in range(60):
        for step in range(12):
            seq += 1
            behind = watch.now - 3600.0 + minute * 60.0 + step * 5.0
            watch.keep(watch.engine.hear(BeatReceived("a", seq=seq), behind))
        behind = watch.now - 3600.0 + minute * 60.0 + 58.0
        watch.keep(watch.engine.hear(tool("gh_run", "77", "in progress"), behind))
    assert watch.agent().finding(Kind.LOOPING) is None
    assert not watch.orders(SendNudge)
