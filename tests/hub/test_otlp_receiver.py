"""What exporters send counts once and in its own order, however it comes; and only from who may say it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.core.agent import Agent
from lifesigns.core.effects import Kind as Found
from lifesigns.core.effects import Severity
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.signals import AgentLeft, BeatReceived
from lifesigns.hub import otlp_receiver
from lifesigns.hub.http_receiver import InboxFull
from lifesigns.hub.otlp_receiver import OtlpResult
from lifesigns.hub.principals import Patterns, Principal, Role
from lifesigns.hub.service import Service
from lifesigns.wire.otlp import Form, Kind
from tests.wire import otlp_requests as r

W = 5.0
ADMIN = Principal("t-admin", "admin", Role.ADMIN)
CODER = Principal("t-coder", "coder", Role.AGENT, Patterns.of("coder-*"))


class Exporter:
    """Sends spans to a hub whose clock moves when it is told to."""

    def __init__(self) -> None:
        self.now = r.EPOCH + 60.0
        self.service = Service(
            MemoryStore(), fleet=FleetPolicy(canary_every=0), clock=lambda: self.now, reorder_for=W
        )

    async def send(
        self, *spans: dict[str, Any], who: Principal = ADMIN, at: float | None = None, **resource: str
    ) -> OtlpResult:
        self.now = self.now if at is None else at
        self.service.otlp_receiver.hear_due()
        raw = r.traces(spans, {"service.name": "coder-7"} | resource).SerializeToString()
        return await self.service.otlp_receiver.take(raw, Form.PROTOBUF, Kind.TRACES, who)

    async def heard(self) -> None:
        """Everything that was sent has been heard."""
        self.now += W
        self.service.otlp_receiver.hear_due()
        while self.service.hub.inbox.waiting:  # noqa: ASYNC110 -- the hub's own turns
            await asyncio.sleep(0)

    def agent(self, agent_id: str = "coder-7") -> Agent:
        found = self.service.engine.agent(agent_id)
        assert found is not None
        return found


@asynccontextmanager
async def exporting() -> AsyncIterator[Exporter]:
    exporter = Exporter()
    await exporter.service.start()
    try:
        yield exporter
    finally:
        await exporter.service.stop()


def loop_of(count: int, **more: Any) -> list[dict[str, Any]]:
    """The same failing call, again and again."""
    return [r.tool(n + 1, at=r.EPOCH + n * 0.5, error="no such file", **more) for n in range(count)]


async def test_the_same_failing_call_eight_times_is_a_loop() -> None:
    async with exporting() as exporter:
        await exporter.send(*loop_of(7))
        await exporter.heard()
        seven = exporter.agent().finding(Found.LOOPING)
        await exporter.send(*loop_of(8)[7:])
        await exporter.heard()
        eight = exporter.agent().finding(Found.LOOPING)
        assert seven is not None
        assert eight is not None
        assert (seven.conclusive, eight.conclusive, eight.severity) == (False, True, Severity.STUCK)


async def test_a_healthy_run_of_twenty_calls_has_no_finding_and_its_tokens_are_counted() -> None:
    async with exporting() as exporter:
        for n in range(20):
            chat = {
                "gen_ai.operation.name": "chat",
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 5,
            }
            other = {
                "gen_ai.tool.call.arguments": f'{{"path": "/{n}"}}',
                "gen_ai.tool.call.result": f"file {n} is fine",
            }
            at = r.EPOCH + 2 * n
            await exporter.send(
                r.span(chat, number=100 + n, at=at), r.tool(n + 1, at=at + 1, attributes=other)
            )
        await exporter.heard()
        agent = exporter.agent()
        assert (agent.health, agent.findings) == (Health.HEALTHY, ())
        assert agent.spending is not None
        assert agent.work is not None
        assert (agent.spending.tokens, agent.work.tool_calls) == (2100, 20)


async def test_a_batch_that_comes_twice_counts_once() -> None:
    """An exporter that got no answer sends again; also after the first was heard."""
    async with exporting() as exporter:
        for _ in range(3):
            result = await exporter.send(*loop_of(3))
            assert (result.taken, result.rejected) == (3, 0)
            await exporter.heard()
        work = exporter.agent().work
        assert work is not None
        assert work.tool_calls == 3


async def test_what_is_remembered_of_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_receiver, "REMEMBERED_MIN", 10)
    async with exporting() as exporter:
        await exporter.send(*loop_of(55))
        told = exporter.service.otlp_receiver._told
        assert len(told) == 15
        assert [f"coder-7 {n:016x}" in told for n in (40, 41, 55)] == [False, True, True]


async def test_more_than_fits_is_turned_away_and_nothing_of_it_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp_receiver, "WAITING_MAX", 10)
    async with exporting() as exporter:
        await exporter.send(*loop_of(10))
        with pytest.raises(InboxFull):
            await exporter.send(*loop_of(11)[10:])
        await exporter.heard()
        await exporter.send(*loop_of(11)[10:])
        assert exporter.service.otlp_receiver.waiting == 1


async def test_one_token_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_receiver, "WAITING_MAX", 10)
    other = Principal("t-other", "other", Role.AGENT, Patterns.of("other-*"))
    async with exporting() as exporter:
        await exporter.send(*loop_of(5), who=CODER)
        with pytest.raises(InboxFull):
            await exporter.send(*loop_of(6)[5:], who=CODER)
        await exporter.send(*loop_of(5, agent="other-1"), who=other)
        await exporter.heard()
        await exporter.send(*loop_of(6)[5:], who=CODER)


async def test_more_than_is_heard_in_one_turn_is_heard_in_several_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp_receiver, "TURN", 3)
    async with exporting() as exporter:
        await exporter.send(*loop_of(8), *loop_of(7, agent="coder-8"))
        await exporter.heard()
        while exporter.service.otlp_receiver.waiting:  # noqa: ASYNC110 -- its own turns
            await asyncio.sleep(0)
        await exporter.heard()
        for agent_id, count in (("coder-7", 8), ("coder-8", 7)):
            work = exporter.agent(agent_id).work
            assert work is not None
            assert work.tool_calls == count
        assert exporter.agent().finding(Found.LOOPING) is not None


async def test_a_hub_that_stops_hears_what_waits() -> None:
    async with exporting() as exporter:
        await exporter.send(*loop_of(3))
        assert exporter.service.engine.agent("coder-7") is None
    assert exporter.agent().finding(Found.LOOPING) is not None


# --- order --------------------------------------------------------------------------------------------

TOOLS = ("look", "write", "check_status")
calls = st.lists(
    st.tuples(st.sampled_from(TOOLS), st.integers(0, 2), st.booleans(), st.floats(0.1, 90.0)),
    min_size=1,
    max_size=40,
)


def spans_of(many: Sequence[tuple[str, int, bool, float]]) -> list[dict[str, Any]]:
    """Tool calls with model calls between them, one after the other."""
    made, at = [], float(r.EPOCH)
    for n, (tool, args, ok, gap) in enumerate(many):
        at += gap
        chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 10 + n}
        made.append(r.span(chat, number=1000 + n, at=at - 0.05, took=min(gap / 2, 5)))
        said = {"gen_ai.tool.name": tool, "gen_ai.tool.call.arguments": f'{{"n": {args}}}'}
        made.append(r.tool(n + 1, at=at, attributes=said, error=None if ok else "no"))
    return made


def belief(agent: Agent) -> tuple[Any, ...]:
    """What is believed of an agent's work, without when we came to believe it."""
    loop = agent.finding(Found.LOOPING)
    found = (
        None if loop is None else (loop.severity, loop.conclusive, loop.text, loop.since, dict(loop.numbers))
    )
    outcomes, spent, work = agent.outcomes, agent.spending, agent.work
    assert spent is not None
    assert work is not None
    assert outcomes is not None
    return (
        agent.call_history,
        (outcomes.bits, outcomes.consecutive, outcomes.heard),
        (spent.tokens, spent.hour_tokens, spent.minute_tokens, spent.mean, spent.drift),
        (work.tool_calls, work.last_tool, work.repeats),
        found,
    )


