"""The reference says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lifesigns.cli.config import shown
from lifesigns.config.executors import EXECUTORS
from lifesigns.config.fitting import flat, settable
from lifesigns.config.load import SCHEMA
from lifesigns.config.overrides import RESERVED, VARIABLES
from lifesigns.config.schema import readers_of
from lifesigns.config.tree import MEANING
from lifesigns.config.values import Config
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PROFILES, ROLES
from tests.config.conftest import Said

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE, CHANNELS = (
    (REFERENCE / name).read_text(encoding="utf-8") for name in ("configuration.md", "channels.md")
)


def test_every_threshold_is_on_the_page_with_its_default() -> None:
    values = {**flat(settable(Policy())), **flat({"fleet": settable(FleetPolicy())})}
    for path, value in values.items():
        key = ".".join(path)
        if path[0] != "breakers":
            assert f"| `{key}` | {shown(key, value)} | " in PAGE


def test_the_breakers_that_are_built_in_are_on_the_page_with_their_numbers() -> None:
    for name, policy in Policy().breakers.items():
        wait = shown("breaker.recovery_timeout", policy.recovery_timeout)
        assert f"`{name}` ({policy.failure_threshold} failures, {wait})" in PAGE


def test_every_other_key_is_on_the_page() -> None:
    names = [
        *SCHEMA,
        *PROFILES,
        *ROLES,
        *RESERVED,
        *VARIABLES,
    ]
    assert [name for name in names if f"`{name}" not in PAGE] == []


@pytest.mark.parametrize(
    ("section", "title"),
    [
        *((section, "## Executors") for section in (*EXECUTORS, "checkpoints")),
        ("channels", "## `channels.NAME`"),
        *(
            (section, "## `routes`, `silences`, `maintenance`")
            for section in ("routes", "silences", "maintenance")
        ),
        ("alerting", "## `alerting`"),
        ("limits", "## Top level"),
        ("otlp", "## Top level"),
        ("hooks", "## Top level"),
        ("listen", "## Top level"),
        ("bus", "## Top level"),
        ("access", "## Top level"),
    ],
)
def test_every_key_of_a_section_is_in_its_table(section: str, title: str) -> None:
    (table,) = [
        part for part in (PAGE + CHANNELS).split("\n## ") if part.startswith(title.removeprefix("## "))
    ]
    names = {path[-1] for path, _ in readers_of(SCHEMA[section])}
    assert names
    assert [name for name in sorted(names) if not re.search(rf"[`.{{ ]{name}[`:]", table)] == []


@pytest.mark.parametrize(("key", "meaning"), MEANING.items())
def test_every_key_of_the_tree_is_on_the_page_with_its_meaning(key: str, meaning: str) -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{key}` |")]
    assert f"`{meaning}`" in line


def test_the_example_on_the_page_works(said: Said) -> None:
    config: Config = said(PAGE.split("```yaml\n")[1].split("```")[0])
    assert config.policies.of("night-1").silence.interval == 900
    assert config.policies.of("coder-7").spending.cost_max == 20
