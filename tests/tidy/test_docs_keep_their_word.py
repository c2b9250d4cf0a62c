"""A command that the README or the docs mention exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lifesigns.cli import main
from tests.tidy.source import ROOT

README_LINES_MAX = 110

FENCE = re.compile(r"^ *```.*?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"^(?:\$ +)?(?:\w+=\S+ +)*(?:(?:tools/)?uv run +)?(make|lifesigns)((?: +[a-z][a-z-]*)+)")


def mentioned(page: str) -> Iterator[str]:
    """The commands in a page's code, blocks and inline: the program and the plain words after it."""
    blocks = FENCE.findall(page)
    lines = [line for block in blocks for line in block.splitlines()] + INLINE.findall(FENCE.sub("", page))
    for part in (part.strip() for line in lines for part in re.split(r"&&|\|\||[|;#]", line)):
        if found := COMMAND.match(part):
            yield " ".join((found[1] + found[2]).split())


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def exists(command: str) -> bool:
    program, *words = command.split()
    if program == "make":
        return set(words) <= make_targets()
    # `--help` after the words: click answers 0 for a known command whatever its arguments, 2 for an unknown one.
    return CliRunner().invoke(main, [*words, "--help"]).exit_code == 0


def test_the_readme_tells_of_the_demo_and_the_tests() -> None:
    """Keeps the next test honest: it would pass on pages without commands."""
    commands = set(mentioned((ROOT / "README.md").read_text()))
    assert "make demo" in commands
    assert any(command.startswith("lifesigns ") for command in commands)


def test_every_command_mentioned_exists() -> None:
    said = {command: page.name for page in pages() for command in mentioned(page.read_text())}
    assert {command: page for command, page in said.items() if not exists(command)} == {}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX


def test_commands_are_found_wherever_a_page_shows_them() -> None:
    page = """
Say `make demo`, not `makefile`; or `lifesigns config check lifesigns.yaml`.
```sh
$ git clone x && cd x && CI=true make test   # minutes
uv run lifesigns simulate --agents 40
lifesigns run -- make coffee
pip install lifesigns
import lifesigns
```
"""
    assert set(mentioned(page)) == {
        "make demo",
        "make test",
        "lifesigns config check lifesigns",
        "lifesigns simulate",
        "lifesigns run",
    }


@pytest.mark.parametrize("command", ["make coffee", "lifesigns brew", "lifesigns config brew"])
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    assert not exists(command)


@pytest.mark.parametrize("command", ["make demo", "lifesigns simulate", "lifesigns config check"])
def test_a_command_that_exists_is_accepted(command: str) -> None:
    assert exists(command)
