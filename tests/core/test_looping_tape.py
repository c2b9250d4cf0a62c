"""What the tape of an agent's calls keeps, and what counts on it: `core/detectors/call_history.py`, one call at a time."""

import pytest
from msgspec.structs import replace

from lifesigns.core.detectors.call_history import NO_ARGS, CallHistory, PastCall, fill_in, past_calls
from lifesigns.core.detectors.error_kinds import INFRASTRUCTURE, is_infrastructure
from lifesigns.core.detectors.looping import holding, observe, thought
from lifesigns.core.digests import digest
from lifesigns.core.effects import Finding, Severity
from lifesigns.core.policy import LoopingPolicy
from lifesigns.core.signals import ToolFinished

POLICY = LoopingPolicy()


def call(tool: str = "grep", args: str = "x", result: str = "r", *, error: str | None = None) -> ToolFinished:
    return ToolFinished(
        agent_id="a",
        call_id="c",
        tool=tool,
        args_digest=args,
        result_digest="" if error else result,
        ok=error is None,
        error=error,
    )


POLL = call("check_ci")


# --- the tape --------------------------------------------------------------------------------------------------


def test_the_tape_can_be_read() -> None:
    call_history = CallHistory()
    mute, nameless = replace(call("ls"), result_digest=""), replace(call("ls", ""), duration_s=2.5)
    for now, one in enumerate((call(), call("make", error="no rule"), mute, nameless)):
        observe(call_history, one, POLICY, float(now))
    assert list(past_calls(call_history)) == [
        PastCall(0.0, "grep", "x", "r", failed=False, took_s=0.0),
        PastCall(1.0, "make", "x", digest([None, "no rule"]), failed=True, took_s=0.0),
        PastCall(2.0, "ls", "x", "", failed=False, took_s=0.0),
        PastCall(3.0, "", "", "", failed=False, took_s=2.5),
    ]


def test_what_a_tape_does_not_say_is_filled_in_before_what_it_says() -> None:
    call_history = CallHistory(rkeys=["a", "b"], times=[1.0, 2.0], took=[2.5], marks=[1], model_at=[3.0])
    fill_in(call_history)
    assert (call_history.took, call_history.marks, call_history.model_at) == ([0.0, 2.5], [0, 1], [0.0, 3.0])


def test_a_new_tape_is_empty() -> None:
    """Its numbers begin at nought: they are sums and moments."""
    assert CallHistory() == CallHistory(
        [], [], [], [], "", 0, 0.0, "", 0.0, None, None, 0.0, [], "", None, 0.0, None, 0.0, 0.0
    )
    call_history = CallHistory()
    assert (
        call_history.model_at,
        call_history.talk,
        call_history.talk_since,
        call_history.talked_at,
        call_history.talk_model_s,
        call_history.backlog_until,
    ) == (
        [],
        0,
        0.0,
        0.0,
        0.0,
        0.0,
    )
    assert not call_history.model_known
    assert not call_history.acts


def test_time_on_the_tape_does_not_go_back() -> None:
    call_history = CallHistory()
    for now in (10.0, 30.0, 20.0):
        observe(call_history, call(), POLICY, now)
    assert call_history.times == [10.0, 30.0, 30.0]


@pytest.mark.parametrize(("backlog_until", "truce_until"), [(50.0, 0.0), (0.0, 50.0)])
def test_a_call_out_of_a_backlog_counts_for_nothing_until_the_backlog_is_over(
    backlog_until: float, truce_until: float
) -> None:
    call_history = CallHistory()
    observe(call_history, call(), POLICY, 10.0)
    call_history.backlog_until = backlog_until
    for now, on_tape in ((20.0, 1), (49.9, 1), (50.0, 2)):
        observe(call_history, call(), POLICY, now, truce_until=truce_until)
        assert len(call_history.rkeys) == on_tape