async def believed(batches: Sequence[tuple[float, Sequence[dict[str, Any]]]]) -> tuple[Any, ...]:
    """After batches that came at these moments."""
    async with exporting() as exporter:
        begin = exporter.now + 3600.0
        for at, spans in sorted(batches, key=lambda batch: batch[0]):
            await exporter.send(*spans, at=begin + at)
        await exporter.heard()
        return belief(exporter.agent())


@settings(max_examples=60, deadline=None)
@given(
    calls,
    st.lists(st.floats(0.0, W - 0.01), min_size=80, max_size=80),
    st.integers(1, 7),
    st.floats(0.0, 30.0),
)
@example([("look", 0, False, 1.0)] * 12, [4.0, 0.0, 3.0, 1.0] * 20, 2, 1.0)
def test_batches_that_come_late_and_shuffled_lead_to_the_same_beliefs(
    many: list[tuple[str, int, bool, float]], late: list[float], size: int, every: float
) -> None:
    """Each batch is late by less than the time in which they are put in order; some overtake others, some come twice."""
    spans = spans_of(many)
    batches = [spans[n : n + size] for n in range(0, len(spans), size)]
    orderly = [(n * every, batch) for n, batch in enumerate(batches)]
    shuffled = [(n * every + late[n], batch[::-1]) for n, batch in enumerate(batches)]
    again = [(at + 0.005, batch) for at, batch in shuffled[::3]]
    assert asyncio.run(believed(shuffled + again)) == asyncio.run(believed(orderly))


async def test_what_comes_too_late_to_be_put_in_order_is_no_evidence() -> None:
    """Writes between the looks came by another way: had they been heard in time there would be no row of looks."""
    async with exporting() as exporter:
        await exporter.send(*[r.tool(n, at=r.EPOCH + n) for n in (1, 3, 5)])
        await exporter.heard()
        await exporter.send(*[r.tool(n, at=r.EPOCH + n) for n in (2, 4)])
        await exporter.heard()
        await exporter.send(*[r.tool(n, at=r.EPOCH + n) for n in (6, 7, 8)])
        await exporter.heard()
        assert exporter.agent().finding(Found.LOOPING) is None
        work = exporter.agent().work
        assert work is not None
        assert work.tool_calls == 8


