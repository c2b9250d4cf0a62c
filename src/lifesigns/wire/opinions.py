"""Second opinions between hubs, as JSON: many questions in one request, the answers by agent."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from lifesigns.core.signals import Opinion
from lifesigns.errors import WireError

QUESTIONS_MAX: Final = 500
"""In one request."""
BODY_MAX: Final = 256 * 1024

Text = Annotated[str, Meta(max_length=256)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]


class Question(Struct, frozen=True):
    """Whether an agent is heard that is silent where the asking hub listens."""

    agent_id: Text
    incarnation: Text | None
    order_id: Text
    epoch: int
    """For a ping of the hub that is asked: an agent refuses one of a hub before."""
    silent_for: Seconds


class Inquiry(Struct, frozen=True):
    """Questions, and how long the hub that is asked may listen before it answers."""

    questions: Annotated[tuple[Question, ...], Meta(max_length=QUESTIONS_MAX)]
    listen_for: Seconds


class Opinions(Struct, frozen=True):
    """The answers, by agent."""

    opinions: dict[str, Opinion]


_inquiry: Final = msgspec.json.Decoder(Inquiry).decode
_opinions: Final = msgspec.json.Decoder(Opinions).decode
encode: Final = msgspec.json.Encoder().encode


def decode_inquiry(raw: bytes) -> Inquiry:
    """An inquiry; raises `WireError` if it is none."""
    try:
        return _inquiry(raw)
    except msgspec.MsgspecError as error:
        raise WireError("inquiry", str(error)) from None


def decode_opinions(raw: bytes) -> Opinions:
    """The answers; raises `WireError` if they are none."""
    try:
        return _opinions(raw)
    except msgspec.MsgspecError as error:
        raise WireError("opinions", str(error)) from None
