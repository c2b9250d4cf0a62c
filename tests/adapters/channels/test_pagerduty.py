"""PagerDuty: what its Events API v2 asks for, and one incident from beginning to end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.adapters.channels.pagerduty import PagerDutyChannel, dedup_key, event
from lifesigns.ports import NotDelivered
from tests.adapters.channels.peers import PagerDuty, Peer, notice


async def test_an_alert_is_triggered_acknowledged_and_resolved_under_one_key() -> None:
    duty = PagerDuty()
    states = []
    async with Peer(duty.enqueue) as peer:
        channel = PagerDutyChannel(duty.routing_key, api=peer.url)
        for stage in ("opened", "worse", "acknowledged", "reminder", "resolved"):
            await channel.tell(notice(stage))
            states.append(dict(duty.open))
        await channel.close()
    key = "stuck_agent:coder-7"
    assert states == [
        {key: "triggered"},
        {key: "triggered"},
        {key: "acknowledged"},
        {key: "acknowledged"},
        {},
    ]


@pytest.mark.parametrize("severity", ["info", "warning", "error", "critical"])
async def test_our_severities_are_theirs(severity: str) -> None:
    duty = PagerDuty()
    async with Peer(duty.enqueue) as peer:
        channel = PagerDutyChannel(duty.routing_key, api=f"{peer.url}/")
        await channel.tell(notice(severity=severity))
        await channel.close()
    payload = peer.requests[0].json["payload"]
    assert payload["severity"] == severity
    assert payload["source"] == "coder-7"
    assert payload["timestamp"] == "2027-01-15T08:00:00.000Z"
    assert payload["class"] == "stuck_agent"


async def test_a_group_is_one_incident() -> None:
    duty = PagerDuty()
    async with Peer(duty.enqueue) as peer:
        channel = PagerDutyChannel(duty.routing_key, api=peer.url)
        agents = tuple(f"a-{n}" for n in range(20))
        await channel.tell(notice(key="stuck_agent@host ws-1", agents=agents, count=500, group="host ws-1"))
        await channel.close()
    payload = peer.requests[0].json["payload"]
    assert payload["group"] == "host ws-1"
    assert payload["custom_details"]["count"] == 500


async def test_a_wrong_key_is_refused_for_good_and_not_repeated() -> None:
    async with Peer(PagerDuty().enqueue) as peer:
        channel = PagerDutyChannel("wrong-routing-key", api=peer.url)
        with pytest.raises(NotDelivered, match="400") as caught:
            await channel.tell(notice())
        await channel.close()
    assert not caught.value.transient
    assert "wrong-routing-key" not in str(caught.value)


@given(
    st.builds(
        notice,
        st.sampled_from(["opened", "resolved"]),
        key=st.text(min_size=1, max_size=600),
        title=st.text(min_size=1, max_size=3000),
        text=st.text(max_size=3000),
        agents=st.lists(st.text(min_size=1, max_size=128), max_size=20).map(tuple),
    )
)
def test_whatever_is_said_is_within_the_limits(said: object) -> None:
    made = event(said, "lifesigns")  # type: ignore[arg-type]
    assert 1 <= len(made["dedup_key"]) <= 255
    if made["event_action"] == "trigger":
        assert 1 <= len(made["payload"]["summary"]) <= 1024
        assert made["payload"]["source"]


def test_keys_that_are_too_long_stay_apart() -> None:
    assert dedup_key("x" * 300 + "a") != dedup_key("x" * 300 + "b")
    assert dedup_key("short") == "short"
