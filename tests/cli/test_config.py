from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lifesigns.cli import main

PAGE = Path(__file__).parents[2] / "docs/reference/cli/config.md"
SEED = Path(__file__).parents[1] / "config" / "seed.yaml"


@pytest.fixture(autouse=True)
def nothing_of_ours_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, a home without configuration, a wide screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")
    for name in [name for name in os.environ if name.startswith(("LIFESIGNS_", "XDG_"))]:
        monkeypatch.delenv(name)


def check(*args: str, text: str | None = None) -> Result:
    if text is not None:
        Path("lifesigns.yaml").write_text(text)
    return CliRunner().invoke(main, ["config", "check", *args])


def row(said: Result, key: str) -> list[str]:
    (line,) = [line for line in said.output.splitlines() if line.startswith(f"{key} ")]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_without_a_file_all_is_default_and_well() -> None:
    said = check()
    assert said.exit_code == 0
    assert (
        said.output == "No file, and nothing wrong. All settings are the defaults; --all shows everything.\n"
    )


def test_what_differs_is_shown_with_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIFESIGNS_LISTEN", "9000")
    said = check(text="profile: swift\npolicy:\n  silence: {grace: 5 min, pings: 2}\n")
    assert said.exit_code == 0
    assert row(said, "policy.silence.grace")[1:] == ["5 min", "lifesigns.yaml:3"]
    assert row(said, "policy.silence.interval")[1:] == ["1 s", "profile swift"]
    assert row(said, "listen")[1:] == ["127.0.0.1:9000", "LIFESIGNS_LISTEN"]
    assert "policy.silence.pings" not in said.output


def test_all_shows_the_defaults_too() -> None:
    said = check("--all")
    assert row(said, "policy.silence.pings")[1:] == ["2", "default"]
    assert row(said, "policy.respawn.backoff")[1:] == ["1 min, 2 min, 4 min", "default"]
    assert row(said, "policy.erring.rate_max")[1:] == ["0.25", "default"]
    assert row(said, "limits.busy_share_per_token")[1:] == ["0.25", "default"]
    assert row(said, "store")[1:] == ["none", "default"]


def test_the_seeds_file_is_good_and_its_loose_ends_are_noted() -> None:
    said = check(str(SEED))
    assert said.exit_code == 0
    assert "Note: alerting names slack, which is not under channels: nobody is told there." in said.output
    assert f"{SEED} is good. 11 settings differ" in said.output.replace("\n", " ")


def test_every_error_has_its_line_on_stderr() -> None:
    said = check(text="profile: swfit\nlisten: nowhere\n")
    assert said.exit_code == 2
    assert said.stdout == ""
    lines = said.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("Error: ") for line in lines)


def test_markup_in_a_value_is_shown_as_it_stands() -> None:
    said = check(text="agents:\n  '[red]x': {looping: {polling_tools: ['[bold]']}}\n")
    assert row(said, "agents.[red]x.looping.polling_tools")[1] == "[bold]"


def test_json_of_a_good_file() -> None:
    said = check("--json", str(SEED))
    told = json.loads(said.stdout)
    assert said.exit_code == 0
    assert (told["ok"], told["errors"], told["profile"]) == (True, [], "fleet")
    assert told["policy"]["silence"]["interval"] == 300
    assert told["policy"]["breakers"]["tool_execution"]["failure_threshold"] == 5
    assert "health_monitoring.heartbeat.interval_seconds" in told["sources"]["policy.silence.interval"]


def test_json_of_a_bad_file() -> None:
    said = check("--json", text="profile: swfit\n")
    told = json.loads(said.stdout)
    assert said.exit_code == 2
    assert told["ok"] is False
    assert told["errors"][0]["key"] == "profile"
    assert told["errors"][0]["detail"] == "'swfit' is unknown; did you mean swift?"


def test_a_missing_file_is_wrong_usage() -> None:
    said = check("no.yaml")
    assert (said.exit_code, said.stderr) == (2, "Error: no.yaml: does not exist\n")
    assert json.loads(check("no.yaml", "--json").stdout)["errors"][0]["key"] == "no.yaml"


def test_secrets_are_not_shown() -> None:
    text = "store: postgresql://me:hush@db/x\nchannels: {slack: {token: hush, channel: ops}}\n"
    said = check("--all", text=text)
    assert row(said, "channels.slack")[1] == "slack"
    assert row(said, "store")[1] == "postgresql://***@db/x"
    assert "hush" not in said.output
    assert "hush" not in check("--json").output


def test_switched_off_is_noted() -> None:
    assert "nobody is judged" in check(text="health_monitoring: {enabled: false}").output


def test_the_examples_on_the_page_are_real(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(
        r"```(yaml|console)(?: wrong)?\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert [kind for kind, _ in blocks] == ["yaml", "console"] * 2
    for (_, file), (_, screen) in zip(blocks[::2], blocks[1::2], strict=True):
        command, _, output = screen.partition("\n")
        with monkeypatch.context() as patched:
            for name, value in re.findall(r"(LIFESIGNS_\w+)=(\S+)", command):
                patched.setenv(name, value)
            said = check(text=file)
        assert [line.rstrip() for line in said.output.splitlines()] == output.splitlines()
