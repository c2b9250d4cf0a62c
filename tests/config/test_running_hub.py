"""The hub of this machine, for those who can do without one: only if somebody listens there."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lifesigns.config.hub_locator import running_hub


def announced(folder: Path, port: int) -> dict[str, str]:
    (folder / "hub.url").write_text(f"http://127.0.0.1:{port}\n")
    return {"LIFESIGNS_STATE": str(folder)}


def test_a_hub_that_listens_is_found_by_the_state_folder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert running_hub(announced(tmp_path, port)) == f"http://127.0.0.1:{port}"


def test_an_address_that_a_crash_left_behind_is_none(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert running_hub(announced(tmp_path, port)) is None


def test_without_an_announcement_nobody_is_asked(tmp_path: Path) -> None:
    """Not even the usual port: whoever listens there was not started from this folder."""
    assert running_hub({"LIFESIGNS_STATE": str(tmp_path)}) is None


@pytest.mark.parametrize(("said", "hub"), [("none", None), ("nats://bus:4222", "nats://bus:4222")])
def test_what_the_environment_says_is_believed(tmp_path: Path, said: str, hub: str | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        environ = announced(tmp_path, listener.getsockname()[1])
        assert running_hub({**environ, "LIFESIGNS_HUB": said}) == hub
