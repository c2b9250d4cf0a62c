"""Beats and signals come in. Orders that wait for their agents ride back in the answer."""

from __future__ import annotations

from typing import Final

from lifesigns.assembly.hub import TAKEN
from lifesigns.views import Receipt
from lifesigns.web.answers import Answer, always, answer
from lifesigns.web.calls import SPEAKERS, Asked, Call

_ONE: Final = always(b'{"accepted":1,"rejected":[],"orders":{}}', 202)
"""What nearly every single beat is answered."""


async def beats(asked: Asked) -> Answer:
    """One beat, an array of beats, or one a line (NDJSON); JSON or MessagePack. A bad one is rejected, the others count."""
    reception = asked.service.take_beats(asked.body, asked.visitor)
    return _ONE if reception is TAKEN else answer(reception, 202)


async def signals(asked: Asked) -> Answer:
    """One signal, an array, or NDJSON. Answered when what they changed is kept: what was accepted is not lost."""
    return answer(await asked.service.take_words(asked.body, asked.visitor), 202)


CALLS: Final = (
    Call("POST", "/api/v1/beats", SPEAKERS, beats, Receipt, body=bytes, status=202),
    Call("POST", "/api/v1/signals", SPEAKERS, signals, Receipt, body=bytes, status=202),
)
