"""Building the dashboard: only when something changed, with any Node that can be had, and into the wheel."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from tools import dashboard

ROOT = Path(__file__).parents[2]


def source(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def test_the_digest_is_of_the_sources_and_of_nothing_else(tmp_path: Path) -> None:
    """The same wherever they lie and whatever is installed beside them; another for any change."""
    first = dashboard.digest(source(tmp_path / "a", main="x", src__view="y"))
    assert first == dashboard.digest(source(tmp_path / "b", main="x", src__view="y", node_modules__z="z"))
    assert first != dashboard.digest(source(tmp_path / "c", main="x", src__view="z"))
    assert first != dashboard.digest(source(tmp_path / "d", main="x", src__views="y"))
    assert first != dashboard.digest(source(tmp_path / "e", main="x", src__view="y", src__more=""))


@pytest.mark.parametrize(
    ("installed", "enough"),
    [
        ({"node_modules/a": {"version": "1"}}, True),
        ({"node_modules/a": {"version": "1"}, "node_modules/for-mac": {"version": "1"}}, True),
        ({"node_modules/a": {"version": "2"}}, False),
        ({"node_modules/a": {"version": "1"}, "node_modules/for-mac": {"version": "2"}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_packages_are_installed_when_the_lock_file_says_something_else(
    tmp_path: Path, installed: dict[str, object] | None, enough: bool
) -> None:
    """What is optional, because it is for another machine, may be missing."""
    wanted = {
        "": {"name": "x"},
        "node_modules/a": {"version": "1"},
        "node_modules/for-mac": {"version": "1", "optional": True},
    }
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": wanted}))
    (tmp_path / "node_modules").mkdir()
    if installed is not None:
        (tmp_path / "node_modules" / ".package-lock.json").write_text(json.dumps({"packages": installed}))
    assert dashboard.has_packages(tmp_path) is enough


def test_without_any_node_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Node on PATH, and none to be fetched."""
    (tmp_path / "tools").mkdir()
    uv = tmp_path / "tools" / "uv"
    uv.write_text("#!/bin/sh\nexit 1\n")
    uv.chmod(0o755)
    monkeypatch.setattr(dashboard, "ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(dashboard.CannotBuild, match=r"Install Node 18 or newer.*make dashboard"):
        dashboard.find_node()


def test_a_node_that_is_too_old_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, says in (("node", "v12.22.1"), ("npm", "8.0.0")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {says}\n")
        program.chmod(0o755)
    fetched = dashboard.Node("node", ("npm",))
    monkeypatch.setattr(dashboard, "_node_of_wheel", lambda found: fetched)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    assert dashboard.find_node() is fetched


def test_the_wheel_carries_the_dashboard(tmp_path: Path) -> None:
    """`pip install lifesigns` needs no Node."""
    if not dashboard.is_built():
        pytest.skip("the dashboard is not built (make dashboard)")
    built = subprocess.run(
        [str(ROOT / "tools" / "uv"), "build", "--quiet", "--wheel", "--out-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    names = ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert "lifesigns/web/dashboard/index.html" in names
    assert sum(name.startswith("lifesigns/web/dashboard/app-") for name in names) == 2
    assert not any("node_modules" in name or name.startswith("dashboard/") for name in names)
