"""Deliveries of beats and reports with agents of several slots: each hub gets its own part, and the sender one receipt.

A slot may be away while another hub takes it over. Nothing may be lost or counted twice for it:

    beats                       the other slots hear theirs; 503, and all come again: a beat that comes twice is one beat
    reports with a key          the same: who has taken its part knows the `Idempotency-Key`, and only acknowledges
    reports without a key       503 before anybody has taken one. If a hub goes away in the midst of it, those for it are
                                `rejected`, which says to send them again, and all others count
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from lifesigns.web.access import headers_of, token_shown
from lifesigns.web.answers import Answer, answer
from lifesigns.web.app import Web
from lifesigns.web.beats_and_orders import check_accepted
from lifesigns.web.forwarded import ANY_SLOT, PART, WHOLE, is_forwarded
from lifesigns.web.slot_calls import Scope, SlotAnswer, as_is, ask, nobody_judges
from lifesigns.web.slot_parts import Part, Parts, parts_of
from lifesigns.web.standby import StandbySite
from lifesigns.wire import Rejected

BEATS: Final = "/api/v1/beats"
KEY: Final = b"idempotency-key"
ACCEPTED: Final = 202
TOO_MUCH: Final = 429
UNAVAILABLE: Final = 503

Sites = Sequence[Web | StandbySite | None]


class _Share(NamedTuple):
    """What one hub gets of a delivery: of a slot, or of several slots that it judges."""

    slots: Sequence[int]
    part: Part
    takes_its_own: bool = False
    """It gets the whole; `part` has the places of what is its own."""
    is_unread: bool = False
    """Nothing in it can count."""

    def place_of(self, index: int) -> int:
        """The place of one of its messages in the whole delivery."""
        return index if self.takes_its_own else self.part.place_of(index)


async def deliver(sites: Sites, scope: Scope, body: bytes, here: int) -> Answer:
    """Have each hub take its part. `here` is the slot whose hub says what is wrong with the rest."""
    parts = parts_of(body)
    together = [] if parts.is_signed else _judged_elsewhere_together(sites, scope, parts)
    if len(parts.by_slot) + bool(parts.unread.raws) < 2:
        (slot,) = parts.by_slot or (here,)
        return as_is(await ask(sites[slot], slot, scope, body))
    once = scope["path"] != BEATS and KEY not in headers_of(scope)
    if once and (away := [slot for slot in parts.by_slot if _is_away(sites[slot])]):
        raise nobody_judges(away, "none of this was taken")
    shares = _shares(parts, body, together, here)
    answers = await asyncio.gather(*(_ask(sites, scope, share) for share in shares))
    if failed := [one for one in answers if one.status != ACCEPTED]:
        taken = sum(one.json()["accepted"] for one in answers if one.status == ACCEPTED)
        if not once or not taken:
            return as_is(min(failed, key=lambda one: not _may_pass(one)))
    receipt = _receipt(shares, answers)
    if PART not in headers_of(scope):
        check_accepted(receipt["accepted"], [Rejected(**one) for one in receipt["rejected"]])
    return answer(receipt, ACCEPTED)


def _judged_elsewhere_together(sites: Sites, scope: Scope, parts: Parts) -> list[list[int]]:
    """The slots of a delivery that one other hub judges, which gets them in one call. A session is this hub's own: only the
    hub of a slot is told whose it is."""
    if token_shown(scope, headers_of(scope)) is None or is_forwarded(scope):
        return []
    by_hub: dict[str, list[int]] = {}
    for slot in parts.by_slot:
        site = sites[slot]
        if isinstance(site, StandbySite) and (judge := site.judge) is not None:
            by_hub.setdefault(judge, []).append(slot)
    return [slots for slots in by_hub.values() if len(slots) > 1]


def _shares(parts: Parts, body: bytes, together: Sequence[Sequence[int]], here: int) -> list[_Share]:
    if parts.is_signed:
        return [
            _Share([slot], Part(body, own.places), takes_its_own=True) for slot, own in parts.by_slot.items()
        ]
    bundled = {slot for slots in together for slot in slots}
    groups = [*together, *([slot] for slot in parts.by_slot if slot not in bundled)]
    shares = [_Share(slots, parts.part_for(slots)) for slots in groups]
    if parts.unread.raws:
        shares.append(_Share([here], parts.unread_part(), is_unread=True))
    return shares


async def _ask(sites: Sites, scope: Scope, share: _Share) -> SlotAnswer:
    first = share.slots[0]
    inner = scope if len(share.slots) == 1 else {**scope, ANY_SLOT: True}
    if share.is_unread:  # The same hub may get a part with this key.
        inner = {**inner, "headers": [header for header in scope["headers"] if header[0] != KEY]}
    said = WHOLE if share.takes_its_own else "1"
    return await ask(sites[first], first, inner, share.part.body, **{PART.decode(): said})


def _is_away(site: Web | StandbySite | None) -> bool:
    return site is None or (isinstance(site, StandbySite) and bool(site.why_away))


def _may_pass(one: SlotAnswer) -> bool:
    """Whether the same may be taken later."""
    return one.status == 0 or one.status >= 500 or one.status == TOO_MUCH


def _receipt(shares: Sequence[_Share], answers: Sequence[SlotAnswer]) -> dict[str, Any]:
    rejected: dict[int, Any] = {}
    orders: dict[str, Any] = {}
    accepted = 0
    for share, one in zip(shares, answers, strict=True):
        if one.status != ACCEPTED:
            why = _why_not(share, one)
            rejected |= {place: {"index": place, "field": "", "detail": why} for place in share.part.places}
            continue
        value = one.json()
        accepted += value["accepted"]
        orders |= value["orders"]
        for row in value["rejected"]:
            place = share.place_of(row["index"])
            rejected[place] = {**row, "index": place}
    return {"accepted": accepted, "rejected": [rejected[n] for n in sorted(rejected)], "orders": orders}


def _why_not(share: _Share, one: SlotAnswer) -> str:
    named = ", ".join(map(str, share.slots))
    if one.status == UNAVAILABLE:
        return f"nobody judges slot {named} right now: this was not heard, send it again"
    if one.status == TOO_MUCH:
        return "this was not heard: too much came with this token; send it again later"
    if _may_pass(one):
        return f"the hub of slot {named} went away before it answered: whether it heard this is not known"
    return f"this was refused with status {one.status}"
