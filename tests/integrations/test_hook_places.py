"""Where our hooks are put: beside what is there, or in a file of our own; and nothing that is not ours is changed."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifesigns.errors import UsageError
from lifesigns.integrations.hooks.places import PLACES
from lifesigns.integrations.hooks.programs import PROGRAMS
from tests.journeys.outside import Hub, serving

CLIENT = Path("/home/dev/.local/state/lifesigns/hooks/client")
OWN = ("copilot", "opencode")


@pytest.mark.parametrize("program", PROGRAMS)
def test_in_twice_and_out_again_leaves_nothing(program: str) -> None:
    file = PLACES[program].file
    once = file.put("", "f", CLIENT)
    assert file.put(once, "f", CLIENT) == once
    assert file.missing(once, "f") == []
    assert file.missing("", "f") is None
    assert file.taken(once, "f").strip() in ("", "{}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_file_that_several_people_share_has_no_path_of_anybody(program: str) -> None:
    file = PLACES[program].file
    assert "/home/dev" in file.fragment(CLIENT)
    assert "/home/dev" not in file.put("", "f", None)


@pytest.mark.parametrize("program", OWN)
def test_a_file_of_our_name_that_is_not_ours_is_left_as_it_is(program: str) -> None:
    for change in (PLACES[program].file.put, lambda text, path, _: PLACES[program].file.taken(text, path)):
        with pytest.raises(UsageError, match="left as it is"):
            change("export const Mine = 1", "f", CLIENT)


def test_the_timeout_is_in_the_units_of_the_program() -> None:
    hooks = json.loads(PLACES["gemini"].file.fragment(CLIENT))["hooks"]
    assert hooks["BeforeTool"][0]["hooks"][0]["timeout"] == 2000
    hooks = json.loads(PLACES["qwen"].file.fragment(CLIENT))["hooks"]
    assert hooks["PreToolUse"][0]["hooks"][0]["timeout"] == 2


@pytest.mark.parametrize(
    ("program", "variable", "path"),
    [
        ("gemini", "GEMINI_CLI_HOME", "/else/.gemini/settings.json"),
        ("qwen", "QWEN_HOME", "/else/settings.json"),
        ("copilot", "COPILOT_HOME", "/else/hooks/lifesigns.json"),
        ("opencode", "XDG_CONFIG_HOME", "/else/opencode/plugins/lifesigns.js"),
    ],
)
def test_a_users_own_folder_may_be_elsewhere(program: str, variable: str, path: str) -> None:
    assert str(PLACES[program].path("user", {variable: "/else"})) == path


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with serving(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest.mark.parametrize("program", ["gemini", "copilot"])
def test_by_command_settings_links_and_modes_stay_and_it_is_gone_again(
    hub: Hub, tmp_path: Path, program: str
) -> None:
    home, path = str(tmp_path), PLACES[program].path("project", {}).relative_to(Path.cwd())
    path = tmp_path / (PLACES[program].user if program in OWN else path)
    before = None
    if program not in OWN:
        real = tmp_path / "dotfiles.json"
        before = json.dumps(
            {"theme": "dark", "hooks": {"Mine": [{"hooks": [{"command": "mine"}]}]}}, indent=4
        )
        real.write_text(before)
        real.chmod(0o640)
        path.parent.mkdir(parents=True)
        path.symlink_to(real)
    hub.cli("hooks", "install", program, HOME=home)
    assert "lifesigns" in path.read_text()
    assert hub.cli("hooks", "status", program, HOME=home).stdout.count("installed") == 1
    hub.cli("hooks", "uninstall", program, HOME=home)
    if before is None:
        assert not path.exists()
    else:
        assert path.is_symlink()
        assert path.read_text() == before
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_hooks_that_codex_does_not_trust_yet_promise_nothing(hub: Hub, tmp_path: Path) -> None:
    """Codex skips them silently."""
    done = hub.cli("hooks", "install", "codex", HOME=str(tmp_path), PATH="/usr/bin:/bin")
    assert "nobody has trusted the hooks yet" in done.stderr
    assert "are agents" not in done.stdout


def test_a_codex_that_does_not_answer_is_named_with_what_to_do(hub: Hub, tmp_path: Path) -> None:
    codex = tmp_path / "codex"
    codex.write_text("#!/bin/sh\nread -r asked\n")
    codex.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    done = hub.cli("hooks", "install", "codex", check=False, HOME=str(tmp_path), PATH=path)
    assert done.returncode == 2
    assert "(it ended), so Codex does not trust the hooks yet: install them again" in done.stderr
    assert "are agents" not in done.stdout


@pytest.mark.parametrize("program", ["qwen"])
def test_settings_with_comments_are_refused_and_stay(hub: Hub, tmp_path: Path, program: str) -> None:
    path = tmp_path / PLACES[program].user
    path.parent.mkdir(parents=True)
    path.write_text('{"theme": "dark" /* mine */}')
    done = hub.cli("hooks", "install", program, check=False, HOME=str(tmp_path))
    assert done.returncode == 2
    assert "left as it is" in done.stderr
    assert path.read_text() == '{"theme": "dark" /* mine */}'
