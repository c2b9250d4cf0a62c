"""Merging: the answers of all slots about the fleet as one.

What cannot be asked is said: `missing` names the slots that did not answer. The numbers of events are each slot's own; here
they become numbers of the whole fleet, in which the slot is the remainder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lifesigns.hub.slots import SLOTS
from lifesigns.web.slot_calls import SlotAnswer

Json = dict[str, Any]

PAGE_BASE: Final = 10**15
"""Above any place in the list of a slot: the cursor of a whole list is the slot, and the cursor of that slot plus one, as 0 is one."""
CURSOR_MAX: Final = 18
STATES: Final = ("judges", "lost", "drained", "stands by")
"""Of a hub, by what counts if it is another one in each slot."""

NONE: Final = "-"
"""In place of a slot's token in `updated`, if it did not answer."""


def number_of(event_id: int, slot: int) -> int:
    """The fleet's number of an event; 0 stays 0: it is not stored."""
    return event_id * SLOTS + slot if event_id else 0


def fleet(answers: Sequence[SlotAnswer]) -> Json:
    """`GET /fleet`."""
    views: list[Json] = [one.json() for one in answers]
    hubs = [view["hub"] for view in views]
    spare = [one for view in views for one in view["least_loaded"]]
    most = max((len(view["least_loaded"]) for view in views), default=0)
    return {
        "agents": sum(view["agents"] for view in views),
        "states": _sums(view["states"] for view in views),
        "doing": _sums(view["doing"] for view in views),
        "waiting_for_human": [one for view in views for one in view["waiting_for_human"]],
        "braked": [*dict.fromkeys(one for view in views for one in view["braked"])],
        "least_loaded": sorted(spare, key=lambda one: 1.0 if one["load"] is None else one["load"])[:most],
        "hub": _hub(hubs),
        "needs": [one for view in views for one in view["needs"]],
    }


def _hub(hubs: Sequence[Json]) -> Json:
    """The worst of what the hubs say of themselves."""

    def worst(key: str) -> Any:
        return max((hub[key] for hub in hubs if hub[key] is not None), default=None)

    def first_not(key: str, *fine: str) -> str:
        return next((str(hub[key]) for hub in hubs if hub[key] not in fine), str(hubs[0][key]))

    return {
        **{key: worst(key) for key in ("blind", "score", "truce_until", "look_late_s", "look_late_max_s")},
        **{key: worst(key) for key in ("epoch", "at")},
        "blind_since": min((hub["blind_since"] for hub in hubs if hub["blind_since"]), default=None),
        "inbox": sum(hub["inbox"] for hub in hubs),
        "trouble": first_not("trouble", ""),
        "store": first_not("store", "ok"),
        "bus": first_not("bus", "ok", "none"),
        "dead_man_switch": first_not("dead_man_switch", "ok", "none"),
        "version": hubs[0]["version"],
    }


def _sums(counts: Iterable[Mapping[str, int]]) -> Json:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def groups(answers: Sequence[SlotAnswer]) -> Json:
    """`GET /groups`."""
    found: dict[str, Json] = {}
    for view in (view for one in answers for view in one.json()["groups"]):
        known = found.setdefault(view["name"], view)
        if known is not view:
            known["members"] += view["members"]
            known["unwell"] += view["unwell"]
            known["braked"] = known["braked"] or view["braked"]
            known["released_until"] = max(known["released_until"] or "", view["released_until"] or "") or None
    return {
        "groups": sorted(found.values(), key=lambda one: (not one["braked"], one["name"])),
        "cursor": None,
    }


def hubs(answers: Sequence[SlotAnswer]) -> Json:
    """`GET /hubs`: by name, with the slots that each judges."""
    found: dict[str, Json] = {}
    for one in answers:
        for view in one.json()["hubs"]:
            known = found.setdefault(view["name"], {**view, "slots": []})
            known["renewed_ago_s"] = min(known["renewed_ago_s"], view["renewed_ago_s"])
            known["ready"] = known["ready"] and view["ready"]
            known["here"] = known["here"] or view["here"]
            known["state"] = min(known["state"], view["state"], key=STATES.index)
            if view["state"] == "judges":
                known["slots"].append(one.slot)
    return {"hubs": sorted(found.values(), key=lambda view: str(view["name"]))}


def ready(said: Sequence[Json]) -> Json:
    """`GET /readyz`: the worst of what the hubs of the slots say, also of those that are not ready. One that stands by has no bus."""

    def worst(key: str) -> str:
        return max(
            (str(one.get(key, "none")) for one in said), key=lambda state: ("none", "ok", state).index(state)
        )

    judge = next((one["judge"] for one in said if one.get("judge", "none") not in ("none", "ok")), "none")
    return {
        "store": worst("store"),
        "bus": worst("bus"),
        "blind": any(one.get("blind") for one in said),
        "judge": judge,
    }


def page(values: Mapping[int, Json], name: str, limit: int) -> tuple[list[Any], str | None]:
    """As many as fit of one slot after the other, whole slots if they do, and where to go on."""
    rows: list[Any] = []
    for slot, value in values.items():
        if rows and len(rows) + len(value[name]) > limit:
            return rows, str(slot * PAGE_BASE)
        rows += value[name]
        if value["cursor"] is not None:
            return rows, str(slot * PAGE_BASE + int(value["cursor"]) + 1)
    return rows, None


def place_of(cursor: str) -> tuple[int, str]:
    """The slot at which a cursor goes on, and the cursor of that slot; empty for its begin. What is no cursor of ours is left to
    the first slot to refuse."""
    if not cursor.isdecimal() or len(cursor) > CURSOR_MAX:
        return 0, cursor
    slot, place = divmod(int(cursor), PAGE_BASE)
    return min(slot, SLOTS - 1), str(place - 1) if place else ""


def newest_interventions(answers: Sequence[SlotAnswer], limit: int) -> Json:
    """`GET /interventions`: the newest first, by when they began."""
    rows: list[Json] = [row for one in answers for row in one.json()["interventions"]]
    rows.sort(key=lambda row: str(row["stages"][0]["at"]) if row["stages"] else "", reverse=True)
    return {"interventions": rows[:limit]}


def silences(answers: Sequence[SlotAnswer]) -> Json:
    """`GET /silences`: each was made in every slot."""
    rows = {row["id"]: row for one in answers for row in one.json()["silences"]}
    return {"silences": [*rows.values()]}


def alerts(answers: Sequence[SlotAnswer]) -> Json:
    """`GET /alerts`: what stands first, then what happened, the newest first."""
    rows: list[Json] = []
    for one in answers:
        for row in one.json()["alerts"]:
            if str(row["id"]).isdecimal():
                row["id"] = str(number_of(int(row["id"]), one.slot))
            rows.append(row)
    rows.sort(key=lambda row: row["at"] or "", reverse=True)
    return {"alerts": sorted(rows, key=lambda row: not row["standing"]), "before": None}


def updated(answers: Sequence[SlotAnswer]) -> str:
    """The moment of a list of agents, slot by slot."""
    tokens = {one.slot: str(one.json()["updated"]) for one in answers}
    return "~".join(tokens.get(slot, NONE) for slot in range(SLOTS))


def since_by_slot(token: str) -> list[str] | None:
    """The slots' own tokens of `updated`; None if it was not made here."""
    parts = token.split("~")
    return parts if len(parts) == SLOTS else None
