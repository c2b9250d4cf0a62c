"""The breakers of a process are told by its senders: changes at once, all of them at the start and after an outage; and they
are turned when the hub says so."""

import time
import uuid
from collections.abc import Sequence

import pytest

from lifesigns.agent.guard.breakers import BREAKERS, Registry
from lifesigns.agent.guard.guard import Breaker
from lifesigns.agent.sender.breaker_reports import CLOSED_MAX, BreakerReports
from lifesigns.assembly.senders import Sender
from lifesigns.core.effects import TurnBreaker
from lifesigns.core.signals import (
    BreakerAct,
    BreakerNotTurned,
    BreakerReported,
    BreakerState,
    BreakerTurned,
)
from tests.agent.sender.ear import Ear
from tests.agent.sender.http_hub import HttpHub, answer


@pytest.fixture
def name() -> str:
    return f"search-{uuid.uuid4()}"


def _fail(breaker: Breaker) -> None:
    with pytest.raises(OSError, match="down"), breaker:
        raise OSError("down")


def test_a_change_is_told_at_once(ear: Ear, name: str) -> None:
    with Sender("a", ear.url):
        breaker = Breaker(name, failure_threshold=1)
        _fail(breaker)
        ear.until(lambda: _of(ear.of(BreakerReported), name) == [BreakerState.OPEN])
        breaker.reset()
        ear.until(lambda: _of(ear.of(BreakerReported), name) == [BreakerState.OPEN, BreakerState.CLOSED])


def test_an_opening_is_told_with_its_numbers_and_a_forced_one_has_no_end(ear: Ear, name: str) -> None:
    with Sender("a", ear.url):
        breaker = Breaker(name, failure_threshold=2, recovery_timeout=60)
        _fail(breaker)
        _fail(breaker)
        ear.until(lambda: _of(ear.of(BreakerReported), name) == [BreakerState.OPEN])
        breaker.force_open()
        ear.until(lambda: _of(ear.of(BreakerReported), name)[1:] == [BreakerState.FORCED_OPEN])
    opened, forced = [report for report in ear.of(BreakerReported) if report.name == name]
    assert opened.failures == 2
    assert opened.until == pytest.approx(time.time() + 60, abs=5)
    assert forced.until is None


def test_an_open_one_is_told_when_a_sender_starts_and_after_an_outage(hub: HttpHub, name: str) -> None:
    breaker = Breaker(name, failure_threshold=1)
    _fail(breaker)
    with Sender("a", hub.url, retry_after=0.05, interval=0.1) as life:
        hub.until(lambda: len(_of(hub.of(BreakerReported), name)) == 1)
        hub.misbehave = lambda path, body: answer(500) if "beats" in path else None
        with hub.told:
            hub.told.wait_for(lambda: life.stats.failed >= 2, 5)
        hub.misbehave = None
        hub.until(lambda: len(_of(hub.of(BreakerReported), name)) >= 2)
    breaker.reset()


def test_one_that_never_opened_is_told_when_a_sender_starts(ear: Ear, name: str) -> None:
    """Or nobody could open it from the hub."""
    Breaker(name)
    with Sender("a", ear.url):
        ear.until(lambda: _of(ear.of(BreakerReported), name) == [BreakerState.CLOSED])


def test_of_a_thousand_names_a_hub_hears_those_that_refuse_and_some_others(name: str) -> None:
    registry = Registry()
    refusing = [Breaker(f"{name} {n}", registry=registry) for n in range(CLOSED_MAX * 3)][-2:]
    for breaker in refusing:
        breaker.force_open()
    told: list[BreakerReported] = []
    BreakerReports("a", "1", told.append, registry).tell_all()  # type: ignore[arg-type]
    assert [report.name for report in told[:2]] == [breaker.name for breaker in refusing]
    assert len(told) == CLOSED_MAX + 2


# --- turned from the hub -----------------------------------------------------------------------------------


def turn(name: str, act: BreakerAct, order_id: str = "1-1") -> TurnBreaker:
    return TurnBreaker(time.time(), order_id, 1, "a", None, name, act, "ann")


def test_a_breaker_is_turned_as_ordered_and_the_outcome_comes_after_its_report(ear: Ear, name: str) -> None:
    """Who hears that it is done, and looks, must not see what was before."""
    breaker = Breaker(name, failure_threshold=1)
    with Sender("a", ear.url):
        ear.until_word(BreakerReported)
        for n, (act, state) in enumerate(
            [
                (BreakerAct.OPEN, BreakerState.OPEN),
                (BreakerAct.CLOSE, BreakerState.CLOSED),
                (BreakerAct.OPEN, BreakerState.OPEN),
                (BreakerAct.RESET, BreakerState.CLOSED),
            ]
        ):
            ear.order(turn(name, act, f"1-{n}"))
            ear.until(lambda n=n: f"1-{n}" in [done.order_id for done in ear.of(BreakerTurned)])  # type: ignore[misc]
            assert breaker.state is state
            done = max(place for place, word in enumerate(ear.words) if isinstance(word, BreakerTurned))
            assert _of(_reports(ear.words[:done]), name)[-1] is state


def test_an_open_one_that_is_opened_tells_of_its_new_wait(ear: Ear, name: str) -> None:
    now = [0.0]
    breaker = Breaker(name, failure_threshold=1, recovery_timeout=60, clock=lambda: now[0])
    breaker.open()
    with Sender("a", ear.url):
        ear.until(lambda: _of(ear.of(BreakerReported), name) == [BreakerState.OPEN])
        now[0] = 50.0
        ear.order(turn(name, BreakerAct.OPEN))
        ear.until_word(BreakerTurned)
    reports = [report for report in ear.of(BreakerReported) if report.name == name]
    assert [report.state for report in reports] == [BreakerState.OPEN] * 2
    assert reports[1].until == pytest.approx(time.time() + 60, abs=15)
    breaker.reset()


def test_a_breaker_that_is_not_there_is_no_silence(ear: Ear, name: str) -> None:
    with Sender("a", ear.url):
        ear.until(lambda: ear.beats)
        ear.order(turn(name, BreakerAct.RESET))
        refusal = ear.until_word(BreakerNotTurned)
    assert refusal.order_id == "1-1"
    assert name in refusal.reason


def test_an_order_that_comes_twice_turns_it_once(ear: Ear, name: str) -> None:
    breaker = Breaker(name, failure_threshold=1)
    with Sender("a", ear.url):
        ear.until_word(BreakerReported)
        ear.order(turn(name, BreakerAct.OPEN))
        ear.until_word(BreakerTurned)
        breaker.reset()
        ear.order(turn(name, BreakerAct.OPEN))
        ear.order(turn(name, BreakerAct.CLOSE, "1-2"))
        ear.until(lambda: len(ear.of(BreakerTurned)) == 2)
    # Its turn, and its state after the order.
    assert _of(ear.of(BreakerReported), name).count(BreakerState.OPEN) == 2
    assert breaker.state is BreakerState.CLOSED


def test_nobody_listens_after_the_end(ear: Ear) -> None:
    before = len(BREAKERS._listeners)
    with Sender("a", ear.url):
        assert len(BREAKERS._listeners) == before + 1
    assert len(BREAKERS._listeners) == before


def _of(reports: list[BreakerReported], name: str) -> list[BreakerState]:
    return [report.state for report in reports if report.name == name]


def _reports(words: Sequence[object]) -> list[BreakerReported]:
    return [word for word in words if isinstance(word, BreakerReported)]
