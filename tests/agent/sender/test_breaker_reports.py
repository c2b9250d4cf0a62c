"""The breakers of a process are told by its senders: changes at once, what is not closed again after an outage."""

import time
import uuid

import pytest

from lifesigns.agent.guard.breakers import BREAKERS
from lifesigns.agent.guard.guard import Breaker
from lifesigns.assembly.senders import Sender
from lifesigns.core.signals import BreakerReported, BreakerState
from tests.agent.sender.ear import Ear
from tests.agent.sender.http_hub import HttpHub, answer


@pytest.fixture
def name() -> str:
    return f"search-{uuid.uuid4()}"


def _fail(breaker: Breaker) -> None:
    with pytest.raises(OSError, match="down"), breaker:
        raise OSError("down")


def test_a_change_is_told_at_once(ear: Ear, name: str) -> None:
    breaker = Breaker(name, failure_threshold=1)
    with Sender("a", ear.url):
        _fail(breaker)
        ear.until(lambda: _of(ear.of(BreakerReported), name) == [BreakerState.OPEN])
        breaker.reset()
        ear.until(lambda: _of(ear.of(BreakerReported), name) == [BreakerState.OPEN, BreakerState.CLOSED])


def test_an_opening_is_told_with_its_numbers_and_a_forced_one_has_no_end(ear: Ear, name: str) -> None:
    breaker = Breaker(name, failure_threshold=2, recovery_timeout=60)
    with Sender("a", ear.url):
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


def test_nobody_listens_after_the_end(ear: Ear) -> None:
    before = len(BREAKERS._listeners)
    with Sender("a", ear.url):
        assert len(BREAKERS._listeners) == before + 1
    assert len(BREAKERS._listeners) == before


def _of(reports: list[BreakerReported], name: str) -> list[BreakerState]:
    return [report.state for report in reports if report.name == name]
