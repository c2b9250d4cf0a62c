"""Sessions of the dashboard outlive the process of the hub; what would let somebody in is in no file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from lifesigns.hub.sign_in import FILE_NAME, NOTE_EVERY, SESSION_FOR, SignIns

NOW = 1_000_000.0


def opened(folder: Path, now: float = NOW) -> SignIns:
    """As a hub that starts with this folder has them."""
    signed_in = SignIns()
    signed_in.use_folder(folder, now)
    return signed_in


def a_session(signed_in: SignIns, token_id: str = "t1", now: float = NOW) -> str:
    redeemed = signed_in.redeem(signed_in.link(token_id, now), now)
    assert redeemed is not None
    return redeemed[0]


def test_a_session_survives_a_hub_that_is_killed(tmp_path: Path) -> None:
    session = a_session(opened(tmp_path))
    assert opened(tmp_path, NOW + 60).token_of(session, NOW + 60) == "t1"


def test_the_file_has_digests_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    session = a_session(opened(tmp_path))
    file = tmp_path / FILE_NAME
    assert session not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_who_signed_out_or_lost_the_token_is_not_back_after_a_restart(tmp_path: Path) -> None:
    signed_in = opened(tmp_path)
    left, revoked, stays = a_session(signed_in), a_session(signed_in, "t2"), a_session(signed_in)
    signed_in.sign_out(left)
    signed_in.end("t2")
    again = opened(tmp_path)
    assert [again.token_of(one, NOW) for one in (left, revoked, stays)] == [None, None, "t1"]


def test_a_session_that_is_used_lives_on_after_a_restart(tmp_path: Path) -> None:
    """When it was used is written down now and then, not at each request."""
    signed_in = opened(tmp_path)
    session = a_session(signed_in)
    later = NOW + SESSION_FOR - 1
    assert signed_in.token_of(session, later) == "t1"
    signed_in.forget_old(later + NOTE_EVERY)
    assert opened(tmp_path, NOW + SESSION_FOR + 1).token_of(session, NOW + SESSION_FOR + 1) == "t1"


def test_an_old_session_is_not_taken_up(tmp_path: Path) -> None:
    session = a_session(opened(tmp_path))
    assert opened(tmp_path, NOW + SESSION_FOR).token_of(session, NOW + SESSION_FOR) is None


@pytest.mark.parametrize("content", [b"", b"{}x", b"[[1, 2]]", b'{"zz": {}}', b"7", b"\xff"])
def test_a_file_of_somebody_else_opens_nothing_and_stops_nobody(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with caplog.at_level(logging.WARNING):
        signed_in = opened(tmp_path)
    assert [getattr(record, "action", "") for record in caplog.records] == ["sessions_unreadable"]
    assert signed_in.token_of(a_session(signed_in), NOW) == "t1"


def test_a_folder_that_cannot_be_written_costs_the_next_hub_its_sessions_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("")
    signed_in = opened(blocked)
    session = a_session(signed_in)
    assert signed_in.token_of(session, NOW) == "t1"
    assert "sessions_not_kept" in [getattr(record, "action", "") for record in caplog.records]
