"""A command that the README or the docs mention exists, and so do its options and the modules that are run."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import PARTS
from lifesigns.cli import main
from tests.tidy.source import ROOT

README_LINES_MAX = 110

FENCE = re.compile(r"^ *```.*?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
BEFORE = r"^(?:\$ +)?(?:\w+=\S+ +)*(?:(?:tools/)?uv run +(?:--frozen +)?)?"
COMMAND = re.compile(BEFORE + r"(make|lifesigns)((?: +[a-z][a-z-]*)+)")
MODULE = re.compile(BEFORE + r"python -m +((?:tools|benchmarks)\S*)(?: +([a-z_]+))?")
OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")


def parts(page: str) -> Iterator[str]:
    """What a page shows as code, blocks and inline, cut where a shell begins another command."""
    blocks = FENCE.findall(page)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    for line in lines + INLINE.findall(FENCE.sub("", page)):
        yield from (part.strip() for part in re.split(r"&&|\|\||[|;#]|\$\(", line))


def mentioned(page: str) -> Iterator[str]:
    """The commands: the program and the plain words after it."""
    for part in parts(page):
        if found := COMMAND.match(part):
            yield " ".join((found[1] + found[2]).split())


def options(page: str) -> Iterator[str]:
    """Each option of ours with its command. What stands after `--` is of another program."""
    for part in parts(page):
        if (found := COMMAND.match(part)) and found[1] == "lifesigns":
            for option in OPTION.findall(part.partition(" -- ")[0]):
                yield f"lifesigns{' '.join(('', *found[2].split()))} {option}"


def modules(page: str) -> Iterator[str]:
    """What is run by `python -m`: of our benchmarks with the part that is named."""
    for part in parts(page):
        if found := MODULE.match(part):
            yield f"{found[1]} {found[2] or ''}".strip()


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@cache
def help_of(*words: str) -> str:
    """Empty for an unknown command: `--help` after the words, click answers 0 for a known one whatever its arguments, 2 for another."""
    answer = CliRunner().invoke(main, [*words, "--help"])
    return answer.output if answer.exit_code == 0 else ""


def exists(command: str) -> bool:
    program, *words = command.split()
    if program == "make":
        return set(words) <= make_targets()
    return bool(help_of(*words))


def has_option(command: str) -> bool:
    _, *words, option = command.split()
    return re.search(rf"{option}(?![a-z-])", help_of(*words)) is not None


def is_module(command: str) -> bool:
    name, _, part = command.partition(" ")
    if name == "benchmarks":
        return not part or part in PARTS
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").exists() or (place / "__main__.py").exists()


def test_the_readme_tells_of_the_demo_and_the_tests() -> None:
    """Keeps the next test honest: it would pass on pages without commands."""
    commands = set(mentioned((ROOT / "README.md").read_text()))
    assert "make demo" in commands
    assert any(command.startswith("lifesigns ") for command in commands)


def test_every_command_mentioned_exists() -> None:
    said = {command: page.name for page in pages() for command in mentioned(page.read_text())}
    assert {command: page for command, page in said.items() if not exists(command)} == {}


def test_every_option_and_every_module_mentioned_exists() -> None:
    texts = {page.name: page.read_text() for page in pages()}
    wrong = {
        option: name for name, text in texts.items() for option in options(text) if not has_option(option)
    }
    assert wrong == {}
    run = {module: name for name, text in texts.items() for module in modules(text)}
    assert {module: name for module, name in run.items() if not is_module(module)} == {}
    assert "tools.chaos" in run, "the docs have no module any more, or this test finds none"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX


def test_commands_are_found_wherever_a_page_shows_them() -> None:
    page = """
Say `make demo`, not `makefile`; or `lifesigns config check lifesigns.yaml`.
```sh
$ git clone x && cd x && CI=true make test   # minutes
uv run lifesigns simulate --agents 40
lifesigns run --id x \\
  -- make coffee --black
lifesigns open --token "$(lifesigns token create --name x)"
tools/uv run --frozen python -m benchmarks hub_fleet
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
        "lifesigns open",
        "lifesigns token create",
    }
    assert set(options(page)) == {
        "lifesigns simulate --agents",
        "lifesigns run --id",
        "lifesigns open --token",
        "lifesigns token create --name",
    }
    assert set(modules(page)) == {"benchmarks hub_fleet"}


@pytest.mark.parametrize("command", ["make coffee", "lifesigns brew", "lifesigns config brew"])
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    assert not exists(command)


@pytest.mark.parametrize("command", ["make demo", "lifesigns simulate", "lifesigns config check"])
def test_a_command_that_exists_is_accepted(command: str) -> None:
    assert exists(command)


def test_an_option_or_a_module_that_does_not_exist_is_found() -> None:
    assert has_option("lifesigns serve --ai-maestro")
    assert not has_option("lifesigns serve --ai")
    assert not has_option("lifesigns brew --help")
    assert is_module("tools.chaos")
    assert is_module("benchmarks nudges")
    assert not is_module("tools.coffee")
    assert not is_module("benchmarks coffee")