@pytest.mark.parametrize(
    ("one", "heard"),
    [
        (call("edit"), True),
        (call(args="y"), True),
        (call("ls"), False),  # it is on the tape, further back
        (call(result="other"), False),  # a look at the same thing
        (call("edit", error="no rule"), False),
        (call("check_ci"), False),
    ],
)
def test_something_new_is_heard_out_of_a_backlog_too(one: ToolFinished, heard: bool) -> None:
    """It is the work that explains the others."""
    call_history = CallHistory()
    observe(call_history, call("ls"), POLICY, 9.0)
    observe(call_history, call(), POLICY, 10.0)
    call_history.backlog_until = 50.0
    observe(call_history, one, POLICY, 20.0)
    assert len(call_history.rkeys) == 2 + heard


def test_something_new_out_of_a_backlog_ends_the_polling_before_it() -> None:
    """Else two waits of half an hour were one of an hour, and the second was held against the agent (chaos seed 163)."""
    call_history = CallHistory()
    observe(call_history, call("check_ci"), POLICY, 10.0)
    call_history.backlog_until = 50.0
    observe(call_history, call("check_ci"), POLICY, 20.0)
    assert call_history.polling_since == 10.0
    observe(call_history, call("edit"), POLICY, 30.0)
    assert call_history.polling_since is None


@pytest.mark.parametrize("marks", [[], [2], [1, 2]])
def test_a_tape_that_an_older_version_stored_is_filled_in_from_the_front(marks: list[int]) -> None:
    for go_on in (False, True):
        call_history = CallHistory()
        for now in range(3):
            observe(call_history, call(), POLICY, float(now))
        call_history.marks, call_history.model_at = list(marks), [9.0] * len(marks)
        if go_on:
            observe(call_history, call(), POLICY, 3.0)
        else:
            holding(call_history, POLICY)
        missing = 3 - len(marks)
        assert call_history.marks[:3] == [0] * missing + marks
        assert call_history.model_at[:3] == [0.0] * missing + [9.0] * len(marks)
        assert len(call_history.marks) == len(call_history.model_at) == len(call_history.rkeys)


@pytest.mark.parametrize(("length", "kept"), [(64, True), (65, False)])
def test_long_names_are_kept_as_their_fingerprint(length: int, kept: bool) -> None:
    call_history, name = CallHistory(), "n" * length
    observe(call_history, call(name, name, name), POLICY, 0.0)
    (one,) = past_calls(call_history)
    assert ((one.tool, one.args, one.outcome) == (name, name, name)) is kept
    assert max(map(len, (one.tool, one.args, one.outcome))) <= 64


def test_no_name_can_forge_another_call() -> None:
    """What separates the parts of a call on the tape may stand in none of them."""
    call_history = CallHistory()
    observe(call_history, call("a\x1fb", "c\x1fd", "e\x1ff"), POLICY, 0.0)
    (one,) = past_calls(call_history)
    assert "\x1f" not in f"{one.tool}{one.args}{one.outcome}"


@pytest.mark.parametrize(
    ("cycle", "window", "periods", "kept"), [(0, 0, 1, 1), (1, 1, 1, 1), (2, 1, 2, 2), (1, 3, 1, 3)]
)
def test_the_tape_is_as_long_as_the_policy_needs_it(cycle: int, window: int, periods: int, kept: int) -> None:
    policy = replace(POLICY, cycle_length_max=cycle, recent_window=window)
    call_history = CallHistory()
    for now in range(5):
        observe(call_history, call(), policy, float(now))
    assert (len(call_history.matched), len(call_history.rkeys)) == (periods, kept)
    assert len(call_history.times) == len(call_history.marks) == len(call_history.model_at) == kept


# --- model calls -----------------------------------------------------------------------------------------------


def test_model_calls_side_by_side_take_the_time_of_one() -> None:
    call_history = CallHistory()
    for started_at, now in ((0.0, 10.0), (5.0, 10.0), (8.0, 12.0), (9.0, 11.0), (11.0, 13.0)):
        thought(call_history, started_at, True, now)
    assert (call_history.model_s, call_history.model_until, call_history.model_known) == (13.0, 13.0, True)


def test_a_model_call_whose_beginning_nobody_told_takes_no_time() -> None:
    call_history = CallHistory()
    thought(call_history, None, True, 10.0)
    assert (call_history.model_s, call_history.model_known, call_history.talk) == (0.0, False, 1)


