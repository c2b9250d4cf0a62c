"""Beats and signals come in. Orders that wait for their agents ride back in the answer. Most beats do not come here: see
`at_once.py`."""

from __future__ import annotations

from typing import Final

from lifesigns.views import Receipt
from lifesigns.web.answers import Answer, answer
from lifesigns.web.calls import SPEAKERS, Asked, Call


async def beats(asked: Asked) -> Answer:
    """One beat, an array of beats, or one a line (NDJSON); JSON or MessagePack. A bad one is rejected, the others count."""
    return answer(asked.service.intake.take_beats(asked.body, asked.visitor), 202)


async def signals(asked: Asked) -> Answer:
    """One signal, an array, or NDJSON. Answered when what they changed is kept: what was accepted is not lost."""
    return answer(await asked.service.intake.take_words(asked.body, asked.visitor), 202)


CALLS: Final = (
    Call("POST", "/api/v1/beats", SPEAKERS, beats, Receipt, body=bytes, status=202),
    Call("POST", "/api/v1/signals", SPEAKERS, signals, Receipt, body=bytes, status=202),
)
