"""`lifesigns hooks`: coding agents that tell of themselves, set up and taken away."""

from __future__ import annotations

import os
import shutil
import stat
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lifesigns.cli.requests import asking, exit_if
from lifesigns.cli.say import say
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.client import Client

FOLDER: Final = "hooks"
PROGRAMS: Final = ("claude-code", "codex", "gemini", "qwen", "copilot", "opencode")
STARTS_WITHIN: Final = 20.0
"""Seconds that a hub may take to start, on a machine that is busy."""
NOT_SEEN: Final = (
    "does not read the hooks of a folder that it does not trust: start codex here once and say that you trust it, "
    "then install them again"
)
AGENTS: Final = "claude/*,codex/*,gemini/*,qwen/*,copilot/*,opencode/*"

program = click.argument("program", type=click.Choice(PROGRAMS), metavar="PROGRAM")
user = click.option(
    "--user", "scope", flag_value="user", default="user", help="For all of your sessions.  [default]"
)
project = click.option("--project", "scope", flag_value="project", help="For the sessions in this folder.")


@click.group()
def hooks() -> None:
    """Watch coding agents that you did not write: claude-code, codex, gemini, qwen, copilot, opencode."""


@hooks.command(short_help="Have every session of PROGRAM watched.")
@program
@user
@project
@click.option("--print", "only_print", is_flag=True, help="Change nothing; show what would be put in.")
def install(program: str, scope: str, only_print: bool) -> None:
    """Have every session of PROGRAM watched by the hub of this machine: claude-code, codex, gemini, qwen, copilot or
    opencode.

    \b
      lifesigns serve &
      lifesigns hooks install claude-code

    Puts hooks into the program's settings, beside what is there. With --project the settings are those of this folder, which
    may be shared: no path and no secret of yours is in them.
    """
    from lifesigns.integrations.hooks.places import PLACES

    place, folder = PLACES[program], _state_folder()
    client_path = folder / FOLDER / "client"
    client_named = client_path if scope == "user" else None
    if only_print:
        say(place.file.fragment(client_named))
        return
    path = place.path(scope, os.environ)
    text = _text(path)
    changed = place.file.put(text, str(path), client_named)  # Before anything is done: it may be refused.
    _await_hub()
    with asking(_own_hub(), None) as client:
        _make_token(client, folder)
    _put_client(client_path)
    if changed == text:
        say(f"{path} has the hooks already.")
    else:
        _write(path, changed, shared=scope == "project")
        say(f"{path} has the hooks now; remove them with: lifesigns hooks uninstall {program}" + _flag(scope))
    if _is_trusted(program, path):
        say("Sessions that you start from now on are agents: lifesigns watch")


@hooks.command()
@program
@user
@project
def uninstall(program: str, scope: str) -> None:
    """Take the hooks out of the settings of PROGRAM. Everything else in there stays as it is.

    \b
      lifesigns hooks uninstall claude-code
    """
    from lifesigns.integrations.hooks.places import PLACES

    place = PLACES[program]
    path = place.path(scope, os.environ)
    text = _text(path)
    changed = place.file.taken(text, str(path))
    if changed == text:
        say(f"{path} has no hooks of lifesigns.")
        return
    if program == "codex":
        _take_trust_back(path)
    # A link is part of somebody's dotfiles: what it leads to stays.
    if not changed or (changed.strip() == "{}" and not path.is_symlink()):
        _remove(path)
    else:
        _write(path, changed, shared=scope == "project")
    say(f"{path} has no hooks of lifesigns any more.")


@hooks.command()
@program
def status(program: str) -> None:
    """Say where the hooks are, and whether they reach a hub. Exits with 1 if they do not, are nowhere, or Codex does not run them.

    \b
      lifesigns hooks status claude-code
    """
    from lifesigns.config.hub_locator import URL_FILE
    from lifesigns.integrations.hooks.places import PLACES

    place, folder, found, idle = PLACES[program], _state_folder(), False, False
    for scope in ("user", "project"):
        path = place.path(scope, os.environ)
        text = _text(path)
        missing = place.file.missing(text, str(path))
        found = found or missing is not None
        state = "no hooks" if missing is None else f"without {', '.join(missing)}" if missing else "installed"
        say(f"{scope:8} {path}: {state}")
        if missing is not None and place.file.disabled(text, str(path)):
            say(f"{'':8} but its disableAllHooks is true: no hook runs")
        if missing is not None and program == "codex":
            idle = not _codex_runs(path) or idle
    wrong = _why_unheard(folder, URL_FILE)
    say(f"hub      {wrong or 'hears them'}")
    waiting = (
        len(list((folder / FOLDER / "spool").glob("*@*"))) if (folder / FOLDER / "spool").is_dir() else 0
    )
    if waiting:
        say(f"spool    {waiting} events wait for the hub")
    exit_if(wrong or idle or not found)


# --- parts --------------------------------------------------------------------------------------------


def _state_folder() -> Path:
    from lifesigns.config.hub_locator import state_folder

    return state_folder(os.environ).absolute()


def _own_hub() -> str:
    """The hub of the state folder, whatever `LIFESIGNS_HUB` says: its processes are the ones that hub can see."""
    from lifesigns.config.hub_locator import hub_address

    return hub_address(_own_environ())


