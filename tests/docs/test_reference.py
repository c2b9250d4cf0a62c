"""The reference names everything there is."""

import re
from enum import StrEnum

import pytest
from msgspec import Struct, structs

from lifesigns.core import effects, signals
from lifesigns.core.health import Cause, Doing, Health
from lifesigns.wire.signals_and_orders import signal_types
from tests.docs.pages import ROOT

ENGINE = (ROOT / "docs/reference/engine.md").read_text(encoding="utf-8")
HTTP = (ROOT / "docs/reference/http-api.md").read_text(encoding="utf-8")
HEALTH = (ROOT / "docs/reference/health.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")

SHARED = {"Report", "AgentSignal", "OrderOutcome", "PersonActed", "Metrics", "Fact", "Order"}
"""What others are made of; nobody hears or emits one of these."""


def classes(module: object) -> set[str]:
    """The values a module makes, without those that others are made of."""
    return {
        name
        for name, thing in vars(module).items()
        if isinstance(thing, type)
        and hasattr(thing, "__struct_fields__")
        and thing.__module__ == getattr(module, "__name__", "")
    } - SHARED


@pytest.mark.parametrize("name", sorted(classes(signals)))
def test_every_signal_has_its_row(name: str) -> None:
    assert f"| `{name}` |" in ENGINE


@pytest.mark.parametrize("shape", signal_types(), ids=lambda shape: str(shape.__struct_config__.tag))
def test_every_field_of_a_signal_is_in_its_row_and_no_other(shape: type[Struct]) -> None:
    (row,) = re.findall(rf"^\| `{shape.__struct_config__.tag}` \|(.*?)\|", HTTP, re.MULTILINE)
    fields = {field.encode_name for field in structs.fields(shape)} - {"agent_id", "incarnation"}
    assert set(re.findall(r"`(\w+)`", row)) == fields


@pytest.mark.parametrize("name", sorted(classes(effects) - {"Finding"}))
def test_every_effect_has_its_row(name: str) -> None:
    assert f"| `{name}` |" in ENGINE


def test_no_row_is_about_something_that_does_not_exist() -> None:
    rows = set(re.findall(r"^\| `([A-Z]\w+)` \|", ENGINE, re.MULTILINE))
    assert rows <= classes(signals) | classes(effects)


@pytest.mark.parametrize(
    "words", [Health, Doing, Cause, effects.Kind, effects.Severity], ids=lambda w: w.__name__
)
def test_every_word_for_being_well_or_unwell_has_its_row(words: type[StrEnum]) -> None:
    assert [word for word in words if f"| `{word}` |" not in HEALTH] == []


@pytest.mark.parametrize(
    "word",
    (
        "agent beat activity signal finding health flip effect fact order ladder rung respawn claim breaker channel "
        "incarnation hub blind lineage report pending truce lapse brake calm suspicion verdict doing cause evidence "
        "policy profile role canary epoch case probation quarantine tick deadline commit executor principal"
    ).split(),
)
def test_every_word_of_ours_is_in_the_glossary(word: str) -> None:
    assert re.search(rf"^\*\*{word}\b.*?\*\*", GLOSSARY, re.MULTILINE)
