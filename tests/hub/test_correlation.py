"""What the hub logs while it hears a request carries the id of that request; what it does for all carries none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import copy_context

import pytest

from lifesigns.core.effects import SendPing
from lifesigns.core.signals import BeatReceived, ProgressMade
from lifesigns.hub.order_ledger import OpenOrder
from lifesigns.ports.correlation import correlation_id
from tests.hub.ground import Ground


def beat(agent_id: str, seq: int = 1) -> BeatReceived:
    return BeatReceived(agent_id, seq, "one")


def within(request: str, does: Callable[[], object]) -> None:
    """Do it as a request does."""

    def run() -> None:
        correlation_id.set(request)
        does()

    copy_context().run(run)


class Listening(logging.Handler):
    """Each line with the id that the log writes beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.lines[record.getMessage()] = correlation_id.get()


class PingGround(Ground):
    """Notes in whose name its orders are handed out."""

    def __init__(self) -> None:
        super().__init__()
        self.pinged_for: list[str] = []

    def carry_out(self, entry: OpenOrder) -> None:
        super().carry_out(entry)
        if isinstance(entry.order, SendPing):
            self.pinged_for.append(correlation_id.get())


@pytest.fixture
def listening() -> Listening:
    return Listening()


async def test_of_several_requests_that_are_heard_in_one_turn_each_has_its_own_lines(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: object) -> None:
        raise ZeroDivisionError("our bug")

    logger = logging.getLogger("lifesigns.hub")
    logger.addHandler(listening)
    try:
        async with Ground() as ground:
            ground.hub.hear([beat("a"), beat("b")])
            await ground.until(lambda: not ground.hub.inbox.waiting)
            monkeypatch.setattr(ground.hub.engine._admission, "address", raises)
            for request, name in (("request-1", "a"), ("request-2", "b")):
                within(request, lambda name=name: ground.hub.hear([ProgressMade(agent_id=name)]))  # type: ignore[misc]
            await ground.until(lambda: len(listening.lines) == 2)
            assert correlation_id.get() == ""
    finally:
        logger.removeHandler(listening)
    assert {line[0]: request for line, request in listening.lines.items()} == {
        "a": "request-1",
        "b": "request-2",
    }


async def test_what_falls_due_in_a_turn_that_a_request_asked_for_is_not_the_requests() -> None:
    async with PingGround() as ground:
        ground.hub.hear([beat("a"), beat("b")])
        await ground.until(lambda: not ground.hub.inbox.waiting)
        ground.now += 3.0
        within("request-1", lambda: ground.hub.hear([beat("b", 2)]))
        await ground.until(lambda: not ground.hub.inbox.waiting)
        while not ground.pinged_for:
            ground.now += 0.5
            within("request-2", ground.hub.ask_turn)
            await ground.until(lambda: ground.hub._turn is None)
        assert set(ground.pinged_for) == {""}
