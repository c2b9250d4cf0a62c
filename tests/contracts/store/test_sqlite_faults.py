"""SQLite in trouble: it is said, nothing kept is lost, and the same store goes on when the trouble is over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.errors import AdapterError
from lifesigns.ports import Commit
from tests.contracts.store.ground import all_ids, believed, event, fill

ROOT = Path(__file__).parents[3]
NOBODY = 65534
REAL = apsw.vfs_names()[0]
"""What SQLite reads and writes with."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hub.db"


@pytest.fixture
def private_folder() -> Iterator[Path]:
    """One whose rights hold: root stands above them, so root becomes nobody while he uses it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
            folder.chmod(0o700)


def set_rights(modes: dict[Path, int]) -> None:
    for path, mode in modes.items():
        path.chmod(mode)


def content(path: Path) -> bytes:
    return path.read_bytes()


def move_away(path: Path) -> None:
    """With everything that belongs to it."""
    for file in list(path.parent.glob(f"{path.name}*")):
        file.rename(file.with_name(f"damaged-{file.name}"))


@contextlib.contextmanager
def locked_by_another_process(path: Path) -> Iterator[None]:
    """A real one, which holds the lock of a writer."""
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        yield
        process.communicate()
    assert process.returncode == 0


async def test_the_folder_is_made_and_is_nobody_elses_business(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state" / "deep" / "hub.db")
    await store.open()
    await fill(store, event(1))
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    files = list(store.path.parent.iterdir())
    assert {file.name for file in files} == {"hub.db", "hub.db-wal", "hub.db-shm"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    await store.close()
    assert [file.name for file in store.path.parent.iterdir()] == ["hub.db"]


async def test_every_page_is_synced_before_it_is_kept(path: Path) -> None:
    """What a power cut leaves is what was synced: the log, with the last page in it. Seen from below SQLite."""
    synced: list[str] = []

    class Watched(apsw.VFSFile):
        def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
            super().__init__(REAL, name, flags)
            self.label = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

        def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 -- apsw's name
            super().xWrite(data, offset)
            if self.label.endswith("-wal"):
                synced.append("written")

        def xSync(self, flags: int) -> None:  # noqa: N802 -- apsw's name
            super().xSync(flags)
            if self.label.endswith("-wal"):
                synced.append("synced")

    class Watching(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("watching", REAL, makedefault=True)

        def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
            return Watched(name, flags)

    watching = Watching()
    try:
        store = SqliteStore(path)
        await store.open()
        for number in range(1, 4):
            synced.clear()
            await fill(store, event(number), page=number)
            assert "written" in synced
            assert synced[-1] == "synced"
        await store.close()
    finally:
        watching.unregister()


async def test_a_lock_of_another_process_is_waited_for_and_then_said(path: Path) -> None:
    """Reading goes on."""
    store = SqliteStore(path, busy_for=0.1)
    await store.open()
    await fill(store, event(1))
    with locked_by_another_process(path):
        for futile in (store.commit(Commit(2, events=[event(2)])), store.ping(), store.open()):
            with pytest.raises(AdapterError, match="locked by another process") as refused:
                await futile
            assert refused.value.transient
        assert await all_ids(store) == [1]
    await store.ping()
    await store.commit(Commit(2, events=[event(2)]))
    assert await all_ids(store) == [1, 2]
    await store.close()


async def test_a_short_lock_is_only_a_delay(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    with locked_by_another_process(path):
        writing = asyncio.ensure_future(fill(store, event(1)))
        waited, _ = await asyncio.wait([writing], timeout=0.3)
        assert not waited
    await writing
    assert await all_ids(store) == [1]
    await store.close()


async def test_a_file_that_is_read_only_is_said_and_used_when_it_is_writable(private_folder: Path) -> None:
    path = private_folder / "hub.db"
    first = SqliteStore(path)
    await first.open()
    await fill(first, event(1))
    await first.close()
    set_rights({path: 0o400, private_folder: 0o500})
    store = SqliteStore(path)
    for _ in range(2):
        with pytest.raises(AdapterError, match=r"hub\.db.*(read-only|cannot be opened)") as refused:
            await store.open()
        assert refused.value.transient
    set_rights({path: 0o600, private_folder: 0o700})
    assert (await store.open()).event == 1
    await store.close()


async def test_a_folder_that_cannot_be_written_is_said(private_folder: Path) -> None:
    set_rights({private_folder: 0o500})
    for path in (private_folder / "hub.db", private_folder / "state" / "hub.db"):
        store = SqliteStore(path)
        with pytest.raises(AdapterError, match=f"{path.name} cannot be used: Permission denied") as refused:
            await store.open()
        assert refused.value.transient
        await store.close()


@pytest.mark.parametrize("at", ["a folder", "below a file"])
async def test_a_place_where_no_file_can_be_is_said(tmp_path: Path, at: str) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    store = SqliteStore(tmp_path if at == "a folder" else file / "hub.db")
    with pytest.raises(AdapterError, match=str(store.path)):
        await store.open()
    await store.close()


def overwrite_head(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"garbage " * 64)


def overwrite_middle(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xa5" * (size // 2))


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def all_text(path: Path) -> None:
    path.write_text("Dear diary, " * 10_000)


@pytest.mark.parametrize("damage", [overwrite_head, overwrite_middle, cut_off, all_text])
async def test_a_damaged_file_is_said_for_good_and_not_touched(
    path: Path, damage: Callable[[Path], None]
) -> None:
    """The message names the file and what to do. When it is out of the way, the same store begins anew."""
    store = SqliteStore(path)
    await store.open()
    beliefs = [believed(f"{n}", b"x" * 700) for n in range(500)]
    await store.commit(Commit(1, beliefs=beliefs, events=[event(n) for n in range(1, 500)]))
    await store.close()
    damage(path)
    before = content(path)
    store = SqliteStore(path)
    for _ in range(2):
        with pytest.raises(AdapterError, match=r"hub\.db is damaged .*move it away") as refused:
            await store.open()
        assert not refused.value.transient
    assert content(path) == before
    move_away(path)
    assert (await store.open()).commit == 0
    await fill(store, event(1))
    assert await all_ids(store) == [1]
    await store.close()


async def test_a_file_that_was_taken_away_is_missed_at_once(path: Path) -> None:
    """SQLite itself would go on writing to a file without a name."""
    store = SqliteStore(path)
    await store.open()
    await fill(store, event(1))
    away = path.with_suffix(".away")
    away.mkdir()
    for file in path.parent.glob("hub.db*"):
        shutil.move(file, away)
    for futile in (store.commit(Commit(2)), store.ping(), store.events(), store.commit(Commit(2))):
        with pytest.raises(AdapterError, match=r"hub\.db (was moved|cannot be opened)") as refused:
            await futile
        assert refused.value.transient
    for file in away.iterdir():
        shutil.move(file, path.parent)
    await store.commit(Commit(2, events=[event(2)]))
    assert await all_ids(store) == [1, 2]
    await store.close()


async def test_another_file_in_its_place_is_not_written_to(path: Path) -> None:
    """A backup that was put back, perhaps: only a new start of the hub can go on from there."""
    store = SqliteStore(path)
    await store.open()
    await store.close()
    shutil.copy(path, path.with_suffix(".backup"))
    store = SqliteStore(path)
    await store.open()
    await fill(store, event(1))
    for file in path.parent.glob("hub.db*"):
        file.unlink()
    path.with_suffix(".backup").rename(path)
    with pytest.raises(AdapterError, match="moved or removed"):
        await store.commit(Commit(2))
    with pytest.raises(AdapterError, match="not the one that was opened") as refused:
        await store.commit(Commit(2))
    assert not refused.value.transient
    assert (await store.open()).commit == 0
    await store.close()


def test_a_full_disk_is_said_and_the_page_is_kept_when_there_is_room(tmp_path: Path) -> None:
    """A real one: a file system of three megabytes, in a namespace of its own."""
    mount = f"mount -t tmpfs -o size=3m lifesigns '{tmp_path}'"
    inside = ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c"]
    if subprocess.run([*inside, mount], capture_output=True, check=False).returncode:
        pytest.skip("no mounts in a namespace here")
    script = f"{mount} && exec '{sys.executable}' -m tests.contracts.store.full_disk '{tmp_path}'"
    done = subprocess.run([*inside, script], cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    story = json.loads(done.stdout)
    assert story["refusals"] == ["full", "full"]
    assert story["before"] > 3
    assert story["pages"] == story["before"] + 1
    assert story["whole"]


def test_a_limit_on_the_size_of_files_is_a_trouble_that_passes(tmp_path: Path) -> None:
    """Where nothing can be mounted, a limit does: the system refuses to write, in the middle of a page."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, resource.RLIM_INFINITY));"
    run = "import runpy, sys; runpy.run_module('tests.contracts.store.full_disk', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code + run, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    story = json.loads(done.stdout)
    assert story["refusals"] == ["transient", "transient"]
    assert story["pages"] == story["before"] + 1
    assert story["whole"]
