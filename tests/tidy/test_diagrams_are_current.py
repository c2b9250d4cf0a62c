"""The pictures of the state machines show the tables of the code."""

import shutil
from pathlib import Path

import pytest

from lifesigns.core import breaker, health
from lifesigns.core.health import Health
from lifesigns.core.signals import BreakerState
from tests.tidy.source import ROOT
from tools import diagrams


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A root with only the pages that have pictures."""
    for name in diagrams.PICTURES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_picture_is_current() -> None:
    """If this fails: `make diagrams`, and look at what changed."""
    assert diagrams.main(["--check"]) == 0


@pytest.mark.parametrize("name", diagrams.PICTURES)
def test_a_picture_that_is_not_current_is_found_and_mended(name: str, copied: Path) -> None:
    page = (copied / name).read_text()
    (copied / name).write_text(page.replace("| yes |", "| · |", 1))
    assert diagrams.main(["--check"], copied) == 1
    assert diagrams.main([], copied) == 0
    assert diagrams.main(["--check"], copied) == 0
    assert (copied / name).read_text() == page


def test_a_change_of_the_health_table_changes_its_picture() -> None:
    """Also one inside of the five states that are drawn as one: they are that no longer."""
    narrower = {**health.LEGAL, Health.STUCK: health.LEGAL[Health.STUCK] - {Health.FAILING}}
    with pytest.raises(SystemExit, match="stuck"):
        diagrams.health_picture(narrower)


def test_a_change_that_nobody_explained_is_found() -> None:
    wider = {
        **breaker.LEGAL,
        BreakerState.CLOSED: breaker.LEGAL[BreakerState.CLOSED] | {BreakerState.HALF_OPEN},
    }
    with pytest.raises(SystemExit, match="half_open"):
        diagrams.breaker_picture(wider)


def test_an_explanation_of_an_illegal_change_is_found() -> None:
    shut = {**breaker.LEGAL, BreakerState.OPEN: breaker.LEGAL[BreakerState.OPEN] - {BreakerState.HALF_OPEN}}
    with pytest.raises(SystemExit, match="half_open"):
        diagrams.breaker_picture(shut)


def test_a_page_without_markers_is_found(copied: Path) -> None:
    name = next(iter(diagrams.PICTURES))
    (copied / name).write_text("# Health\n")
    with pytest.raises(SystemExit, match="markers"):
        diagrams.outdated(copied)
