"""The laws of `core/detectors/looping.py`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from lifesigns.core.detectors import call_history as recording
from lifesigns.core.detectors import waits as waiting
from lifesigns.core.detectors.call_history import NAME_MAX, CallHistory, keys_of, past_calls
from lifesigns.core.detectors.looping import observe
from lifesigns.core.digests import digest
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.health import Health
from lifesigns.core.policy import LoopingPolicy
from lifesigns.core.signals import ToolFinished, ToolStarted
from tests.core.harness import Watch

POLICY = LoopingPolicy()
Level = tuple[Severity, bool] | None
DEGRADED: Level = (Severity.DEGRADED, False)
STUCK: Level = (Severity.STUCK, False)
CONCLUSIVE: Level = (Severity.STUCK, True)


def call(
    tool: str = "grep",
    args: object = "x",
    result: object = "nothing",
    *,
    error: str | None = None,
    kind: str | None = None,
    retry: bool = False,
) -> ToolFinished:
    return ToolFinished(
        agent_id="a",
        call_id="c",
        tool=tool,
        args_digest=digest(args, exact=True),
        result_digest="" if error else digest(result),
        ok=error is None,
        error=error,
        error_kind=kind,
        retry=retry,
    )


def others(count: int) -> list[ToolFinished]:
    return [call("other", f"other {i}", f"else {i}") for i in range(count)]


def hear(
    calls: Iterable[ToolFinished],
    policy: LoopingPolicy = POLICY,
    *,
    every: float = 1.0,
    call_history: CallHistory | None = None,
    start: float = 0.0,
) -> Finding | None:
    """Hear the calls, one `every` second from `start` on; what holds after the last."""
    call_history = call_history or CallHistory()
    found = None
    for i, one in enumerate(calls):
        found = observe(call_history, one, policy, start + i * every)
    return found


def level(found: Finding | None) -> Level:
    return (found.severity, found.conclusive) if found else None


# --- the same call in a row --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [
        (3, None),
        (4, DEGRADED),
        (7, DEGRADED),
        (8, STUCK),
        (11, STUCK),
        (12, CONCLUSIVE),
        (50, CONCLUSIVE),
    ],
)
def test_the_same_call_with_the_same_result_in_a_row(repeats: int, expected: Level) -> None:
    assert level(hear([call()] * repeats)) == expected


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [(2, None), (3, DEGRADED), (4, DEGRADED), (5, STUCK), (7, STUCK), (8, CONCLUSIVE)],
)
def test_the_same_error_in_a_row_is_judged_sooner(repeats: int, expected: Level) -> None:
    assert level(hear([call(error="no such file", kind="not_found")] * repeats)) == expected


def test_an_error_is_the_same_without_its_volatile_parts() -> None:
    uuid = "-1a2b-4c3d-9e8f-0123456789ab"
    calls = [call(error=f"job {i:08x}{uuid} failed after {i}.5ms") for i in range(5)]
    assert level(hear(calls)) == STUCK


def test_another_error_of_the_same_call_is_another_outcome() -> None:
    assert hear([call(error=f"{name} is wrong") for name in "abcdefghij"]) is None
    assert hear([call(error="wrong", kind=f"kind {i}") for i in range(10)]) is None


def test_a_failure_that_says_nothing_cannot_be_compared() -> None:
    mute = replace(call(), ok=False, result_digest="")
    assert hear([mute] * 4) is None
    assert level(hear([mute] * 19)) == DEGRADED  # as a result nobody tells


def test_the_finding_says_what_since_when_and_how_often() -> None:
    found = hear([*others(2), *[call()] * 8], every=20.0)
    assert found is not None
    assert found.kind is Kind.LOOPING
    assert found.since == 40.0
    assert found.numbers == {"repeats": 8, "period": 1, "tool": "grep"}
    assert found.text == (
        "grep was called 8 times in a row with the same arguments and the same result, for 2 min."
    )


def test_since_stays_at_the_first_call_however_long_the_run() -> None:
    call_history = CallHistory()
    hear(others(3), call_history=call_history)
    for n in (10, 100, 1000):
        found = hear([call()] * n, call_history=call_history, start=50.0 + n, every=0.001)
        assert found is not None
        assert found.since == 60.0


def test_another_call_ends_the_run_at_once() -> None:
    call_history = CallHistory()
    assert level(hear([call()] * 5, call_history=call_history)) == DEGRADED
    assert hear(others(1), call_history=call_history, start=9.0) is None


def test_approvals_between_do_not_reset_the_count() -> None:
    """altimate-code 657: 10,943 calls. Only calls are heard; an approval is a pause like any other."""
    call_history, chance = CallHistory(), random.Random(1)
    now, found = 0.0, None
    for n in range(1, 10_944):
        now += chance.choice((0.1, 3.0, 30.0))
        found = observe(call_history, call(), POLICY, now)
        assert n < 12 or level(found) == CONCLUSIVE
    assert found is not None
    assert found.numbers["repeats"] == 10_943
    assert len(call_history.rkeys) == POLICY.recent_window


# --- cycles ------------------------------------------------------------------------------------------


def cycle(length: int, calls: int) -> list[ToolFinished]:
    return [call("step", f"args {i % length}", f"result {i % length}") for i in range(calls)]


@pytest.mark.parametrize("length", [2, 3, 4, 5, 11, 12])
def test_a_cycle_is_found_with_its_last_call_and_not_before(length: int) -> None:
    assert hear(cycle(length, 3 * length - 1)) is None
    found = hear(cycle(length, 3 * length))
    assert level(found) == DEGRADED
    assert found is not None
    assert (found.numbers["period"], found.numbers["repeats"], found.since) == (length, 3, 0.0)
    assert level(hear(cycle(length, 5 * length - 1))) == DEGRADED
    assert level(hear(cycle(length, 5 * length))) == CONCLUSIVE
    assert level(hear(cycle(length, 500 * length))) == CONCLUSIVE


def test_thirteen_calls_in_a_circle_are_too_many_for_a_cycle() -> None:
    assert hear(cycle(13, 500)) is None  # 2 or 3 of the last 30 each


def test_equal_calls_are_not_a_cycle_of_two() -> None:
    """Ten equal calls would be five cycles of two, and conclusive two calls too soon."""
    for repeats in range(4, 20):
        found = hear([call()] * repeats)
        assert found is not None
        assert found.numbers["period"] == 1
        assert found.conclusive == (repeats >= 12)


def test_a_cycle_may_hold_equal_neighbours() -> None:
    calls = [call("a"), call("a"), call("b")] * 5
    found = hear(calls)
    assert level(found) == CONCLUSIVE
    assert found is not None
    assert found.numbers["period"] == 3
    assert found.numbers["tool"] == "a, a, b"


def test_a_cycle_of_two_is_not_reported_as_a_cycle_of_four() -> None:
    found = hear(cycle(2, 40))
    assert found is not None
    assert found.numbers["period"] == 2
    assert found.numbers["repeats"] == 20


def test_a_cycle_whose_results_change_is_work() -> None:
    calls = [
        step
        for i in range(100)
        for step in (call("edit", f"change {i}", "ok"), call("test", "-q", f"{i} left"))
    ]
    assert hear(calls) is None


def test_since_of_a_cycle_is_its_first_call() -> None:
    found = hear([*others(7), *cycle(3, 30)])
    assert found is not None
    assert found.since == 7.0


# --- changing results --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [(19, None), (20, DEGRADED), (59, DEGRADED), (60, STUCK), (5000, STUCK)],
)
def test_the_same_call_with_changing_results_is_for_people(repeats: int, expected: Level) -> None:
    found = hear([call(result=f"{i} of many") for i in range(repeats)])
    assert level(found) == expected
    if found:
        assert found.numbers.get("people") == (1 if expected == STUCK else None)


def test_a_call_whose_result_is_not_told_is_worth_a_word_at_five_and_people_at_sixty() -> None:
    mute = replace(call(), result_digest="")
    assert hear([mute] * 4) is None
    assert level(hear([mute] * 5)) == level(hear([mute] * 59)) == DEGRADED
    assert level(hear([mute] * 60)) == STUCK


def test_a_cycle_whose_results_are_not_told_is_worth_a_word_at_five() -> None:
    turn = [replace(call(args=i), result_digest="") for i in range(3)]
    assert hear((turn * 5)[:-1]) is None
    assert level(hear(turn * 5)) == level(hear(turn * 50)) == DEGRADED
    assert level(hear([*turn[:2], call(args=2)] * 50)) == DEGRADED


def test_another_call_ends_a_run_of_changing_results() -> None:
    calls = [call(result=str(i)) for i in range(19)]
    assert hear([*calls, *others(1), *calls]) is None


def test_a_run_that_stops_changing_is_judged_as_the_same() -> None:
    found = hear([*[call(result=str(i)) for i in range(20)], *[call()] * 12])
    assert level(found) == CONCLUSIVE
    assert found is not None
    assert (found.numbers["repeats"], found.since) == (12, 20.0)


# --- often, not in a row -----------------------------------------------------------------------------


def among(count: int, gap: int) -> list[ToolFinished]:
    """The same call `count` times, with `gap` other calls after each that did nothing new (of no period)."""
    spaced = iter(replace(one, ok=False, error=f"no {i}") for i, one in enumerate(others(count * gap)))
    return [one for _ in range(count) for one in (call(), *(next(spaced) for _ in range(gap)))]


def test_six_of_the_last_thirty_calls() -> None:
    assert hear(among(5, 4)) is None
    found = hear([*among(5, 4), call()])
    assert level(found) == DEGRADED
    assert found is not None
    assert found.since == 0.0
    assert found.numbers == {"repeats": 6, "window": 26, "tool": "grep"}


@pytest.mark.parametrize(("repeats", "expected"), [(11, DEGRADED), (12, STUCK), (15, STUCK)])
def test_twelve_of_the_last_thirty_calls_are_stuck(repeats: int, expected: Level) -> None:
    assert level(hear(among(repeats, 1))) == expected


def test_what_was_done_between_two_equal_calls_explains_them() -> None:
    done = [one for i in range(15) for one in (call(), *others(i + 1)[-1:])]
    assert all(hear(done[:n]) is None for n in range(len(done)))
    again = [one for i in range(15) for one in (call(), *others(i % 4 + 1)[-1:], *others(i % 3 + 1)[-1:])]
    assert level(hear(again)) is not None, "nothing of it was new"


def test_five_of_thirty_for_ever_are_none() -> None:
    assert all(hear(among(40, 5)[:n]) is None for n in range(1, 240, 7))


def test_often_holds_until_the_window_has_moved_on() -> None:
    """It must not flap with every other call."""
    call_history = CallHistory()
    hear(among(6, 1), call_history=call_history)  # 12 calls; the first leaves the window with the 31st
    held = [level(observe(call_history, one, POLICY, 100.0)) for one in others(25)]
    assert held == [DEGRADED] * 18 + [None] * 7


def test_the_next_culprit_is_found_when_the_first_leaves_the_window() -> None:
    first, second = call("first"), call("second")
    call_history = CallHistory()
    hear([one for i in range(6) for one in (first, *others(2)[: i % 2])], call_history=call_history)
    hear(
        [one for i in range(6) for one in (second, *others(2)[: i % 2])],
        call_history=call_history,
        start=100.0,
    )
    found = hear(others(15), call_history=call_history, start=200.0)
    assert found is not None
    assert found.numbers["tool"] == "second"


def test_the_same_test_with_other_results_after_each_edit_is_work() -> None:
    edits = iter(others(150))
    calls = [
        one
        for i in range(50)
        for one in (call("test", "-q", f"{i} failed"), *(next(edits) for _ in range(i % 3 + 1)))
    ]
    assert hear(calls) is None


# --- what does not count -----------------------------------------------------------------------------


def test_batch_work_is_never_a_loop() -> None:
    """Same tool, same "ok", other arguments, even if they differ in an id or a moment only."""
    for args in (
        [{"page": i} for i in range(200)],
        [{"id": f"{i:08x}-1a2b-4c3d-9e8f-0123456789ab"} for i in range(200)],
        [f"git show {i * 7919 + 0xA0000000:08x}" for i in range(200)],
        [{"since": 1_700_000_000 + 3600 * i} for i in range(200)],
        [{"path": f"/tmp/part{i}.txt"} for i in range(200)],
    ):
        call_history = CallHistory()
        assert not any(observe(call_history, call("work", one, "ok"), POLICY, 0.0) for one in args)


def test_calls_without_arguments_told_are_no_evidence() -> None:
    blank = replace(call(), args_digest="", result_digest="")
    assert hear([blank] * 500) is None
    assert hear([replace(blank, result_digest="same")] * 500) is None
    assert hear([replace(blank, ok=False, error="no")] * 500) is None


def test_a_call_without_arguments_told_ends_a_run() -> None:
    """Whatever it was, it may have been the edit between two tests."""
    blank = replace(call(), args_digest="", result_digest="")
    assert hear([*[call()] * 3, blank, *[call()] * 2]) is None


@pytest.mark.parametrize(
    "kind",
    "rate_limit 429 overloaded overloaded_error server_error 5xx 500 502 503 504 529 timeout connection "
    "RateLimitError APITimeoutError InternalServerError ConnectionResetError http_503 HTTP-429 "
    "service-unavailable TimeoutException network_error".split(),
)
def test_infrastructure_errors_do_not_count(kind: str) -> None:
    assert hear([call(error="down", kind=kind)] * 100) is None


@pytest.mark.parametrize(
    "kind", ["not_found", "404", "5", "50", "5000", "ValueError", "permission", None, ""]
)
def test_other_errors_do_count(kind: str | None) -> None:
    assert level(hear([call(error="no", kind=kind)] * 8)) == CONCLUSIVE


def test_what_does_not_count_neither_extends_nor_ends_a_run() -> None:
    down, again = call("other", error="down", kind="429"), call("other", "y", retry=True)
    call_history = CallHistory()
    assert hear([call(), down, call(), again, again, call()], call_history=call_history) is None
    found = hear([call()], call_history=call_history, start=9.0)
    assert level(found) == DEGRADED
    assert hear([down], call_history=call_history, start=10.0) == found


def test_declared_retries_never_loop() -> None:
    assert hear([call(retry=True)] * 100) is None


# --- polling -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["wait", "Sleep", "poll_queue", "job_status", "check_build"])
def test_polling_is_left_alone_until_its_budget_is_over(tool: str) -> None:
    poll, call_history = call(tool, "job 1", "pending"), CallHistory()
    assert hear([poll] * 720, call_history=call_history, every=5.0) is None  # the last one at 3595 s
    expected = [None] * 3 + [DEGRADED] * 4 + [STUCK] * 4 + [CONCLUSIVE]
    assert [level(observe(call_history, poll, POLICY, 3600.0 + i * 5)) for i in range(12)] == expected
    found = hear([poll], call_history=call_history, start=3700.0)
    assert found is not None
    assert found.since == 3600.0


def test_another_call_gives_a_new_wait_budget() -> None:
    poll, call_history = call("wait", "", "pending"), CallHistory()
    hear([poll] * 360, call_history=call_history, every=10.0)
    hear(others(1), call_history=call_history, start=3599.0)
    assert hear([poll] * 360, call_history=call_history, start=3600.0, every=10.0) is None


def test_what_does_not_count_gives_no_new_wait_budget() -> None:
    poll, call_history = call("wait", "", "pending"), CallHistory()
    hear([poll, call(retry=True), call(error="down", kind="503")], call_history=call_history)
    assert level(hear([poll] * 4, call_history=call_history, start=3600.0, every=10.0)) == DEGRADED


def test_without_a_budget_polling_counts_like_any_other() -> None:
    policy = replace(POLICY, polling_for=0.0)
    assert level(hear([call("wait")] * 12, policy)) == CONCLUSIVE


def test_a_wait_inside_a_run_is_polling_by_other_means() -> None:
    """curl and sleep, in turn: worth a word; only after the budget is it a loop to act on."""
    turn, call_history = [call("curl", "/job", "pending"), call("sleep", 10, "")], CallHistory()
    assert level(hear(turn * 200, call_history=call_history, every=8.0)) == DEGRADED
    assert level(hear(turn, call_history=call_history, start=3592.0)) == DEGRADED
    assert level(hear(turn, call_history=call_history, start=3600.0)) == CONCLUSIVE


def test_a_wait_before_a_run_excuses_nothing() -> None:
    assert level(hear([call("sleep"), *[call()] * 12])) == CONCLUSIVE


# --- bounds ------------------------------------------------------------------------------------------

names = st.text(max_size=6) | st.sampled_from(["wait", "\x1f", "a\x1fb\x1fc", "x" * 1000])
wild_calls = st.builds(
    ToolFinished,
    agent_id=st.just("a"),
    call_id=st.just("c"),
    tool=names,
    args_digest=names,
    result_digest=names,
    ok=st.booleans(),
    error=st.none() | names,
    error_kind=st.none() | names | st.sampled_from(["429"]),
    retry=st.booleans(),
)
tame_calls = st.sampled_from(
    [
        call("a"),
        call("b"),
        call("a", error="no"),
        call("sleep"),
        *others(3),
    ]
)
policies = st.builds(
    LoopingPolicy,
    cycle_length_max=st.integers(0, 9),
    recent_window=st.integers(0, 12),
    recent_notice=st.integers(2, 6),
    polling_for=st.sampled_from([0.0, 5.0, 3600.0]),
)


@given(
    st.lists(st.tuples(wild_calls | tame_calls, st.floats(0, 1e9)), max_size=80),
    st.lists(policies, min_size=1),
)
def test_no_calls_make_it_raise_or_grow(
    heard: list[tuple[ToolFinished, float]], rules: list[LoopingPolicy]
) -> None:
    """Under hostile names, times that run backwards and policies that change on the way."""
    call_history = CallHistory()
    for i, (one, now) in enumerate(heard):
        policy = rules[i % len(rules)]
        found = observe(call_history, one, policy, now)
        assert len(call_history.rkeys) == len(call_history.times) <= 12
        assert len(call_history.matched) == len(call_history.started) <= 9
        assert all(len(rkey) <= 3 * NAME_MAX + 3 for rkey in call_history.rkeys)
        assert call_history.times == sorted(call_history.times)
        assert found is None or (found.since <= call_history.times[-1] and found.text.endswith("."))


@given(st.lists(tame_calls, max_size=60))
def test_a_stored_tape_goes_on_like_the_one_in_memory(heard: list[ToolFinished]) -> None:
    kept, stored = CallHistory(), CallHistory()
    for now, one in enumerate(heard):
        stored = msgspec.msgpack.decode(msgspec.msgpack.encode(stored), type=CallHistory)
        assert observe(stored, one, POLICY, float(now)) == observe(kept, one, POLICY, float(now))
    assert stored == kept


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers()), unique=True, max_size=150),
    st.booleans(),
)
def test_calls_that_differ_are_never_a_loop(keys: list[tuple[str, int]], ok: bool) -> None:
    call_history = CallHistory()
    for tool, args in keys:
        one = call(tool, args, "ok", error=None if ok else "no")
        assert observe(call_history, one, POLICY, 0.0) is None


@example([3, 1, 0, 0, 0, 0, 2, 0, 1, 0, 1, 0, 3])
@example([0, 1, 0, 2, 0, 3, 0, 0, 1, 3, 0, 2, 0, 1, 0, 3, 2, 1])
@example([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1])  # the second culprit is the worse one
@example(
    [int(step) for step in "0000202120122221000220200002221"]
)  # ... still, when the first leaves the window
@given(st.lists(st.integers(0, 3), max_size=80))
def test_it_finds_what_a_plain_reading_of_the_whole_tape_finds(steps: list[int]) -> None:
    """The counters say the same as looking for the longest run and the best cycle from scratch."""
    call_history = CallHistory()
    for n in range(1, len(steps) + 1):
        one = call("step", steps[n - 1], steps[n - 1])
        assert level(observe(call_history, one, POLICY, float(n))) == _plain_reading(steps[:n])


def _plain_reading(steps: list[int]) -> Level:
    def repeats(period: int) -> int:
        run = 0
        while run < len(steps) - period and steps[-1 - run] == steps[-1 - run - period]:
            run += 1
        return (run + period) // period

    def barren(step: int) -> int:
        """Counted from the second time on if nothing was done in between for the first time in thirty calls."""
        found = 0
        for i in range(max(0, len(steps) - 30), len(steps)):
            if steps[i] == step:
                before = [j for j in range(max(0, i - 30), i) if steps[j] == step]
                news = [j for j in range(before[-1] + 1, i) if _is_new(steps, j)] if before else [i]
                found += found == 0 or not news
        return found

    cycles = [repeats(p) for p in range(2, 13) if len(set(steps[-p:])) > 1]
    best = max(cycles, default=0)
    if repeats(1) >= 12 or best >= 5:
        return CONCLUSIVE
    often = max((barren(step) for step in set(steps)), default=0)
    if repeats(1) >= 8 or often >= 12:
        return STUCK
    return DEGRADED if repeats(1) >= 4 or best >= 3 or often >= 6 else None


def _is_new(steps: list[int], j: int) -> bool:
    return steps[j] not in steps[max(0, j - 30) : j]


def _never(call_history: CallHistory, rkey: str, policy: LoopingPolicy) -> None:
    """Broken: `recent` has no culprit."""


def _only_now(call_history: CallHistory, rkey: str, policy: LoopingPolicy) -> None:
    """Broken: `recent` looks at the present call only."""
    call_history.often = rkey if call_history.rkeys.count(rkey) >= policy.recent_notice else ""


@pytest.mark.parametrize("broken", [_never, _only_now])
def test_the_plain_reading_bites(
    broken: Callable[[CallHistory, str, LoopingPolicy], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "_follow_often", broken)
    with pytest.raises(AssertionError):
        test_it_finds_what_a_plain_reading_of_the_whole_tape_finds()


def test_matches_of_polling_tools_are_remembered_within_bounds() -> None:
    hear([call(f"tool {i}" * 100) for i in range(3000)])
    for i in range(200):
        hear([call()], replace(POLICY, polling_tools=(f"tool {i}",)))
    memo = waiting._polls_memo
    assert 0 < len(memo) <= waiting._PATTERNS_MAX
    assert all(len(tools) <= waiting._TOOLS_MAX for tools in memo.values())
    assert all(len(name) <= NAME_MAX for tools in memo.values() for name in tools)


def test_an_hour_of_polls_that_come_at_once_is_no_loop() -> None:
    """Its link was cut: what it could not tell comes in a moment. A loop that goes on is found all the same."""
    watch = Watch()
    watch.beat("a")
    watch.beat("other")
    for number in range(3):
        watch.hear(
            ToolFinished(agent_id="a", call_id=f"{number}", tool="gh", args_digest="x", result_digest="y")
        )
        watch.live(watch.now + 60, "a", "other")
    watch.live(watch.now + 600, "other")
    assert watch.health("a") is Health.DISCONNECTED
    for number in range(10, 30):
        watch.hear(
            ToolFinished(agent_id="a", call_id=f"{number}", tool="gh", args_digest="x", result_digest="y")
        )
    assert watch.agent("a").finding(Kind.LOOPING) is None
    watch.live(watch.now + 15, "a", "other")
    for number in range(30, 50):
        watch.hear(
            ToolFinished(agent_id="a", call_id=f"{number}", tool="gh", args_digest="x", result_digest="y")
        )
        watch.live(watch.now + 1, "a", "other")
    assert watch.agent("a").finding(Kind.LOOPING) is not None


def test_the_arguments_of_a_call_may_be_told_when_it_begins() -> None:
    """As hooks and scripts do that tell the result when there is one."""
    watch = Watch()
    watch.beat("a")
    for number in range(4):
        call_id = str(number)
        watch.hear(ToolStarted(agent_id="a", call_id=call_id, tool="grep", args_digest="x"), watch.now + 1)
        watch.hear(ToolFinished(agent_id="a", call_id=call_id, tool="grep", result_digest="y"), watch.now + 1)
    found = watch.agent("a").finding(Kind.LOOPING)
    assert found is not None
    assert found.numbers["repeats"] == 4


def test_the_tape_says_how_long_its_calls_took_also_one_of_an_older_version() -> None:
    call_history = CallHistory()
    hear([call("a"), call("b")], call_history=call_history)
    call_history.took.clear()
    assert [past.took_s for past in past_calls(call_history)] == [0.0, 0.0]
    hear([replace(call("c"), duration_s=2.5), call("")], call_history=call_history, start=9.0)
    assert [past.took_s for past in past_calls(call_history)] == [0.0, 0.0, 2.5, 0.0]
    hear(
        [replace(call(f"{n}"), duration_s=float(n)) for n in range(40)], call_history=call_history, start=20.0
    )
    assert [past.took_s for past in past_calls(call_history)] == [float(n) for n in range(10, 40)]


def culprit(steps: str) -> tuple[str, float]:
    """Which step is held to fill the window after these, and since when."""
    call_history = CallHistory()
    hear([call("step", step, step) for step in steps], call_history=call_history)
    return next(s for s in [*steps, ""] if call_history.often == (s and rkey(s))), call_history.often_since


def rkey(step: str) -> str:
    return keys_of(call("step", step, step))[1]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("aaaaa", ""),
        ("aaaaaa", "a"),
        (
            "ba" + "a" * 5 + "b" * 6,
            "a",
        ),  # It stays the culprit, though another one is as bad and came before.
        ("a" * 6 + "b" * 12, "b"),  # Who is stuck takes its place,
        ("ba" + "a" * 11 + "b" * 13, "a"),  # and keeps it.
    ],
)
def test_the_culprit_stays_until_another_is_worse(steps: str, expected: str) -> None:
    assert culprit(steps)[0] == expected


def test_since_when_the_culprit_fills_the_window_stays_when_the_window_moves_on() -> None:
    others = "bcdefghijklmnopqrstuvwy"
    assert culprit("x" + "a" * 8 + others) == ("a", 1.0)


def test_a_tape_of_an_older_version_goes_on_in_a_backlog() -> None:
    call_history = CallHistory()
    hear([call("a"), call("b")] * 3, call_history=call_history)
    for missing in (call_history.marks, call_history.model_at, call_history.took):
        missing.clear()
    call_history.backlog_until = 100.0
    hear([call("a"), call("b")], call_history=call_history, start=10.0)
    assert len(call_history.marks) == len(call_history.took) == len(call_history.rkeys) == 8


@pytest.mark.parametrize(
    ("gaps", "thought", "waits"),
    [
        ([30.0, 30.0, 30.0], [0.0, 0.0, 0.0], True),
        ([30.0, 30.0, 29.9], [0.0, 0.0, 0.0], False),  # Shorter than a wait.
        ([30.0, 30.0, 30.0], [15.0, 15.0, 15.0], False),  # Half of it is thought.
        ([30.0, 30.0, 30.0], [14.0, 14.0, 14.0], True),
        ([900.0, 40.0, 40.0], [0.0, 40.0, 40.0], False),  # One long pause makes no wait,
        ([40.0, 40.0, 900.0], [40.0, 40.0, 0.0], False),  # wherever it was.
        ([900.0, 40.0, 40.0], [10.0, 19.0, 20.0], True),  # Without it 39 of 80 s are thought,
        ([900.0, 40.0, 40.0], [10.0, 21.0, 20.0], False),  # or 41.
        ([900.0, 40.0], [0.0, 40.0], True),  # Of two pauses the longer one says as much as the other.
        ([900.0, 40.0, 40.0], [900.0, 0.0, 0.0], False),  # A long thought is no pause: it stays.
        ([900.0, 40.0, 40.0], [450.0, 18.0, 18.0], True),
        ([0.0, 90.0, 0.0], [0.0, 0.0, 0.0], False),
    ],
)
def test_a_wait_is_time_between_calls_without_its_longest_pause(
    gaps: list[float], thought: list[float], waits: bool
) -> None:
    times, model_at = [[sum(parts[:n]) for n in range(len(parts) + 1)] for parts in (gaps, thought)]
    call_history = CallHistory(times=times, model_at=model_at)
    assert waiting.waits(call_history, POLICY, len(gaps), len(times), 1) is waits
