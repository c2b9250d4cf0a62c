"""`python -m tools.chromium`: a Chromium for the browser tests and the screenshots, from Debian's packages.

One that is installed is used. Else it is installed: as root, or with a sudo that asks nothing, by apt-get; as anybody else
the packages are unpacked below .tools/, nothing outside of it is touched. Where neither can be (no apt, no network), it says
so, and the browser tests are skipped with that reason. Browsers cannot be had from the index our other tools come from.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL_WITHIN: Final = 900
HOW: Final = "make chromium; or install Debian's package chromium; or set LIFESIGNS_CHROMIUM to one"

FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
"""The caller passes `--headless` and the folder of the profile."""


@dataclass(frozen=True, slots=True)
class Chromium:
    """A working Chromium, and its environment."""

    path: Path
    env: Mapping[str, str] = field(default_factory=dict)


class NoChromium(Exception):
    """There is no Chromium, and why."""


def main() -> None:
    """Make sure that there is one."""
    try:
        found = find() or install()
    except NoChromium as error:
        print(f"chromium: {error}. The browser tests will be skipped.", file=sys.stderr)
        sys.exit(1)
    print(f"chromium: {found.path}", file=sys.stderr)


def find() -> Chromium | None:
    """The configured, installed or unpacked one; does not start it."""
    said = os.environ.get("LIFESIGNS_CHROMIUM")
    if said:
        return Chromium(Path(said))
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return Chromium(Path(path))
    return _unpacked(_private())


def install() -> Chromium:
    """Install one. Raises `NoChromium`."""
    if shutil.which("apt-get") is None:
        raise NoChromium(f"there is none, and no apt-get to install it ({HOW})")
    rights: Sequence[str] | None = () if os.geteuid() == 0 else ("sudo", "-n") if _may_sudo() else None
    if rights is not None:
        _install_by_apt(rights)
    else:
        _unpack(_private())
    found = find()
    if found is None or _run([str(found.path), "--version"], {**os.environ, **found.env}):
        raise NoChromium(f"it was installed, but does not run ({HOW})")
    return found


# --- as root ------------------------------------------------------------------------------------------


def _install_by_apt(rights: Sequence[str]) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print("chromium: installs Debian's package", file=sys.stderr, flush=True)
    apt = [*rights, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    _run([*apt, "update"], env)  # Old lists may do, if the newest cannot be fetched.
    if _run([*apt, "install", "-y", "--no-install-recommends", "chromium"], env):
        raise NoChromium(f"apt-get could not install chromium; what it said stands above ({HOW})")


def _may_sudo() -> bool:
    return shutil.which("sudo") is not None and _run(["sudo", "-n", "true"], os.environ) == 0


# --- as any other user --------------------------------------------------------------------------------


def _private() -> Path:
    """Where packages are unpacked: in the checkout, or in the user's cache if that is read-only."""
    tools = ROOT / ".tools"
    if os.access(tools if tools.exists() else ROOT, os.W_OK):
        return tools / "chromium"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "lifesigns" / "chromium"


def _unpack(place: Path) -> None:
    """Fetch chromium and all missing packages it needs, with our own lists and cache."""
    print(f"chromium: unpacks Debian's packages into {place}", file=sys.stderr, flush=True)
    apt, unpacking = place / "apt", place / "unpacking"
    for folder in (apt / "lists" / "partial", apt / "archives" / "partial", unpacking):
        folder.mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": apt,
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "",
    }
    command = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    _run([*command, "update"], os.environ)
    wanted = [*command, "install", "-y", "--no-install-recommends", "--download-only", "chromium"]
    if _run(wanted, os.environ):
        shutil.rmtree(place, ignore_errors=True)
        raise NoChromium(f"apt-get could not fetch chromium; what it said stands above ({HOW})")
    for package in sorted((apt / "archives").glob("*.deb")):
        if _run(["dpkg", "-x", str(package), str(unpacking)], os.environ):
            raise NoChromium(f"dpkg could not unpack {package.name}")
    shutil.rmtree(apt, ignore_errors=True)
    unpacking.rename(place / "root")


def _unpacked(place: Path) -> Chromium | None:
    root = place / "root"
    path = root / "usr" / "lib" / "chromium" / "chromium"
    if not path.is_file():
        return None
    triple = f"{platform.machine()}-linux-gnu"
    libraries = (root / "usr" / "lib" / triple, root / "lib" / triple, root / "usr" / "lib" / triple / "nss")
    env = {"LD_LIBRARY_PATH": os.pathsep.join(str(folder) for folder in libraries if folder.is_dir())}
    fonts = root / "etc" / "fonts"
    if fonts.is_dir() and not Path("/etc/fonts/fonts.conf").exists():
        env["FONTCONFIG_PATH"] = str(fonts)
    return Chromium(path, env)


def _run(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run it; returns its exit status. Its output goes to our stderr."""
    try:
        return subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=INSTALL_WITHIN, check=False
        ).returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"chromium: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    main()
