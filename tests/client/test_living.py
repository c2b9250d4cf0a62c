"""Against a hub in a process of its own: threads, and a hub that is killed and comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lifesigns
from tests.client.scripted import scripted
from tests.client.served import BOUND, Served, served


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


def test_a_client_outlives_its_hub(hub: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share a client; calls wait for a hub that is started anew; the stream of events goes on where it was, and
    nothing of it is lost or told twice. Hub and token are found in the state folder."""
    monkeypatch.setenv("LIFESIGNS_STATE", str(hub.state))
    for name in ("LIFESIGNS_HUB", "LIFESIGNS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with lifesigns.Client(retry_for=BOUND) as client:
        assert client.hub == hub.url
        with ThreadPoolExecutor(8) as pool:
            receipts = list(pool.map(lambda n: client.beat(f"agent-{n}"), range(40)))
        assert sum(receipt.accepted for receipt in receipts) == 40
        assert sum(1 for _ in client.agents()) == 40

        link: list[str | None] = []
        flips = client.events(types=["HEALTH_STATE_CHANGED"], after=0, on_link=link.append)
        heard = [next(flips) for _ in range(40)]
        assert [event.data["to"] for event in heard] == ["healthy"] * 40

        hub.kill()
        again = threading.Thread(target=hub.start)
        again.start()
        assert client.beat("agent-0").accepted == 1
        again.join()
        client.signal("left", "agent-0", reason="done")
        event = next(flips)
        while event.agent_id != "agent-0" or event.data["to"] != "terminated":
            heard.append(event)
            event = next(flips)
        flips.close()
        ids = [event.id for event in heard]
        assert ids == sorted(set(ids))
        assert link[0] is None
        assert link[-1] is None
        assert len(link) >= 3


def test_the_admins_token_goes_to_its_own_hub_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFESIGNS_STATE", str(tmp_path))
    for name in ("LIFESIGNS_HUB", "LIFESIGNS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with scripted((200, {}, b"{}")) as own, scripted((200, {}, b"{}")) as other:
        (tmp_path / "hub.url").write_text(own.url)
        (tmp_path / "admin.token").write_text("ls_of_the_admin")
        with lifesigns.Client() as client:
            client.health()
        monkeypatch.setenv("LIFESIGNS_HUB", other.url)
        with lifesigns.Client() as client:
            client.health()
        with lifesigns.Client(token="ls_mine") as client:
            client.health()
        assert [asked[2].get("authorization") for asked in own.asked] == ["Bearer ls_of_the_admin"]
        assert [asked[2].get("authorization") for asked in other.asked] == [None, "Bearer ls_mine"]
