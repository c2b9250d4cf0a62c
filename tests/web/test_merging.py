"""The answers of all slots as one."""

from __future__ import annotations

from typing import Any

import msgspec

from lifesigns.hub.slots import SLOTS
from lifesigns.web import merging
from lifesigns.web.fleet_events import places_in
from lifesigns.web.fleet_site import _agent_list
from lifesigns.web.slot_calls import SlotAnswer


def said(*values: Any) -> list[SlotAnswer]:
    return [SlotAnswer(slot, 200, [], msgspec.json.encode(value)) for slot, value in enumerate(values)]


def agents(*names: str, cursor: str | None = None, complete: bool = True, need: int = 0) -> dict[str, Any]:
    rows = [{"agent_id": name, "need": need, "state_changed_at": name} for name in names]
    return {
        "agents": rows,
        "updated": "e.1",
        "cursor": cursor,
        "complete": complete,
        "gone": [f"no-{names[0]}"],
    }


def names(found: dict[str, Any]) -> list[str]:
    return [row["agent_id"] for row in found["agents"]]


def test_pages_go_from_slot_to_slot_and_leave_nobody_out() -> None:
    first = _agent_list(said(agents("a", "b", cursor="17"), agents("c")), 2, by_need=False)
    assert (names(first), first["cursor"]) == (["a", "b"], "18")
    second = _agent_list(said(agents("a"), agents("b", "c"), agents("d")), 2, by_need=False)
    assert (names(second), second["cursor"]) == (["a"], str(merging.PAGE_BASE))
    last = _agent_list(said(agents("a"), agents("b")), 2, by_need=False)
    assert (names(last), last["cursor"]) == (["a", "b"], None)


def test_by_need_the_neediest_of_all_slots_come_first() -> None:
    found = _agent_list(said(agents("a", "b", need=5), agents("c", need=1)), 2, by_need=True)
    assert names(found) == ["c", "a"]
    assert found["gone"] == ["no-a", "no-c"]


def test_a_list_is_complete_or_not_as_a_whole() -> None:
    assert _agent_list(said(agents("a"), agents("b")), 9, by_need=True)["complete"] is True
    changes = (agents("a", complete=False), agents("b", complete=False))
    assert _agent_list(said(*changes), 9, by_need=True)["complete"] is False
    mixed = (agents("a", complete=False), agents("b"))
    assert _agent_list(said(*mixed), 9, by_need=True)["complete"] is None


def test_the_moment_of_a_list_has_a_part_for_each_slot() -> None:
    token = merging.updated(said({"updated": "7.1"}, {"updated": "8.2"}))
    assert merging.since_by_slot(token) == ["7.1", "8.2"] + [merging.NONE] * (SLOTS - 2)
    assert merging.since_by_slot("7.1") is None


def test_counts_of_groups_are_added() -> None:
    one = {"name": "fleet", "members": 3, "unwell": 1, "braked": False, "released_until": None}
    two = {**one, "members": 4, "unwell": 4, "braked": True}
    other = {**one, "name": "host h"}
    found = merging.groups(said({"groups": [other, one]}, {"groups": [two]}))["groups"]
    assert found == [{**one, "members": 7, "unwell": 5, "braked": True}, other]


def test_a_silence_is_listed_once() -> None:
    one = {"silences": [{"id": "s-1"}, {"id": "s-2"}]}
    assert merging.silences(said(one, one)) == {"silences": [{"id": "s-1"}, {"id": "s-2"}]}


def test_a_hub_is_listed_once_with_its_slots() -> None:
    row = {"name": "h", "url": "u", "state": "judges", "renewed_ago_s": 0.5, "ready": True, "here": False}
    away = {**row, "state": "stands by", "renewed_ago_s": 0.1}
    (found,) = merging.hubs(said({"hubs": [away]}, {"hubs": [row]}, {"hubs": [row]}))["hubs"]
    assert (found["state"], found["slots"], found["renewed_ago_s"]) == ("judges", [1, 2], 0.1)
    lost = {**row, "state": "lost"}
    (found,) = merging.hubs(said({"hubs": [away]}, {"hubs": [lost]}))["hubs"]
    assert (found["state"], found["slots"]) == ("lost", [])


def test_events_have_numbers_that_no_other_slot_has() -> None:
    numbers = {merging.number_of(event_id, slot) for event_id in range(1, 50) for slot in range(SLOTS)}
    assert len(numbers) == 49 * SLOTS
    assert merging.number_of(0, 3) == 0, "what is not stored has no number"


def test_only_an_id_of_ours_says_where_a_listener_was() -> None:
    assert places_in("1-2-3-4-5-6-7-8") == [*"12345678"]
    for other in ("17", "", "1-2", "a-b-c-d-e-f-g-h"):
        assert places_in(other) is None


def test_the_worst_of_all_slots_is_what_a_probe_is_told() -> None:
    well = {"status": "ok", "store": "ok", "bus": "ok", "blind": False, "judge": "none"}
    away = {**well, "status": "unready", "store": "PostgreSQL is away", "blind": True}
    standby = {**well, "status": "standby", "bus": "none", "judge": "ok"}
    assert merging.ready([standby, well]) == {"store": "ok", "bus": "ok", "blind": False, "judge": "none"}
    assert merging.ready([standby, away, well])["store"] == "PostgreSQL is away"
    assert merging.ready([standby, away])["blind"] is True
    assert merging.ready([well, {**standby, "judge": "away"}])["judge"] == "away"
