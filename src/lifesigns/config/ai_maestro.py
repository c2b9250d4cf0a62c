"""`ai_maestro:` the AI Maestro whose agents the hub pings, and how long they may take to answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Struct

from lifesigns.config import readers
from lifesigns.config.schema import Schema, Section, entry


def address(value: object) -> str:
    """AI Maestro's address."""
    return readers.url(value).rstrip("/")


every = readers.within(readers.seconds, lambda s: 0.1 <= s <= 300, "from 100 ms to 5 min")
wait = readers.within(readers.seconds, lambda s: 1 <= s <= 3600, "from a second to an hour")


class AiMaestroSettings(Struct, frozen=True):
    """Where AI Maestro is. Without an address nobody is pinged."""

    url: Annotated[str | None, address] = None
    name: Annotated[str, readers.text] = "ecos-chief-of-staff"
    """The hub's name there: an agent of this name has to be registered, or no answer finds its way."""
    agents: Annotated[tuple[str, ...], readers.words] = ("*",)
    """Who is watched: names, or patterns of names. Those with a session are found; a plain name is expected."""
    role: Annotated[str, readers.text] = "active-development"
    """Of agents that `agents:` gives no role."""
    look_every: Annotated[float, every] = 5.0
    """How often its inbox and sessions are read."""
    inquiry_wait: Annotated[float, wait] = 300.0
    """How long a silent agent may take to answer a status inquiry."""
    timeout: Annotated[float, wait] = 10.0
    """Of one request."""


def _check(section: Section, made: AiMaestroSettings, given: Mapping[str, object]) -> None:
    if made.url is None:
        section.add_error("url", "is missing; it says where AI Maestro is, such as http://127.0.0.1:23000")
    if made.inquiry_wait <= made.look_every:
        section.add_error("inquiry_wait", "is not longer than look_every: no answer would be read in time")


SECTIONS: Final[Schema] = {"ai_maestro": entry(AiMaestroSettings, _check)}