def test_of_model_calls_side_by_side_one_is_talk() -> None:
    call_history = CallHistory()
    for started_at, now, talk in ((0.0, 10.0, 1), (9.9, 12.0, 1), (10.0, 20.0, 2), (20.0, 30.0, 3)):
        thought(call_history, started_at, True, now)
        assert call_history.talk == talk
    assert (call_history.talk_since, call_history.talked_at) == (10.0, 30.0)
    thought(call_history, 30.0, False, 40.0)
    assert (call_history.talk, call_history.talked_at) == (3, 30.0)


def test_a_tool_call_ends_the_talk_and_the_next_begins_anew() -> None:
    call_history = CallHistory(acts=True)
    for n in range(10):
        thought(call_history, None, True, float(n))
    found = holding(call_history, POLICY)
    assert found is not None
    assert (found.severity, found.since, found.numbers) == (Severity.DEGRADED, 0.0, {"talk": 10})
    assert found.text.endswith("for 9 s.")
    assert observe(call_history, call(), POLICY, 10.0) is None
    assert call_history.talk == 0
    thought(call_history, 5.0, True, 11.0)  # It began before the last talk ended, and is the first of this.
    assert (call_history.talk, call_history.talk_since) == (1, 11.0)
    for n in range(9):
        thought(call_history, 11.0 + n, True, 12.0 + n)
    found = holding(call_history, POLICY)
    assert found is not None
    assert found.text.endswith("for 9 s.")


def test_talk_of_an_agent_without_tools_is_a_notice() -> None:
    call_history = CallHistory()
    for n in range(10):
        thought(call_history, None, True, float(n))
    found = holding(call_history, POLICY)
    assert found is not None
    assert found.severity is Severity.NOTICE


@pytest.mark.parametrize(("pause", "found"), [(9.9, True), (10.0, True), (10.1, False)])
def test_who_pauses_for_longer_than_its_model_thinks_is_talked_to(pause: float, found: bool) -> None:
    """What was before the first model call was over is no part of it."""
    call_history = CallHistory(acts=True)
    thought(call_history, 0.0, True, 1000.0)
    observe(call_history, call(), POLICY, 1001.0)
    for n in range(10):
        ended_at = 2000.0 + n * (10.0 + pause)
        thought(call_history, ended_at - 10.0, True, ended_at)
    assert (holding(call_history, POLICY) is not None) is found


def test_talk_is_found_though_calls_before_it_repeat() -> None:
    call_history = CallHistory()
    for now in (0.0, 1.0):
        observe(call_history, call(), POLICY, now)
    for n in range(10):
        assert holding(call_history, POLICY) is None
        thought(call_history, None, True, 2.0 + n)
    found = holding(call_history, POLICY)
    assert found is not None
    assert found.numbers == {"talk": 10}


# --- what counts -----------------------------------------------------------------------------------------------


def test_a_call_that_went_well_counts_whatever_it_says_of_errors() -> None:
    call_history, found = CallHistory(), None
    for now in range(8):
        found = observe(call_history, replace(call(), error_kind="timeout"), POLICY, float(now))
    assert found is not None
    assert found.severity is Severity.STUCK


@pytest.mark.parametrize(
    ("kind", "world"),
    [
        ("503", True),
        ("http_599", True),
        ("5xx", True),
        ("5ab", False),
        ("50", False),
        ("5030", False),
        ("403", False),
        ("ServerError", True),
        ("TimeoutException", True),
        ("rate" + "_" * 55 + "limit", True),
        ("rate" + "_" * 56 + "limit", False),
    ],
)
def test_a_servers_errors_are_the_worlds(kind: str, world: bool) -> None:
    assert is_infrastructure(kind) is world


SAID_BY_CLIENTS = """
    RateLimitError rate_limited TooManyRequests http_429 408 425 overloaded_error 5xx ServerError InternalServerError
    api_error BadGateway ServiceUnavailable UNAVAILABLE GatewayTimeout DEADLINE_EXCEEDED TimeoutError timed_out
    APITimeoutError RequestTimeout ConnectTimeout ReadTimeout ConnectionError APIConnectionError ConnectionResetError
    ConnectionRefusedError ConnectError NetworkError dns_error
"""


@pytest.mark.parametrize("kind", SAID_BY_CLIENTS.split())
def test_what_clients_say_of_a_world_that_is_down_is_no_fault_of_the_agent(kind: str) -> None:
    assert is_infrastructure(kind)


