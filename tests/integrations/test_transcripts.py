"""Transcripts: tokens are counted once, and an agent cannot make the hub read another file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lifesigns.integrations.hooks.transcripts import READ_MAX, transcript

CLAUDE = Path(".claude", "projects")


def said(message_id: str, tokens_in: int, tokens_out: int) -> str:
    usage = {"input_tokens": tokens_in, "output_tokens": tokens_out, "cache_read_input_tokens": 9000}
    return json.dumps({"type": "assistant", "message": {"id": message_id, "usage": usage}}) + "\n"


def folder(home: Path) -> Path:
    made = home / ".claude/projects/-home-dev-shop"
    made.mkdir(parents=True)
    return made


def test_tokens_are_counted_once_per_message_from_where_the_file_was(tmp_path: Path) -> None:
    """A message stands in several lines, each with its usage so far."""
    file = folder(tmp_path) / "s.jsonl"
    file.write_text(said("old", 5000, 5000))
    found = transcript(CLAUDE, str(file), tmp_path)
    assert found is not None
    assert found.look().size == 0
    with file.open("a") as more:
        more.write(said("m1", 100, 1) + said("m1", 100, 40) + said("m2", 10, 2))
    growth = found.look()
    assert (growth.tokens_in, growth.tokens_out) == (110, 42)
    with file.open("a") as more:
        more.write(said("m2", 10, 5))
    assert found.look().tokens_out == 3


def test_a_line_in_the_making_is_read_when_it_is_whole(tmp_path: Path) -> None:
    file = folder(tmp_path) / "s.jsonl"
    found = transcript(CLAUDE, str(file), tmp_path)
    assert found is not None
    assert found.look().size == 0  # Not there yet.
    line = said("m1", 7, 8)
    file.write_text(line[:30])
    assert found.look().tokens_in == 0
    file.write_text(line)
    assert found.look().tokens_in == 7


def test_a_huge_line_is_skipped_and_what_follows_is_counted(tmp_path: Path) -> None:
    file = folder(tmp_path) / "s.jsonl"
    found = transcript(CLAUDE, str(file), tmp_path)
    assert found is not None
    file.write_text("x" * (2 * READ_MAX + 5) + "\n" + said("m1", 7, 8))
    assert sum(found.look().tokens_in for _ in range(5)) == 7


def test_the_end_of_a_turn_is_seen(tmp_path: Path) -> None:
    file = folder(tmp_path) / "s.jsonl"
    found = transcript(CLAUDE, str(file), tmp_path)
    assert found is not None
    end = {"type": "system", "subtype": "turn_duration", "timestamp": "2026-11-17T11:09:00.000Z"}
    file.write_text(json.dumps(end) + "\n")
    assert found.look().rested_at == 1794913740.0


def test_files_elsewhere_are_not_read(tmp_path: Path) -> None:
    inside, secret = folder(tmp_path), tmp_path / "secret.jsonl"
    secret.write_text(said("m", 1, 1))
    (inside / "link.jsonl").symlink_to(secret)
    (inside / "notes.txt").write_text("x")
    for path in (
        secret,
        inside / "link.jsonl",
        inside / "../../../secret.jsonl",
        inside / "notes.txt",
        "/etc/passwd",
        "/dev/zero",
        "\0",
    ):
        assert transcript(CLAUDE, str(path), tmp_path) is None, path


def test_a_file_that_became_a_link_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    """It was one of ours when it was named, and was exchanged since."""
    inside, secret = folder(tmp_path), tmp_path / "secret.jsonl"
    secret.write_text(said("m", 1, 1))
    file = inside / "s.jsonl"
    found = transcript(CLAUDE, str(file), tmp_path)
    assert found is not None
    file.symlink_to(secret)
    assert found.look().size == 0
    file.unlink()
    os.mkfifo(file)
    assert found.look().size == 0
    file.unlink()
    inside.rename(inside.with_name("moved"))
    inside.symlink_to(tmp_path)
    (tmp_path / "s.jsonl").write_text(said("m", 1, 1))
    assert found.look().size == 0
