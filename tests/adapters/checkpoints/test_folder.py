"""Contents of checkpoints in a folder: whole or not at all, found by what they are, and within bounds."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from lifesigns.adapters.checkpoints.folder import FolderContents, Room
from lifesigns.core.signals import CheckpointVerified, Signal
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.checkpoints import Checkpoints
from lifesigns.ports import TooLarge
from lifesigns.ports.checkpoints import HERE
from tests.adapters.executors.ground import verify


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def kept_in_turn(contents: FolderContents, task_id: str, *pieces: bytes) -> None:
    """One after the other, with moments a file system can tell apart."""
    for piece in pieces:
        await contents.keep(task_id, piece)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("content", [b"", b"x", os.urandom(300_000)])
async def test_what_is_kept_is_given_back(tmp_path: Path, content: bytes) -> None:
    contents = FolderContents(tmp_path / "c")
    assert await contents.keep("t", content) == digest(content)
    assert await FolderContents(tmp_path / "c").read("t", digest(content)) == content


async def test_each_task_has_its_own(tmp_path: Path) -> None:
    """A task's id is a text, never a path."""
    contents = FolderContents(tmp_path / "c")
    for task_id in ("../../up", "/etc/passwd", "t\n", "ü" * 400, "."):
        found = await contents.keep(task_id, b"state")
        assert await contents.read(task_id, found) == b"state"
        assert await contents.read("another", found) is None
    assert all(path.is_relative_to(tmp_path / "c") for path in files(tmp_path))
    assert len(files(tmp_path)) == 5


async def test_the_same_again_is_there_once(tmp_path: Path) -> None:
    contents = FolderContents(tmp_path)
    await contents.keep("t", b"state")
    await contents.keep("t", b"state")
    assert len(files(tmp_path)) == 1


async def test_one_that_was_damaged_is_mended_when_it_is_saved_again(tmp_path: Path) -> None:
    contents = FolderContents(tmp_path)
    await contents.keep("t", b"state")
    files(tmp_path)[0].write_bytes(b"stale")
    await contents.keep("t", b"state")
    assert await contents.read("t", digest(b"state")) == b"state"


async def test_nobody_else_reads_them(tmp_path: Path) -> None:
    await FolderContents(tmp_path / "c").keep("t", b"state")
    (file,) = files(tmp_path)
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


