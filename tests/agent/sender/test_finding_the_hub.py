"""On one machine a sender finds its hub, and the token to show there, by itself."""

from pathlib import Path

import pytest

from lifesigns import Sender
from tests.agent.sender.http_hub import HttpHub

TOKEN = "ls_0a0a0a0a_" + "b" * 64


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "admin.token").write_text(TOKEN + "\n")
    monkeypatch.setenv("LIFESIGNS_STATE", str(tmp_path))
    return tmp_path


def test_a_sender_finds_hub_and_token_in_the_state_folder(hub: HttpHub, state: Path) -> None:
    (state / "hub.url").write_text(hub.url + "\n")
    with Sender("coder-7"):
        hub.until(lambda: hub.beats)
    assert hub.requests[0][1]["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.usefixtures("state")
def test_a_hub_that_is_not_the_state_folders_is_not_shown_its_token(
    hub: HttpHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFESIGNS_HUB", hub.url)
    with Sender("coder-7"):
        hub.until(lambda: hub.beats)
    assert "authorization" not in hub.requests[0][1]