def test_every_kind_that_is_the_worlds_fault_is_said_by_some_client() -> None:
    """Without the test above for each of them, one could be lost unnoticed."""
    names = {"".join(filter(str.isalnum, kind.lower())) for kind in SAID_BY_CLIENTS.split()}
    assert {name.removeprefix("http").removesuffix("error") for name in names} == INFRASTRUCTURE


@pytest.mark.parametrize(
    ("failed", "comparable"),
    [
        ({"error": "no rule"}, True),
        ({"error_kind": "not_found"}, True),
        ({"result_digest": "r"}, True),
        ({}, False),
    ],
)
def test_a_failure_is_compared_by_whatever_it_says(failed: dict[str, str], comparable: bool) -> None:
    call_history, found = CallHistory(), None
    silent = replace(call(), ok=False, result_digest="")
    for now in range(5):
        found = observe(call_history, replace(silent, **failed), POLICY, float(now))
    assert found is not None
    assert found.severity is (Severity.STUCK if comparable else Severity.DEGRADED)


def test_three_errors_in_a_row_are_told_as_a_row() -> None:
    call_history, found = CallHistory(), None
    for now in range(3):
        found = observe(call_history, call(error="no rule"), POLICY, float(now))
    assert found is not None
    assert found.numbers == {"repeats": 3, "period": 1, "tool": "grep"}


def test_failures_with_other_results_are_not_alike() -> None:
    call_history = CallHistory()
    for now in range(10):
        one = replace(call(), ok=False, error_kind="wrong", result_digest=f"r{now}")
        assert observe(call_history, one, POLICY, float(now)) is None


def test_a_call_that_cannot_be_compared_may_be_the_work_that_explains_the_others() -> None:
    call_history = CallHistory()
    for now in range(0, 60, 2):
        assert observe(call_history, call(), POLICY, float(now)) is None
        assert observe(call_history, call("edit", ""), POLICY, now + 1.0) is None


def test_the_same_error_goes_on_being_found_when_another_follows() -> None:
    call_history, found = CallHistory(), None
    for now, name in enumerate("abacad"):
        found = observe(call_history, call(args=name, error="no rule"), POLICY, float(now))
    assert not any(call_history.matched)
    assert found is not None
    assert (found.severity, found.numbers["repeats"]) == (Severity.DEGRADED, 3)


def test_calls_that_cannot_be_compared_are_no_run() -> None:
    call_history = CallHistory()
    for now in range(30):
        assert observe(call_history, call(args=""), POLICY, float(now)) is None
    assert not any(call_history.matched)


def test_another_policy_begins_the_count_of_cycles_anew() -> None:
    call_history = CallHistory()
    for now in range(5):
        observe(call_history, call(), POLICY, float(now))
    assert call_history.matched[:3] == [4, 3, 2]
    observe(call_history, call(), replace(POLICY, cycle_length_max=3), 5.0)
    assert call_history.matched == [1, 1, 1]


SHORT = replace(POLICY, recent_window=12, recent_notice=3, recent_stuck=5, cycle_length_max=1)


def after(calls: str, policy: LoopingPolicy = SHORT) -> CallHistory:
    """The tape after these: a capital repeats, F and G fail, `u` has no known result, and `.` fails in another way each time."""
    call_history = CallHistory()
    for now, name in enumerate(calls):
        one = call(args=name, error="no rule" if name in "FG" else None)
        if name == ".":
            one = call(args=f"{now}", error=f"no rule {now}")
        elif name == "u":
            one = call(args=name, result="")
        observe(call_history, one, policy, float(now))
    return call_history


def args_of(rkey: str) -> str:
    return rkey.split("\x1f")[1] if rkey else ""


