"""Beats and signals come in, orders go out. The answer to a beat carries the orders that wait for its agent; most beats take
the fast path, `beat_fast_path.py`.

A long poll is answered the moment there is an order. It ends when its client hangs up: the answer is a stream of one
piece, and streams end with their listener.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from lifesigns.hub.deliveries import KeyReused
from lifesigns.hub.http_receiver import IngestResult
from lifesigns.views import Orders, OrdersByAgent, Receipt
from lifesigns.web.answers import JSON, Answer, Problem, Stream, answer
from lifesigns.web.forwarded import PART, WHOLE
from lifesigns.web.ids import AgentId
from lifesigns.web.routes import SPEAKERS, Request, Route
from lifesigns.web.speaking_rights import check_may_speak, is_still_valid
from lifesigns.wire import Rejected

WAIT_MAX: Final = 60.0
EXCLUDED_MAX: Final = 50
AGENTS_MAX: Final = 500
"""Their ids have to fit into the request line."""


OrderId = Annotated[str, Meta(max_length=128)]


class OrdersQuery(msgspec.Struct):
    """How long to wait for an order if there is none."""

    wait: Annotated[float, Meta(ge=0, le=WAIT_MAX, description="Seconds; 0 answers at once.")] = 0.0
    exclude: Annotated[tuple[OrderId, ...], Meta(max_length=EXCLUDED_MAX)] = ()
    """Orders that the client knows and that are not for it: a supervisor and the agent in it fetch from the same
    mailbox."""


class AgentOrdersQuery(OrdersQuery):
    """For which agents, and how long."""

    agent: Annotated[tuple[AgentId, ...], Meta(min_length=1, max_length=AGENTS_MAX)] = ()


Waiting = Mapping[str, Sequence[msgspec.Raw]]


# --- what comes in ------------------------------------------------------------------------------------


async def beats(request: Request) -> Answer:
    """One beat, an array of beats, or one a line (NDJSON); JSON or MessagePack. A bad one is rejected, the others count;
    400 if there are no others."""
    receiver = request.service.http_receiver
    reception = await receiver.take_beats(request.body, request.principal, shared=_is_shared(request))
    return _receipt(request, reception)


async def signals(request: Request) -> Answer:
    """One signal, an array, or NDJSON. Answered when what they changed is stored: an accepted signal is not lost. A delivery
    that comes again with its `Idempotency-Key` is answered, and not taken twice."""
    who, rates = request.principal, request.site.rates
    try:
        reception = await request.service.http_receiver.take_reports(
            request.body,
            who,
            request.idempotency_key,
            lambda events: rates.events.charge(who.token_id, request.now, events),
            shared=_is_shared(request),
        )
    except KeyReused:
        detail = "this Idempotency-Key was used for another delivery; take a new key for each"
        raise Problem(422, detail, field="Idempotency-Key") from None
    return _receipt(request, reception)


def _receipt(request: Request, reception: IngestResult) -> Answer:
    """The outcome of a delivery. If nothing in it counts, that is an error: a script that checks the status alone must
    not take it for a success."""
    signals = reception.accepted + len(reception.rejected)
    request.site.rates.signals.charge(request.principal.token_id, request.now, signals)
    if request.service.hub.slot is None or request.header(PART) is None:
        check_accepted(reception.accepted, reception.rejected)
    return answer(reception, 202)


def _is_shared(request: Request) -> bool:
    """Whether hubs of other slots get the same delivery."""
    return request.service.hub.slot is not None and request.header(PART) == WHOLE


def check_accepted(accepted: int, rejected: Sequence[Rejected]) -> None:
    """Raises `Problem` if something was rejected and nothing accepted."""
    if rejected and not accepted:
        first, more = rejected[0], len(rejected) - 1
        others = f"; so are {more} more: nothing was accepted" if more else ""
        raise Problem(400, f"{first.detail}{others}", field=first.field or None)


# --- what goes out ------------------------------------------------------------------------------------


async def orders_of_agent(request: Request) -> Answer | Stream:
    """The orders waiting for an agent: pings, nudges, stop. With `wait`, the answer comes with the next order, or empty
    after so many seconds. The hub offers an order until it is acknowledged or its outcome is known."""
    agent_id = request.path["agent_id"]

    def shown(waiting: Waiting) -> Any:
        return {"orders": waiting.get(agent_id, ())}

    return await _answered(request, [agent_id], shown)


async def orders_of_agents(request: Request) -> Answer | Stream:
    """The orders waiting for several agents of one process: one request for all of them, answered when one of them gets
    an order."""
    if not request.query.agent:
        raise Problem(400, "is missing: name at least one agent", field="agent")

    def shown(waiting: Waiting) -> Any:
        return {"orders": waiting}

    return await _answered(request, request.query.agent, shown)


async def acknowledge(request: Request) -> Answer:
    """The agent's side has this order: the hub does not offer it again."""
    agent_id, order_id = request.path["agent_id"], request.path["order_id"]
    check_may_speak(request, agent_id)
    if not await request.service.http_receiver.acknowledge(agent_id, order_id):
        raise Problem(404, f"no order {order_id!r} waits for {agent_id!r}")
    return Answer(status=204)


async def _answered(
    request: Request, agent_ids: Sequence[str], shown: Callable[[Waiting], Any]
) -> Answer | Stream:
    check_may_speak(request, *agent_ids)
    waiting = request.service.http_receiver.orders_for(agent_ids, request.query.exclude)
    if waiting or not request.query.wait:
        return answer(shown(waiting))
    return Stream(_later(request, agent_ids, shown), JSON)


async def _later(
    request: Request, agent_ids: Sequence[str], shown: Callable[[Waiting], Any]
) -> AsyncGenerator[bytes, None]:
    may_hear = is_still_valid(request)
    waiting = await request.service.http_receiver.wait_for_orders(
        agent_ids, request.query.wait, request.query.exclude
    )
    yield msgspec.json.encode(shown(waiting if may_hear() else {}))


_UNREAD: Final = {400: "it cannot be read, or nothing in it was accepted"}
_REPEATED: Final = _UNREAD | {422: "this `Idempotency-Key` was used for another delivery"}

CALLS: Final = (
    Route("POST", "/api/v1/beats", SPEAKERS, beats, Receipt, body=bytes, status=202, also=_UNREAD),
    Route("POST", "/api/v1/signals", SPEAKERS, signals, Receipt, body=bytes, status=202, also=_REPEATED),
    Route("GET", "/api/v1/agents/{agent_id}/orders", SPEAKERS, orders_of_agent, Orders, query=OrdersQuery),
    Route("GET", "/api/v1/orders", SPEAKERS, orders_of_agents, OrdersByAgent, query=AgentOrdersQuery),
    Route(
        "POST",
        "/api/v1/agents/{agent_id}/orders/{order_id}/ack",
        SPEAKERS,
        acknowledge,
        status=204,
        also={404: "no such order waits: it was acknowledged before, is settled, or was never given"},
    ),
)
