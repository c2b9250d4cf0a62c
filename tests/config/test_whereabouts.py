"""Clients find the hub of this machine by themselves, and show its token to nobody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lifesigns.config.hub_locator import HUB, find, hub_address, state_folder, token_for
from lifesigns.errors import UsageError

TOKEN = "ls_0a0a0a0a_" + "b" * 64


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder as `serve` leaves it, with its admin's token."""
    (tmp_path / "admin.token").write_text(TOKEN + "\n")
    (tmp_path / "admin.token").chmod(0o600)
    return tmp_path


def announce(state: Path, url: str) -> None:
    (state / "hub.url").write_text(url + "\n")
    (state / "hub.url").chmod(0o644)


def environ(state: Path, **more: str) -> dict[str, str]:
    return {"LIFESIGNS_STATE": str(state), **{f"LIFESIGNS_{name}": value for name, value in more.items()}}


# --- where things are -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "platform", "folder"),
    [
        ({"LIFESIGNS_STATE": "/srv/hub", "HOME": "/home/me", "XDG_STATE_HOME": "/x"}, "linux", "/srv/hub"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/home/me"}, "linux", "/x/lifesigns"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "linux", "/home/me/.local/state/lifesigns"),
        ({"HOME": "/home/me"}, "linux", "/home/me/.local/state/lifesigns"),
        ({"LIFESIGNS_STATE": "", "HOME": "/home/me"}, "linux", "/home/me/.local/state/lifesigns"),
        ({"HOME": "/Users/me"}, "darwin", "/Users/me/Library/Application Support/lifesigns"),
        ({"HOME": "/Users/me", "XDG_STATE_HOME": "/x"}, "darwin", "/x/lifesigns"),
        ({"LOCALAPPDATA": "/local", "USERPROFILE": "/me"}, "win32", "/local/lifesigns"),
    ],
)
def test_the_state_folder_is_the_one_named_else_the_users(
    environ: dict[str, str], platform: str, folder: str
) -> None:
    assert state_folder(environ, platform) == Path(folder)


def test_without_a_home_the_state_folder_has_to_be_named() -> None:
    with pytest.raises(UsageError, match="LIFESIGNS_STATE"):
        state_folder({}, "linux")
    assert find({}).hub == HUB


def test_the_hub_is_the_one_given_else_named_else_announced_else_the_usual(state: Path) -> None:
    assert hub_address(environ(state)) == HUB == "http://127.0.0.1:8710"
    announce(state, "http://127.0.0.1:9000")
    assert hub_address(environ(state)) == "http://127.0.0.1:9000"
    assert hub_address(environ(state, HUB="nats://bus")) == "nats://bus"
    assert find(environ(state, HUB="nats://bus"), "http://given").hub == "http://given"


# --- whose token it is ----------------------------------------------------------------------------------


def test_the_hub_of_the_state_folder_is_shown_its_token(state: Path) -> None:
    assert find(environ(state)).token == TOKEN
    announce(state, "https://127.0.0.1:9000")
    assert find(environ(state)).token == TOKEN


@pytest.mark.parametrize(
    "same",
    [
        "http://127.0.0.1:9000",
        "http://localhost:9000/",
        "http://[::1]:9000",
        "HTTP://LOCALHOST:9000",
        "http://hub.localhost:9000",
        "http://[::ffff:127.0.0.1]:9000",
    ],
)
def test_the_same_hub_by_another_name_of_loopback_is_shown_it_too(state: Path, same: str) -> None:
    announce(state, "http://127.0.0.1:9000")
    assert token_for(environ(state, HUB=same), same) == TOKEN


@pytest.mark.parametrize(
    "other",
    [
        "http://evil.example",
        "http://127.0.0.1:9001",
        "http://127.0.0.1",
        "https://127.0.0.1:9000",
        "http://127.0.0.1:9000@evil.example",
        "http://evil.example:9000/127.0.0.1",
        "http://127.0.0.1.evil.example:9000",
        "http://localhost.evil.example:9000",
        "http://evil.example:9000#@127.0.0.1:9000",
        "http://10.0.0.1:9000",
        "http://0.0.0.0:9000",
        "http://[::1",
        "http://127.0.0.1:x",
        "nats://127.0.0.1:9000",
        "127.0.0.1:9000",
        "",
    ],
)
@pytest.mark.parametrize("announced", ["http://127.0.0.1:9000", None])
def test_no_other_address_is_ever_shown_it(state: Path, other: str, announced: str | None) -> None:
    """Whoever can set LIFESIGNS_HUB for somebody must not get the admin's token by it."""
    if announced:
        announce(state, announced)
    assert token_for(environ(state, HUB=other), other) is None
    if other:
        assert find(environ(state, HUB=other)).token is None
        assert find(environ(state), other).token is None


def test_a_token_that_was_given_or_named_is_for_any_hub(state: Path) -> None:
    there = "https://hub.example.org"
    assert find(environ(state, HUB=there, TOKEN="named")).token == "named"
    assert find(environ(state, TOKEN="named"), there, "given").token == "given"


@pytest.mark.parametrize("content", [b"", b"\xff", b"two\nlines", b"a\0b"])
def test_a_file_that_makes_no_sense_is_none(state: Path, content: bytes) -> None:
    (state / "admin.token").write_bytes(content)
    (state / "hub.url").write_bytes(content)
    assert find(environ(state)).hub == HUB
    assert find(environ(state)).token is None


def test_an_address_that_others_could_have_written_is_not_believed(state: Path) -> None:
    """It would lead the token to them."""
    announce(state, "http://127.0.0.1:6666")
    (state / "hub.url").chmod(0o666)
    assert hub_address(environ(state)) == HUB


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_files_of_somebody_elses_are_not_believed(state: Path) -> None:
    announce(state, "http://127.0.0.1:6666")
    os.chown(state / "hub.url", 12345, -1)
    os.chown(state / "admin.token", 12345, -1)
    assert find(environ(state)).hub == HUB
    assert find(environ(state)).token is None


def test_the_token_is_not_shown_by_accident(state: Path) -> None:
    assert TOKEN not in repr(find(environ(state)))
