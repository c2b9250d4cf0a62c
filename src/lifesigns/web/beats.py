"""Beats and signals come in; the answer carries the orders that wait for their agents. Most beats take the fast path,
`beat_fast_path.py`.
"""

from __future__ import annotations

from typing import Final

from lifesigns.hub.deliveries import KeyReused
from lifesigns.hub.http_receiver import IngestResult
from lifesigns.views import Receipt
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import SPEAKERS, Request, Route


async def beats(request: Request) -> Answer:
    """One beat, an array of beats, or one a line (NDJSON); JSON or MessagePack. A bad one is rejected, the others count;
    400 if there are no others."""
    return _receipt(request, await request.service.http_receiver.take_beats(request.body, request.principal))


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
    if reception.rejected and not reception.accepted:
        first, more = reception.rejected[0], len(reception.rejected) - 1
        others = f"; so are {more} more: nothing was accepted" if more else ""
        raise Problem(400, f"{first.detail}{others}", field=first.field or None)
    return answer(reception, 202)


_UNREAD: Final = {400: "it cannot be read, or nothing in it was accepted"}
_REPEATED: Final = _UNREAD | {422: "this `Idempotency-Key` was used for another delivery"}

CALLS: Final = (
    Route("POST", "/api/v1/beats", SPEAKERS, beats, Receipt, body=bytes, status=202, also=_UNREAD),
    Route("POST", "/api/v1/signals", SPEAKERS, signals, Receipt, body=bytes, status=202, also=_REPEATED),
)