@pytest.mark.parametrize(
    ("calls", "often", "since"),
    [
        ("AA", "", 0.0),
        ("AAA", "A", 0.0),
        (".AAA", "A", 1.0),
        ("A.A.A", "A", 0.0),
        ("AAABBB", "A", 0.0),  # the first stays while it fills the window
        ("AAABBB......", "A", 0.0),
        ("AAABBB.......", "B", 3.0),
        ("AAA..........", "", 0.0),
        ("AAABB........", "", 0.0),
        ("AAAuuu.......", "", 0.0),  # what we do not know is no evidence
        ("AAAuuuBBB....", "B", 6.0),
        (".AAAAAAAAAAAAAAAAAAA", "A", 1.0),  # it has one beginning
    ],
)
def test_one_call_fills_the_window_until_it_has_left_it(calls: str, often: str, since: float) -> None:
    call_history = after(calls)
    assert args_of(call_history.often) == often
    assert call_history.often_since == since


@pytest.mark.parametrize(
    ("calls", "window", "failing"),
    [
        ("FF", 5, ""),
        ("FFF", 5, "F"),
        ("AAA", 5, ""),
        ("FFF..", 5, "F"),
        ("FFF...", 5, ""),
        ("FFFGG", 5, "F"),
        ("FFFGGG", 5, "G"),
        ("FFFGGG", 8, "F"),
        ("F.F.F", 5, "F"),
        ("F..F.F", 5, ""),
    ],
)
def test_one_error_comes_again_and_again_until_it_has_left_its_window(
    calls: str, window: int, failing: str
) -> None:
    call_history = after(calls, replace(SHORT, failing_window=window))
    assert args_of(call_history.failing) == failing


# --- polling ---------------------------------------------------------------------------------------------------


def polled(*moments: float, policy: LoopingPolicy = POLICY, model_share: float | None = None) -> CallHistory:
    """A polling tool was called at these moments, and model calls filled this part of the time between."""
    call_history, before = CallHistory(), None
    for now in moments:
        if model_share is not None and before is not None:
            thought(call_history, now - model_share * (now - before), True, now)
        observe(call_history, POLL, policy, now)
        before = now
    return call_history


@pytest.mark.parametrize(("last", "counted"), [(109.9, 0), (110.0, 1)])
def test_polls_without_a_wait_count_after_ten_seconds(last: float, counted: int) -> None:
    assert len(polled(100.0, 102.0, 105.0, 109.0, last).rkeys) == counted


def test_a_wait_between_begins_the_ten_seconds_anew() -> None:
    assert polled(100.0, 104.0, 108.0, 113.0, 117.0).rkeys == []
    assert polled(100.0, 104.0, 108.0, 113.0, 117.0, 121.0, 122.9).rkeys == []
    assert len(polled(100.0, 104.0, 108.0, 113.0, 117.0, 121.0, 123.0).rkeys) == 1


@pytest.mark.parametrize(("share", "counted"), [(None, 0), (0.25, 0), (0.5, 1), (1.0, 1)])
def test_polls_with_nothing_but_model_calls_between_have_no_wait(share: float | None, counted: int) -> None:
    assert len(polled(100.0, 132.0, model_share=share).rkeys) == counted


@pytest.mark.parametrize(("now", "counted"), [(3699.9, 0), (3700.0, 1)])
def test_the_wait_budget_has_an_end(now: float, counted: int) -> None:
    assert len(polled(100.0, now).rkeys) == counted


def test_another_call_begins_the_budget_anew() -> None:
    call_history = polled(100.0, 1000.0)
    observe(call_history, call(), POLICY, 1001.0)
    observe(call_history, POLL, POLICY, 3700.0)
    assert (call_history.polling_since, len(call_history.rkeys)) == (3700.0, 1)


def test_time_in_which_we_slept_is_no_part_of_the_budget() -> None:
    call_history = polled(100.0)
    observe(call_history, POLL, POLICY, 3750.0, slept_for=100.0)
    assert (call_history.polling_since, call_history.slept_for, call_history.polled_at) == (
        200.0,
        100.0,
        3750.0,
    )
    assert call_history.rkeys == []
    observe(call_history, POLL, POLICY, 3800.0, slept_for=20.0)
    assert (call_history.polling_since, call_history.slept_for) == (220.0, 120.0)
    fresh = CallHistory()
    observe(fresh, POLL, POLICY, 10.0, slept_for=5.0)
    assert (fresh.polling_since, fresh.slept_for) == (10.0, 5.0)


# --- how much it may say -----------------------------------------------------------------------------------------


def every(*gaps: float) -> list[float]:
    moments = [100.0]
    for gap in gaps:
        moments.append(moments[-1] + gap)
    return moments


