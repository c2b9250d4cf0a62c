"""A backup that somebody else made harms nothing but what is restored from it.

Promise: a backup takes as much room on the disk as it has itself, and writes nothing outside of the state folder.
Whether it is whole: `tests/journeys/test_backup.py`.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from lifesigns.backup import restore
from lifesigns.errors import UsageError

LARGE = 64 * 1024 * 1024


def archive(path: Path, member: tarfile.TarInfo, content: bytes, described: bytes) -> Path:
    """A backup of one file, which its manifest describes as being this."""
    name = member.name.removeprefix("state/")
    digest = hashlib.sha256(described).hexdigest()
    manifest = {
        "format": 1,
        "lifesigns": "0",
        "made_at": 1.0,
        "store": "",
        "store_included": False,
        "schema": 0,
        "files": [{"name": name, "size": len(described), "sha256": digest}],
    }
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for one, raw in (
            (tarfile.TarInfo("manifest.json"), json.dumps(manifest).encode()),
            (member, content),
        ):
            one.size = len(raw)
            tar.addfile(one, io.BytesIO(raw))
    return path


def test_a_file_with_holes_fills_no_disk(tmp_path: Path) -> None:
    member = tarfile.TarInfo("state/large")
    member.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(LARGE)}
    file = archive(tmp_path / "b.tar", member, b"\0", b"\0" * LARGE)
    assert file.stat().st_size < 100_000
    with pytest.raises(UsageError, match="state/large"):
        restore(file, tmp_path / "state")


@pytest.mark.parametrize("name", ["state/../../outside", "/outside", "state/a/../../../outside"])
def test_nothing_is_written_elsewhere(tmp_path: Path, name: str) -> None:
    file = archive(tmp_path / "b.tar", tarfile.TarInfo(name), b"x", b"x")
    with pytest.raises(UsageError):
        restore(file, tmp_path / "state" / "below")
    assert not [*tmp_path.rglob("outside")]
    assert not Path("/outside").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("state/tokens.key")
    member.type, member.linkname = kind, "/etc/passwd"
    file = archive(tmp_path / "b.tar", member, b"", b"")
    with pytest.raises(UsageError, match=r"state/tokens\.key"):
        restore(file, tmp_path / "state")


@pytest.mark.parametrize("headers", [{"path": "state/a\0b"}, {"mtime": "1e300"}, {"mtime": "nan"}])
def test_odd_names_and_times_are_an_error_that_is_told(tmp_path: Path, headers: dict[str, str]) -> None:
    member = tarfile.TarInfo("state/a\0b" if "path" in headers else "state/a")
    member.pax_headers = headers
    with pytest.raises(UsageError):
        restore(archive(tmp_path / "b.tar", member, b"x", b"x"), tmp_path / "state")
