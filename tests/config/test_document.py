from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.config import yaml_file
from lifesigns.config.errors import ConfigErrors


def refusal(text: str) -> str:
    with pytest.raises(ConfigErrors) as caught:
        yaml_file.parse(text, "f.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-7", 1e-7),
        ("300", 300),
        ("010", 10),
        ("1.5", 1.5),
        ("12:30", "12:30"),
        ("2026-11-15", "2026-11-15"),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ('"5"', "5"),
        ("5 min", "5 min"),
        ("[60, 120]", [60, 120]),
    ],
)
def test_values_are_what_a_reader_of_the_file_would_think(text: str, value: object) -> None:
    assert yaml_file.parse(f"key: {text}", "f.yaml").value == {"key": value}


def test_every_key_knows_its_line() -> None:
    read = yaml_file.parse("a:\n  b: 1\n\n  c:\n    d: 2\n", "f.yaml")
    assert read.where(("a", "c", "d")) == "f.yaml:5"


def test_keys_are_text_even_if_they_look_like_something_else() -> None:
    assert yaml_file.parse("on: 1\n7: 2", "f.yaml").value == {"on": 1, "7": 2}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~"])
def test_an_empty_file_is_fine(text: str) -> None:
    assert yaml_file.parse(text, "f.yaml").value is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\nb: [1\n", "f.yaml:3: while parsing a flow sequence"),
        ("a: 1\n\tb: 2\n", "f.yaml:2: "),
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: 'a' stands here twice, first on line 1"),
        ("x:\n  a: 1\n  a: 1\n", "f.yaml:3: 'a' stands here twice, first on line 2"),
        ("- 1\n", "f.yaml: needs `key: value` lines"),
        ("just words\n", "f.yaml: needs `key: value` lines"),
        ("x: &a 1\n", "f.yaml:1: anchors are not read"),
        ("x: *a\n", "f.yaml:1: aliases are not read"),
        (
            "agents:\n  *-coder: {}\n",
            "f.yaml:2: aliases are not read; a pattern that begins with *",
        ),
        ("x: !!python/object/apply:os.system [ls]\n", "f.yaml:1: tags are not read"),
        ("x: !!binary aGVsbG8=\n", "f.yaml:1: tags are not read"),
        ("? [a]\n: 1\n", "f.yaml:1: a key must be a single word"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: "),
        ("x: \0\n", "unacceptable character"),
        ("a: " + "[" * 100_000, "f.yaml:1: is nested deeper than 16 levels"),
        ("a: " + "{a: " * 100_000, "f.yaml:1: is nested deeper than 16 levels"),
        ("- " * 100_000, "f.yaml:1: is nested deeper than 16 levels"),
        ("a: [" + "1," * yaml_file.NODES_MAX + "]", "f.yaml:1: has more than 50000 keys and values"),
    ],
)
def test_what_cannot_be_read_names_file_and_line(text: str, complaint: str) -> None:
    assert complaint in refusal(text)


def test_a_page_of_aliases_that_means_a_gigabyte_is_refused_at_its_first_anchor() -> None:
    """The billion laughs."""
    bomb = "a: &a [lol, lol, lol]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert "f.yaml:1: anchors are not read" in refusal(bomb)


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"#" * yaml_file.SIZE_MAX)
    assert yaml_file.read(path).value is None
    path.write_bytes(b"#" * (yaml_file.SIZE_MAX + 1))
    with pytest.raises(ConfigErrors, match="is larger than 1024 KiB"):
        yaml_file.read(path)


def test_a_file_that_is_not_text_or_not_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(ConfigErrors, match=r"latin\.yaml:2: is not UTF-8"):
        yaml_file.read(path)
    with pytest.raises(ConfigErrors, match="cannot be read"):
        yaml_file.read(tmp_path)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfprofile: swift\n")
    assert yaml_file.read(path).value == {"profile": "swift"}


@given(st.text(max_size=200))
def test_no_text_does_worse_than_a_config_error(text: str) -> None:
    with suppress(ConfigErrors):
        yaml_file.parse(text, "f.yaml")