@pytest.mark.parametrize(
    ("moments", "waits"),
    [
        (every(*[30.0] * 7), True),
        (every(*[29.0] * 7), False),
        (every(1, 1, 1, 2, 3, 4.5, 6.75), True),  # each wait half as long again, four times in a row
        (every(1, 1, 1, 2, 3, 4.4, 6.75), False),
        (every(1, 1, 1, 1.1, 1.7, 2.6, 3.99), False),  # too short to be told from jitter
        (every(1, 1, 1, 1.1, 1.7, 2.6, 4.0), True),
        (every(1, 1, 1, 3, 3, 4.5, 6.75), False),  # three times are too few
    ],
)
def test_calls_far_apart_or_further_apart_each_time_are_a_wait(moments: list[float], waits: bool) -> None:
    call_history, found = CallHistory(), None
    for now in moments:
        found = observe(call_history, call(), POLICY, now)
    assert found is not None
    assert found.severity is (Severity.DEGRADED if waits else Severity.STUCK)
    assert ("waiting" in found.numbers) is waits
    assert not found.conclusive


@pytest.mark.parametrize(("share", "severity"), [(0.25, Severity.NOTICE), (0.5, Severity.STUCK)])
def test_a_wait_is_one_if_model_calls_fill_less_than_half_of_it(share: float, severity: Severity) -> None:
    call_history, found = CallHistory(), None
    for n in range(12):
        if n:
            thought(call_history, 32.0 * (n - share), True, 32.0 * n)
        found = observe(call_history, call(), POLICY, 32.0 * n)
    assert found is not None
    assert (found.severity, found.conclusive) == (severity, severity is Severity.STUCK)


@pytest.mark.parametrize(("repeats", "severity"), [(59, Severity.NOTICE), (60, Severity.DEGRADED)])
def test_people_are_told_of_a_wait_that_goes_on(repeats: int, severity: Severity) -> None:
    call_history, found = CallHistory(model_known=True), None
    for n in range(repeats):
        found = observe(call_history, call(), POLICY, 60.0 * n)
    assert found is not None
    assert found.severity is severity
    assert (found.numbers.get("people") == 1) is (repeats == 60)
    assert found.numbers["waiting"] == 1


def found_after(calls: list[tuple[float, ToolFinished]], policy: LoopingPolicy = POLICY) -> Finding:
    call_history, found = CallHistory(), None
    for now, one in calls:
        found = observe(call_history, one, policy, now)
    assert found is not None
    return found


def failing(n: int) -> ToolFinished:
    """Fails in another way each time."""
    return call(args=f"{n}", error=f"no rule {n}")


@pytest.mark.parametrize(("gap", "waits"), [(29.9, False), (30.0, True)])
def test_the_same_arguments_with_other_results_wait_like_any_other(gap: float, waits: bool) -> None:
    found = found_after([(gap * n, call(result=f"r{n}")) for n in range(20)])
    told = {"repeats": 20, "period": 1, "tool": "grep"}
    assert found.numbers == (told | {"waiting": 1} if waits else told)
    assert found.severity is Severity.DEGRADED


@pytest.mark.parametrize(
    ("period", "gap", "waits"), [(1, 29.9, False), (1, 30.0, True), (2, 14.4, False), (2, 15.0, True)]
)
def test_a_run_longer_than_the_tape_is_judged_by_what_is_on_it(period: int, gap: float, waits: bool) -> None:
    calls = [(gap * n, call(args=f"{n % period}")) for n in range(80 * period)]
    found = found_after(calls)
    assert (found.numbers["repeats"], found.numbers["period"]) == (80, period)
    assert ("waiting" in found.numbers) is waits
    assert ("Most of that time it may have waited." in found.text) is waits


def test_how_long_the_model_took_before_is_no_part_of_a_wait() -> None:
    call_history, found = CallHistory(), None
    thought(call_history, 0.0, True, 1000.0)
    for n in range(12):
        found = observe(call_history, call(), POLICY, 1000.0 + 60.0 * n)
    assert found is not None
    assert found.severity is Severity.NOTICE