async def test_an_agent_whose_clock_is_ahead_is_judged_by_its_own_differences() -> None:
    async with exporting() as exporter:
        await exporter.send(*[r.tool(n, at=r.EPOCH + 3600 + 60 * n) for n in range(1, 13)])
        await exporter.heard()
        history = exporter.agent().call_history
        assert history is not None
        assert [round(b - a) for a, b in zip(history.times, history.times[1:], strict=False)] == [60] * 11
        assert history.times[-1] <= exporter.now


# --- whose --------------------------------------------------------------------------------------------


async def test_a_token_speaks_for_its_own_ids_only() -> None:
    async with exporting() as exporter:
        mixed = (r.tool(1), r.tool(2, agent="other-1"), r.tool(3, agent="other-1"))
        result = await exporter.send(*mixed, who=CODER)
        assert (result.taken, result.rejected, result.forbidden) == (1, 2, 2)
        assert result.reason == "is 'other-1', for which 'coder' may not speak"
        await exporter.heard()
        assert exporter.service.engine.agent("other-1") is None


async def test_who_may_not_speak_for_an_agent_cannot_hide_its_calls_either() -> None:
    """A refused record is not remembered as told."""
    async with exporting() as exporter:
        refused = await exporter.send(r.tool(1, agent="other-1"), who=CODER)
        assert refused.taken == 0
        await exporter.send(r.tool(1, agent="other-1"))
        await exporter.heard()
        work = exporter.agent("other-1").work
        assert work is not None
        assert work.tool_calls == 1


async def test_a_record_from_an_archive_or_out_of_time_is_rejected() -> None:
    async with exporting() as exporter:
        result = await exporter.send(r.tool(1, at=r.EPOCH - 90_000), r.tool(2, at=r.EPOCH + 90_000))
        assert (result.taken, result.rejected) == (0, 2)


async def test_role_and_task_are_told_and_may_change() -> None:
    async with exporting() as exporter:
        first = {"lifesigns.task.id": "t-1", "lifesigns.role": "background"}
        await exporter.send(r.tool(1, attributes=first))
        await exporter.heard()
        assert (exporter.agent().task_id, exporter.agent().role) == ("t-1", "background")
        await exporter.send(r.tool(2, at=r.EPOCH + 1, attributes={"lifesigns.task.id": "t-2"}))
        await exporter.heard()
        assert (exporter.agent().task_id, exporter.agent().role) == ("t-2", "background")


# --- life ---------------------------------------------------------------------------------------------


async def test_a_late_batch_is_nobodys_silence() -> None:
    async with exporting() as exporter:
        await exporter.send(r.tool(1))
        await exporter.heard()
        for _ in range(100):
            exporter.now += 600
            exporter.service.hub.run_due()
        agent = exporter.agent()
        assert (agent.health, agent.findings, agent.suspicion) == (Health.HEALTHY, (), None)


async def test_spans_do_not_bring_back_an_agent_that_beats_and_has_ended() -> None:
    """The last spans of a process arrive after its good-bye."""
    async with exporting() as exporter:
        hub = exporter.service.hub
        hub.hear([BeatReceived("coder-7"), AgentLeft(agent_id="coder-7")])
        await asyncio.sleep(0)
        exporter.now += 600
        await exporter.send(*loop_of(8))
        await exporter.heard()
        assert exporter.agent().health is Health.TERMINATED


async def test_spans_are_no_sign_of_life_of_an_agent_that_beats() -> None:
    """A collector may deliver them minutes after its death."""
    async with exporting() as exporter:
        hub = exporter.service.hub
        hub.hear([BeatReceived("coder-7")])
        await asyncio.sleep(0)
        heard_at = exporter.agent().heard_at
        await exporter.send(r.tool(1))
        await exporter.heard()
        assert exporter.agent().heard_at == heard_at
        assert exporter.agent().work is not None


async def test_two_instrumentations_of_one_call_count_once() -> None:
    """A framework's span of a model call is the parent of that of its client; both carry the tokens."""
    async with exporting() as exporter:
        chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 100}
        llm = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 100}
        await exporter.send(
            r.span(llm, number=1, at=r.EPOCH + 2), r.span(chat, number=2, parent=1, at=r.EPOCH + 1)
        )
        await exporter.heard()
        spent = exporter.agent().spending
        assert spent is not None
        assert spent.tokens == 100


async def test_what_an_exporter_sent_is_paid_by_its_own_token_also_when_it_is_heard_later() -> None:
    async with exporting() as exporter:
        shares = exporter.service.hub.shares
        shares.share = 1e-6  # Any work at all is more than that.
        await exporter.send(*loop_of(3), who=CODER)
        await exporter.heard()
        assert shares.owes(CODER.token_id) > 0
        assert shares.owes(ADMIN.token_id) == 0