async def test_half_a_file_never_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full in the middle of it: nothing is left behind, and what was there stays."""
    contents = FolderContents(tmp_path)
    await contents.keep("t", b"first")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AdapterError, match="it is full") as caught:
        await contents.keep("t", b"second")
    assert caught.value.transient
    assert [path.name for path in files(tmp_path)] == [digest(b"first")]


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("a file")
    with pytest.raises(AdapterError, match="does not take a checkpoint"):
        await FolderContents(tmp_path / "c").keep("t", b"state")


# --- bounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "fits"), [(100, True), (101, False)])
async def test_a_content_has_a_size_it_may_have(tmp_path: Path, size: int, fits: bool) -> None:
    contents = FolderContents(tmp_path, Room(content_bytes=100))
    if fits:
        await contents.keep("t", bytes(size))
    else:
        with pytest.raises(TooLarge, match=r"101 bytes are more than a checkpoint may have \(100\)"):
            await contents.keep("t", bytes(size))
        assert not files(tmp_path)


async def test_of_a_task_the_oldest_go_beyond_their_number(tmp_path: Path) -> None:
    contents = FolderContents(tmp_path, Room(task_contents=2))
    await kept_in_turn(contents, "t", b"1", b"2", b"1", b"3")
    assert await contents.read("t", digest(b"2")) is None
    assert await contents.read("t", digest(b"1")) == b"1"
    assert await contents.read("t", digest(b"3")) == b"3"


async def test_of_a_task_the_oldest_go_beyond_its_share_and_others_stay(tmp_path: Path) -> None:
    contents = FolderContents(tmp_path, Room(task_bytes=25, content_bytes=20))
    await contents.keep("other", b"o" * 20)
    await kept_in_turn(contents, "t", b"1" * 10, b"2" * 10, b"3" * 10)
    assert await contents.read("t", digest(b"1" * 10)) is None
    assert await contents.read("t", digest(b"2" * 10)) is not None
    assert await contents.read("other", digest(b"o" * 20)) is not None


async def test_of_all_the_oldest_go_but_the_newest_of_each_task_last(tmp_path: Path) -> None:
    """An old task that waits for its agent must not lose its only checkpoint to one that saves all day."""
    room = Room(total_bytes=50, task_bytes=50, content_bytes=20)
    await kept_in_turn(FolderContents(tmp_path, room), "old", b"o" * 10)
    contents = FolderContents(tmp_path, room)
    await kept_in_turn(contents, "t", *(bytes([n]) * 10 for n in range(8)))
    assert await contents.read("old", digest(b"o" * 10)) is not None
    assert sum(path.stat().st_size for path in files(tmp_path)) == 50
    await contents.keep("new", b"n" * 20)
    assert await contents.read("new", digest(b"n" * 20)) is not None
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 50


async def test_many_at_once_stay_within_bounds(tmp_path: Path) -> None:
    contents = FolderContents(tmp_path, Room(total_bytes=500, task_bytes=100, content_bytes=50))
    await asyncio.gather(*(contents.keep(f"t-{n % 7}", bytes([n]) * 50) for n in range(40)))
    assert sum(path.stat().st_size for path in files(tmp_path)) == 500
    assert all(path.name == digest(path.read_bytes()) for path in files(tmp_path))


# --- what the hub makes of them ----------------------------------------------------------------------------


def valid(signal: Signal | None) -> tuple[bool, bool]:
    assert isinstance(signal, CheckpointVerified)
    return signal.valid, signal.read_back


async def test_a_checkpoint_that_is_whole_is_good(tmp_path: Path) -> None:
    checkpoints = Checkpoints(FolderContents(tmp_path))
    known = await checkpoints.store("t-19", b"state", digest(b"state"))
    assert known == HERE + digest(b"state")
    assert valid(await checkpoints.carry_out(verify(known))) == (True, True)
    assert await checkpoints.read("t-19", known) == b"state"


@pytest.mark.parametrize("harm", ["flip", "truncate", "extend", "remove", "empty"])
async def test_one_that_is_broken_or_gone_is_not(tmp_path: Path, harm: str) -> None:
    checkpoints = Checkpoints(FolderContents(tmp_path))
    known = await checkpoints.store("t-19", b"the state of things")
    (file,) = files(tmp_path)
    content = bytearray(file.read_bytes())
    match harm:
        case "flip":
            content[7] ^= 1
        case "truncate":
            del content[-1]
        case "extend":
            content += b"\0"
        case "empty":
            content.clear()
    if harm == "remove":
        file.unlink()
    else:
        file.write_bytes(content)
    assert valid(await checkpoints.carry_out(verify(known))) == (False, True)
    assert await checkpoints.read("t-19", known) is None


@pytest.mark.parametrize(
    "said", [f"{HERE}../../etc/passwd", HERE, f"{HERE}{'A' * 64}", f"{HERE}{'0' * 63}/", f"{HERE}{'0' * 64}"]
)
async def test_what_an_agent_says_is_here_and_is_not_is_not_good(tmp_path: Path, said: str) -> None:
    checkpoints = Checkpoints(FolderContents(tmp_path))
    assert valid(await checkpoints.carry_out(verify(said))) == (False, True)


@pytest.mark.parametrize("said", ["", "sha256:abc", "etag:9"])
async def test_of_one_that_was_never_here_its_agents_word_counts_and_that_is_told(said: str) -> None:
    """To begin at the start would throw away what the agent may have kept well somewhere else."""
    assert valid(await Checkpoints().carry_out(verify(said))) == (True, False)


@pytest.mark.parametrize("prefix", ["", "sha256:", HERE])
async def test_a_digest_that_is_not_the_contents_is_refused(tmp_path: Path, prefix: str) -> None:
    checkpoints = Checkpoints(FolderContents(tmp_path))
    await checkpoints.store("t", b"state", prefix + digest(b"state").upper())
    with pytest.raises(WireError, match="but the content has sha256:"):
        await checkpoints.store("t", b"state!", prefix + digest(b"state"))
    assert len(files(tmp_path)) == 1


class Elsewhere:
    """Somebody who keeps checkpoints elsewhere."""

    def __init__(self, said: bool | AdapterError) -> None:
        self._said = said

    async def carry_out(self, order: object) -> Signal | None:
        if isinstance(self._said, AdapterError):
            raise self._said
        return CheckpointVerified(
            agent_id="a", order_id="1", task_id="t", checkpoint_id="c", valid=self._said
        )

    async def close(self) -> None: ...


async def test_who_keeps_them_elsewhere_is_asked() -> None:
    checkpoints = Checkpoints()
    checkpoints.elsewhere = Elsewhere(False)
    assert valid(await checkpoints.carry_out(verify("etag:9"))) == (False, True)
    await checkpoints.close()


async def test_if_that_one_can_never_say_the_agents_word_counts() -> None:
    """A wrong token there is no reason to throw away work."""
    checkpoints = Checkpoints()
    checkpoints.elsewhere = Elsewhere(AdapterError("401", transient=False))
    assert valid(await checkpoints.carry_out(verify("etag:9"))) == (True, False)
    checkpoints.elsewhere = Elsewhere(AdapterError("away"))
    with pytest.raises(AdapterError, match="away"):
        await checkpoints.carry_out(verify("etag:9"))
