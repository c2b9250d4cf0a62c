"""What was heard is known by its key, within bounds."""

from __future__ import annotations

import pytest

from lifesigns.hub import deliveries, http_receiver
from lifesigns.hub.deliveries import KEYS_MAX, KeyedDeliveries, KeyReused, fingerprint_of
from tests.hub.faulty_store import FaultyStore
from tests.web.hub import running_hub

ERROR = {"type": "error", "agent_id": "a", "message": "no such file"}


def test_the_last_ones_of_each_sender_are_known() -> None:
    heard = KeyedDeliveries()
    for number in range(KEYS_MAX):
        assert heard.note("token", f"relay/{number}", b"x")
        assert heard.note("token", f"other/{number}", b"x")
    assert not heard.note("token", "relay/0", b"x")
    assert heard.note("token", f"relay/{KEYS_MAX}", b"x")
    assert heard.note("token", "relay/0", b"x")
    assert not heard.note("token", "other/0", b"x")


def test_a_key_is_its_tokens_own() -> None:
    heard = KeyedDeliveries()
    assert heard.note("mine", "relay/1", b"x")
    assert heard.note("yours", "relay/1", b"y")


def test_who_was_not_heard_for_the_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "SENDERS_MAX", 2)
    heard = KeyedDeliveries()
    for sender in ("a", "b", "a", "c"):
        heard.note("token", f"{sender}/1", b"x")
    assert not heard.note("token", "a/1", b"x")
    assert heard.note("token", "b/1", b"x")


def test_the_same_delivery_may_be_sent_at_another_moment_and_is_no_other() -> None:
    said = b'{"type":"doing","doing":"busy","until":"2026-11-17T12:00:00.000Z","timestamp":"%s"}'
    first, again = (
        fingerprint_of(said % at) for at in (b"2026-11-17T11:00:00.000Z", b"2026-11-17T11:00:09.000Z")
    )
    assert first == again
    heard = KeyedDeliveries()
    heard.note("token", "relay/1", first)
    with pytest.raises(KeyReused):
        heard.note("token", "relay/1", fingerprint_of(b'{"type":"doing","doing":"idle"}'))


async def test_a_delivery_for_which_there_was_no_room_is_heard_when_it_comes_again() -> None:
    async with running_hub() as hub:
        for path in ({**ERROR}, {"type": "activity", "agent_id": "a", "kind": "any"}):
            hub.service.hub.inbox.signals_max = 0
            key = {"Idempotency-Key": f"relay/{path['type']}"}
            for _ in range(2):
                assert (await hub.post("/api/v1/signals", path, headers=key)).status_code == 503
            hub.service.hub.inbox.signals_max = 1000
            for _ in range(2):
                assert (await hub.post("/api/v1/signals", path, headers=key)).status_code == 202
        agent = hub.service.engine.agent("a")
        assert agent is not None
        assert agent.outcomes is not None
        assert agent.outcomes.heard == 1


async def test_what_was_heard_and_could_not_be_kept_is_heard_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_receiver, "STORE_WAIT", 0.05)
    store = FaultyStore()
    async with running_hub(store) as hub:
        key = {"Idempotency-Key": "relay/1"}
        store.hold()
        assert (await hub.post("/api/v1/signals", ERROR, headers=key)).status_code == 503
        store.go_on()
        monkeypatch.setattr(http_receiver, "STORE_WAIT", 30.0)
        assert (await hub.post("/api/v1/signals", ERROR, headers=key)).status_code == 202
        agent = hub.service.engine.agent("a")
        assert agent is not None
        assert agent.outcomes is not None
        assert agent.outcomes.heard == 1
