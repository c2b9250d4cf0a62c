"""Every example in the README and the docs does what the page says."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, load_yaml, run, shown

KNOWN = {"", "python", "python other", "text", "sh", "console", "json", "mermaid", "make", "toml"} | {
    "yaml",
    "yaml wrong",
    "yaml other",
}


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if any(b.info.startswith(language) for b in blocks(page.read_text()))]


@pytest.mark.parametrize("page", pages_with("python"), ids=shown)
def test_its_python_runs_and_prints_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders that name no hub find one here that takes everything. That a copied example reports to a real one is shown by
    `tests/journeys/test_readme.py`."""
    monkeypatch.setenv("LIFESIGNS_HUB", "memory://docs")
    assert run(page) == []


@pytest.mark.parametrize("page", pages_with("yaml"), ids=shown)
def test_its_lifesigns_yaml_loads(page: Path, tmp_path: Path) -> None:
    assert load_yaml(page, tmp_path) == []


def test_blocks_say_what_they_are() -> None:
    """A block with a misspelt name would not be tested, and nobody would know."""
    named = {(shown(page), block.info) for page in PAGES for block in blocks(page.read_text())}
    assert {(page, info) for page, info in named if info not in KNOWN} == set()


def test_there_is_something_to_run() -> None:
    """Keeps the others honest: they would pass on pages without code."""
    readme = [block.info for block in blocks((ROOT / "README.md").read_text())]
    assert "python" in readme
    assert sum(block.info == "python" for page in PAGES for block in blocks(page.read_text())) >= 8


# --- the runner bites ----------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_code_that_raises_fails_at_its_line_of_the_page(page: Path) -> None:
    page.write_text("# Title\n\n```python\nhere = 1\nlifesigns.brew()\n```\n")
    with pytest.raises(NameError) as caught:
        run(page)
    assert caught.traceback[-1].lineno == 4  # pytest counts from 0: it is the fifth line of the page


def test_an_import_that_does_not_exist_fails(page: Path) -> None:
    page.write_text("```python\nfrom lifesigns import Teapot\n```\n")
    with pytest.raises(ImportError):
        run(page)


def test_output_that_differs_is_found(page: Path) -> None:
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    assert len(run(page)) == 1
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n")
    assert run(page) == []


def test_text_that_is_not_output_is_left_in_peace(page: Path) -> None:
    page.write_text("```python\nprint(2)\n```\nA picture:\n```text\nhere ──► there\n```\n")
    assert run(page) == []


def test_blocks_of_a_page_share_their_names_and_pages_do_not(page: Path) -> None:
    page.write_text("```python\nx = 1\n```\nand then\n```python\nassert x == 1\n```\n")
    assert run(page) == []
    page.write_text("```python\nassert x == 1\n```\n")
    with pytest.raises(NameError):
        run(page)


@pytest.mark.parametrize(
    ("info", "text", "problems"),
    [
        ("yaml", "profile: swift", 0),
        ("yaml", "profil: swift", 1),
        ("yaml wrong", "profil: swift", 0),
        ("yaml wrong", "profile: swift", 1),
        ("yaml other", "on: push", 0),
    ],
)
def test_yaml_is_loaded(info: str, text: str, problems: int, page: Path, tmp_path: Path) -> None:
    page.write_text(f"```{info}\n{text}\n```\n")
    assert len(load_yaml(page, tmp_path)) == problems