def test_a_backoff_is_one_with_other_results_too() -> None:
    moments = every(*[1.0] * 15, 2, 3, 4.5, 6.75)
    assert "waiting" in found_after([(now, call(result=f"{now}")) for now in moments]).numbers


@pytest.mark.parametrize("error", [None, "no rule"])
@pytest.mark.parametrize(("gap", "waits"), [(1.0, False), (29.9, False), (30.0, True)])
def test_calls_among_others_wait_by_the_time_since_the_first_of_them(
    gap: float, waits: bool, error: str | None
) -> None:
    """What was called before, however long ago, is no part of it."""
    policy = replace(SHORT, recent_notice=99, failing_window=7) if error else SHORT
    calls = [(1000.0 * n, failing(n)) for n in range(3)]
    for n in range(3):
        calls.append((3000.0 + gap * n, call(error=error)))
        calls.append((3000.0 + gap * n, failing(10 + n)))
    found = found_after(calls[:-1], policy)
    told = {"repeats": 3, "window": 7 if error else 8, "tool": "grep"}
    assert found.numbers == (told | {"waiting": 1} if waits else told)
    assert found.since == 3000.0


NAMELESS = call(args=NO_ARGS)


def test_neither_arguments_nor_a_result_is_no_evidence_at_all() -> None:
    call_history = CallHistory()
    for now in range(30):
        assert observe(call_history, replace(NAMELESS, result_digest=""), POLICY, float(now)) is None


@pytest.mark.parametrize(
    ("calls", "severity", "conclusive"),
    [
        ([NAMELESS] * 4, Severity.DEGRADED, False),
        ([NAMELESS] * 12, Severity.STUCK, False),
        ([call(args="y"), call(args="z"), *[NAMELESS] * 12], Severity.STUCK, False),
        ([NAMELESS, call(), *[call()] * 11], Severity.STUCK, True),
        ([NAMELESS, call()] * 5, Severity.STUCK, True),
        ([NAMELESS, call("ls", NO_ARGS)] * 5, Severity.STUCK, False),
    ],
)
def test_arguments_nobody_named_are_never_conclusive_alone(
    calls: list[ToolFinished], severity: Severity, conclusive: bool
) -> None:
    found = found_after([(float(now), one) for now, one in enumerate(calls)])
    assert (found.severity, found.conclusive) == (severity, conclusive)


@pytest.mark.parametrize(("polled_after", "conclusive"), [(0.05, False), (0.0, True), (-1.0, True)])
def test_a_loop_with_a_wait_inside_may_be_polling_by_other_means(
    polled_after: float, conclusive: bool
) -> None:
    """One that polled before the loop began is none."""
    call_history, found = CallHistory(), None
    for n in range(13):
        found = observe(call_history, call(), POLICY, 1000.0 + n / 100)
        if n == 5:
            observe(call_history, POLL, POLICY, 1000.0 + polled_after)
    assert found is not None
    assert found.conclusive is conclusive
    assert found.severity is (Severity.STUCK if conclusive else Severity.DEGRADED)


@pytest.mark.parametrize(
    ("lasting", "slept_for", "conclusive"),
    [(99.9, 0.0, False), (100.0, 0.0, True), (149.9, 50.0, False), (150.0, 50.0, True)],
)
def test_such_a_loop_has_the_wait_budget_and_what_we_slept(
    lasting: float, slept_for: float, conclusive: bool
) -> None:
    policy, call_history = (
        replace(POLICY, polling_for=100.0, wait_period_min=1000.0),
        CallHistory(),
    )
    for n in range(12):
        observe(call_history, call(), policy, 1000.0 + 2 * n)
        if n == 5:
            observe(call_history, POLL, policy, 1011.0, slept_for=slept_for)
    found = observe(call_history, call(), policy, 1000.0 + lasting)
    assert found is not None
    assert found.conclusive is conclusive


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(119.0, "119 s"), (120.0, "2 min"), (7199.0, "120 min"), (7200.0, "2.0 h"), (9000.0, "2.5 h")],
)
def test_how_long_it_lasts_in_words(seconds: float, words: str) -> None:
    call_history, found = CallHistory(), None
    for n in range(4):
        found = observe(call_history, call(), POLICY, n * seconds / 3)
    assert found is not None
    assert f", for {words}." in found.text
