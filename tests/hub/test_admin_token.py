"""The admin's token in the state folder."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError, UsageError
from lifesigns.hub.access import Access, Role
from lifesigns.hub.tokens import new_token

NOW = 1_000_000.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder that is there already."""
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


@pytest.fixture(params=[0o022, 0o000, 0o777])
def umask(request: pytest.FixtureRequest, folder: Path) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def in_file(folder: Path) -> str:
    return (folder / "admin.token").read_text().strip()


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def started(folder: Path, store: MemoryStore | None = None) -> Access:
    access = Access(store or MemoryStore())
    await access.open_folder(folder, NOW)
    return access


def is_admin(access: Access, token: str) -> bool:
    found = access.principal(token.encode(), NOW)
    return found is not None and found.role is Role.ADMIN


@pytest.mark.usefixtures("umask")
async def test_the_first_start_makes_one_for_its_owner_alone(folder: Path) -> None:
    """Whatever the umask, and also where the folder is open to others."""
    access = await started(folder)
    assert mode(folder / "admin.token") == 0o600
    assert is_admin(access, in_file(folder))
    assert sorted(names_in(folder)) == ["admin.token", "tokens.key"]


async def test_a_folder_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    await started(tmp_path / "deep" / "state")
    assert mode(tmp_path / "deep" / "state") == 0o700


async def test_the_next_start_uses_it_on(folder: Path) -> None:
    store = MemoryStore()
    await started(folder, store)
    token = in_file(folder)
    access = await started(folder, store)
    assert in_file(folder) == token
    assert is_admin(access, token)
    assert len(access.tokens.list()) == 1


async def test_a_lost_file_is_made_anew(folder: Path) -> None:
    store = MemoryStore()
    await started(folder, store)
    old = in_file(folder)
    (folder / "admin.token").unlink()
    access = await started(folder, store)
    assert in_file(folder) != old
    assert is_admin(access, in_file(folder))


async def test_with_a_lost_store_the_files_token_is_taken_in_again(folder: Path) -> None:
    await started(folder)
    token = in_file(folder)
    access = await started(folder, MemoryStore())
    assert in_file(folder) == token
    assert is_admin(access, token)


async def test_a_token_that_somebody_put_there_before_the_first_start_is_the_admins(folder: Path) -> None:
    """So a deployment can bring its own."""
    _, token = new_token()
    (folder / "admin.token").write_text(token + "\n")
    assert is_admin(await started(folder), token)


async def test_a_revoked_one_is_replaced_in_the_file_and_never_taken_in_again(folder: Path) -> None:
    store = MemoryStore()
    access = await started(folder, store)
    old = in_file(folder)
    await access.tokens.revoke(access.tokens.list()[0].id, NOW)
    assert not is_admin(access, old)
    assert is_admin(access, in_file(folder))
    assert mode(folder / "admin.token") == 0o600
    assert not is_admin(await started(folder, store), old)


async def test_one_that_was_revoked_beside_us_is_not_taken_in_again(folder: Path) -> None:
    """Another hub over the same store revoked it: the file alone is no right to come back."""
    store = MemoryStore()
    access = await started(folder, store)
    old, beside = in_file(folder), folder.with_name("beside")
    beside.mkdir()
    shutil.copy(folder / "tokens.key", beside)
    other = await started(beside, store)
    await other.tokens.create(role=Role.ADMIN, name="other", now=NOW)
    await other.tokens.revoke(access.tokens.list()[0].id, NOW)
    again = await started(folder, store)
    assert not is_admin(again, old)
    assert is_admin(again, in_file(folder))


@pytest.mark.parametrize("wide", [0o644, 0o640, 0o660, 0o604])
async def test_a_file_that_others_could_read_is_closed_with_a_warning(
    folder: Path, wide: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Not refused: a fleet that nobody watches is worse than a mode bit."""
    store = MemoryStore()
    await started(folder, store)
    token = in_file(folder)
    (folder / "admin.token").chmod(wide)
    access = await started(folder, store)
    assert mode(folder / "admin.token") == 0o600
    assert is_admin(access, token)
    (record,) = [
        record for record in caplog.records if getattr(record, "action", "") == "admin_token_exposed"
    ]
    assert token not in record.getMessage()


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"ls_x_y", b"\xff\xfe", b"x" * 10_000, b"ls_aaaa_" + b"g" * 31]
)
async def test_a_file_that_holds_no_token_is_refused_by_name(folder: Path, content: bytes) -> None:
    (folder / "admin.token").write_bytes(content)
    with pytest.raises(UsageError, match=r"admin\.token.*delete it") as caught:
        await started(folder)
    assert content == b"" or content.decode("latin-1") not in str(caught.value)


async def test_a_link_or_a_folder_in_its_place_is_refused(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(new_token()[1])
    (folder / "admin.token").symlink_to(elsewhere)
    with pytest.raises(UsageError, match=r"admin\.token cannot be read"):
        await started(folder)
    (folder / "admin.token").unlink()
    (folder / "admin.token").mkdir()
    with pytest.raises(UsageError, match=r"admin\.token is not a file"):
        await started(folder)


async def test_a_pipe_in_its_place_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "admin.token")
    with pytest.raises(UsageError, match=r"admin\.token is not a file"):
        await started(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_a_file_of_somebody_elses_is_refused(folder: Path) -> None:
    """It would be their key to this hub."""
    path = folder / "admin.token"
    path.write_text(new_token()[1])
    os.chown(path, 12345, -1)
    with pytest.raises(UsageError, match="belongs to user 12345"):
        await started(folder)


async def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    with pytest.raises((AdapterError, UsageError), match=r"state.*tokens\.key"):
        await started(tmp_path / "state")
