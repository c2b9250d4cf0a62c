"""Recipes are safe to copy: every command in the docs, the examples and what we deploy is attacked with hostile facts.

Each is run as it is written, in a tree of its own: absolute paths of the recipe lie in that tree, and programs that are not
ours are replaced by one that writes down its arguments. Whatever is said, only what the recipe names may be gone.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from lifesigns.adapters.executors import respawn_command
from lifesigns.adapters.executors.cleanup_command import CleanupCommand
from lifesigns.adapters.executors.commands import Command
from lifesigns.adapters.executors.respawn_command import RespawnCommand
from lifesigns.config.executors import CommandSettings
from lifesigns.config.load import load
from lifesigns.core.commands import CLEANUP_FACTS, RESPAWN_FACTS
from lifesigns.errors import AdapterError
from tests.adapters.executors.ground import cleanup, respawn
from tests.docs.pages import PAGES, ROOT, blocks, shown
from tests.security.test_commands import HOSTILE

RECORDER = "#!{python} -S\nimport json, sys\nopen({path!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n"

TREE = {f"{path}/file" for path in ("work/coder-7/one", "work/coder-7/two", "work/other/one", "precious")}
FACTS = {
    "respawn": ("agent_id", "task_id", "checkpoint_id", "handoff", "new_incarnation"),
    "cleanup": ("agent_id", "task_id", "checkpoint_id", "reason", "incarnation"),
}


class Recipe(NamedTuple):
    place: str
    section: str
    by: CommandSettings


def written() -> Iterator[tuple[str, str]]:
    """Every lifesigns.yaml that somebody may copy, and where it stands."""
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.info == "yaml":
                yield f"{shown(page)}:{block.line}", block.text
    for folder in ("examples", "deploy", "src/lifesigns/demo"):
        for path in sorted((ROOT / folder).rglob("lifesigns*.y*ml")):
            yield shown(path), path.read_text(encoding="utf-8")


def recipes() -> list[Recipe]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lifesigns.yaml"
        for place, text in written():
            if "command:" not in text:
                continue
            file.write_text(text, encoding="utf-8")
            executors = load(file, environ={}).executors
            found += [
                Recipe(place, section, one.by)
                for section in FACTS
                for one in executors[section]
                if isinstance(one.by, CommandSettings)
            ]
    return found


RECIPES = recipes()


def test_there_are_recipes_to_attack() -> None:
    """Keeps the other honest: it would pass on docs without any."""
    assert {recipe.section for recipe in RECIPES} == {"respawn", "cleanup"}


def within(tree: Path, recipe: Recipe) -> Command:
    """Its command, with its absolute paths in this tree and a recorder for each program that is named by one."""
    by, text = recipe.by, recipe.by.command
    words = shlex.split(text)
    for path in sorted({word[word.index("/") :] for word in words if "/" in word}, key=len, reverse=True):
        text = text.replace(path, f"{tree}{path}")
    program = Path(shlex.split(text)[0])
    if program.is_absolute():
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(RECORDER.format(python=sys.executable, path=str(tree / "argv")))
        program.chmod(0o755)
    (tree / "var/log").mkdir(parents=True, exist_ok=True)
    facts = RESPAWN_FACTS if recipe.section == "respawn" else CLEANUP_FACTS
    return Command(text, facts, by.shell, tree)


def order(section: str, fact: str, value: str) -> Any:
    said: dict[str, Any] = {fact: value}
    return respawn(**said) if section == "respawn" else cleanup(**said)


def files(tree: Path, name: str) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob(name)}


@pytest.mark.parametrize(
    ("recipe", "fact"),
    [
        pytest.param(recipe, fact, id=f"{recipe.place}-{recipe.section}-{fact}")
        for recipe in RECIPES
        for fact in FACTS[recipe.section]
    ],
)
async def test_no_hostile_fact_makes_a_recipe_do_harm(
    recipe: Recipe, fact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respawn_command, "SETTLE_FOR", 20.0)
    for path in TREE:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    command = within(tmp_path, recipe)
    hand: Any = (
        RespawnCommand(command, tmp_path / "state", lambda _: None)
        if recipe.section == "respawn"
        else CleanupCommand(command, tmp_path / "state")
    )
    for number, value in enumerate(["", *HOSTILE]):
        said = replace(order(recipe.section, fact, value), order_id=f"1-{100 + number}")
        with suppress(AdapterError):
            await asyncio.wait_for(hand.carry_out(said), 30)
    assert (
        files(tmp_path, "file") | {"work/coder-7/one/file"} == TREE
    )  # That one is what a recipe may be for.
    assert not files(tmp_path, "pwned")
    shape = len(shlex.split(recipe.by.command)) - 1
    lines = (tmp_path / "argv").read_text().splitlines() if (tmp_path / "argv").exists() else []
    for argv in map(json.loads, lines):
        assert len(argv) == shape
        assert not [word for word in argv if word.startswith("-") and word not in recipe.by.command.split()]
