"""An ear and a hub for every test; nothing of a sender is left behind."""

import threading
import time
from collections.abc import Iterator

import pytest

from tests.agent.sender.ear import Ear
from tests.agent.sender.http_hub import HttpHub


@pytest.fixture
def ear() -> Iterator[Ear]:
    with Ear() as ear:
        yield ear


@pytest.fixture
def hub() -> Iterator[HttpHub]:
    with HttpHub() as hub:
        yield hub


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("LIFESIGNS_STATE", str(tmp_path_factory.mktemp("state")))
    for name in ("HUB", "TOKEN", "AGENT_ID", "INCARNATION", "TASK", "CHECKPOINT", "HANDOFF", "RUN"):
        monkeypatch.delenv(f"LIFESIGNS_{name}", raising=False)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """When the last sender has closed, its relay's thread ends."""
    yield
    until = time.monotonic() + 10
    while relays := [thread for thread in threading.enumerate() if thread.name == "lifesigns-relay"]:
        assert time.monotonic() < until, relays
        relays[0].join(0.1)