def _own_environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "LIFESIGNS_HUB"}


def _await_hub() -> None:
    """Give a hub that was started a moment ago the time to come up: the two commands are often pasted together."""
    from lifesigns.config.hub_locator import running_hub

    ends_at = time.monotonic() + STARTS_WITHIN
    if running_hub(_own_environ()) is None:
        say("No hub of yours answers yet; waiting for one to start ...", err=True)
        while running_hub(_own_environ()) is None and time.monotonic() < ends_at:
            time.sleep(0.1)


def _is_trusted(program: str, hooks_file: Path) -> bool:
    """Codex runs only hooks that are trusted: have it trust ours."""
    if program != "codex":
        return True
    from lifesigns.integrations.hooks.codex_trust import trust

    found = shutil.which("codex")
    if found is None:
        say(
            "There is no codex on the PATH, so nobody has trusted the hooks yet: Codex asks with /hooks.",
            err=True,
        )
        return False
    try:
        count = trust(found, Path.cwd(), hooks_file)
    except UsageError as error:
        raise UsageError(
            f"{error}, so Codex does not trust the hooks yet: install them again, or trust them in Codex with /hooks"
        ) from None
    say(f"Codex trusts {count} hooks of lifesigns." if count else f"Codex {NOT_SEEN}.", err=not count)
    return count > 0


def _take_trust_back(hooks_file: Path) -> None:
    """What Codex wrote down when the hooks in this file were installed. The hooks go, whether that can be done or not."""
    from lifesigns.integrations.hooks.codex_trust import distrust

    found, why = shutil.which("codex"), "There is no codex on the PATH"
    if found is not None:
        try:
            distrust(found, Path.cwd(), hooks_file)
            return
        except UsageError as error:
            why = str(error)
    say(f"{why}, so its trust in these hooks stays in its config.toml, under hooks.state.", err=True)


def _codex_runs(hooks_file: Path) -> bool:
    """Whether Codex runs the hooks in this file; if it cannot be asked, that is said, and believed."""
    from lifesigns.integrations.hooks.codex_trust import runs

    found, unknown = shutil.which("codex"), "is not on the PATH"
    if found is not None:
        try:
            seen, trusted = runs(found, Path.cwd(), hooks_file)
        except UsageError as error:
            unknown = str(error)
        else:
            if not seen:
                say(f"{'':8} but Codex {NOT_SEEN}")
            elif trusted < seen:
                say(
                    f"{'':8} but Codex does not trust {seen - trusted} of {seen}, and does not run them: install them again"
                )
            return 0 < seen == trusted
    say(f"{'':8} whether Codex trusts them is not known: codex {unknown}")
    return True


def _flag(scope: str) -> str:
    return "" if scope == "user" else f" --{scope}"


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()  # Its ends of lines stay, too.
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}; it is left as it is") from None


def _write(path: Path, text: str, *, shared: bool) -> None:
    """In place of what is there, with its mode; if it is a link, at its end."""
    from lifesigns.files import write_whole

    path = path.resolve()
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mode = 0o644 if shared else 0o600
    try:
        write_whole(path, text.encode(), mode)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be removed: {error.strerror}") from None


def _put_client(path: Path) -> None:
    from lifesigns.files import write_whole

    bash = shutil.which("bash")
    if bash is None:
        raise UsageError("the client of the hooks needs bash, and there is none on the PATH")
    script = files("lifesigns.integrations.hooks").joinpath("client.sh").read_text()
    write_whole(path, script.replace("#!/bin/bash", f"#!{bash}", 1).encode(), 0o700)


def _make_token(client: Client, folder: Path) -> None:
    """A token for the agents of hooks and no other, where only its user can read it; the one that is there, if it is good."""
    from lifesigns.files import write_whole

    path = folder / FOLDER / "token"
    if not folder.is_dir():
        raise UsageError(
            f"there is no state folder {folder}: hooks report to a hub of this machine. Start one with: lifesigns serve"
        )
    if _is_good(client, path):
        return
    made = client.create_token("agent", "hooks of coding agents", agents=AGENTS, expires_after="never")
    write_whole(path, f"{made.token}\n".encode())


def _is_good(client: Client, path: Path) -> bool:
    from lifesigns.files import read_private
    from lifesigns.hub.tokens import id_of, is_token

    found = read_private(path, 4096)
    if found is None or not is_token(found[0].strip()):
        return False
    known = id_of(found[0].decode("ascii").strip())
    return any(one.id == known and one.agents == AGENTS for one in client.tokens().tokens)


def _why_unheard(folder: Path, url_file: str) -> str:
    """Why the hub does not hear the hooks; empty if it does."""
    if not (folder / FOLDER / "client").is_file():
        return "no client in the state folder: run lifesigns hooks install"
    try:
        url = (folder / url_file).read_text().strip()
    except OSError:
        return f"no hub runs from {folder}: what matters of the events waits in the spool"
    if not url.startswith("http://"):
        return f"at {url}, but the client of the hooks speaks plain HTTP on loopback only"
    try:
        with asking(_own_hub(), None, timeout=2.0) as client:
            good = _is_good(client, folder / FOLDER / "token")
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is the answer
        return str(error)
    return "" if good else "the token of the hooks is unknown: run lifesigns hooks install"
