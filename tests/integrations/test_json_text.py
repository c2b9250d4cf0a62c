"""A change of JSON text: it says what it should, and what did not change keeps its every sign."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lifesigns.integrations.hooks.json_text import changed_text

SPACE = st.sampled_from(["", " ", "\n", "\n    ", "\t", " \n  "])
KEYS = st.text(max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """This value as a person may write it."""

    def space() -> str:
        return draw(SPACE)

    def text(value: Any) -> str:
        if isinstance(value, dict):
            inner = [
                f"{space()}{json.dumps(key)}{space()}:{space()}{text(one)}{space()}"
                for key, one in value.items()
            ]
            return "{" + (",".join(inner) or space()) + "}"
        if isinstance(value, list):
            return "[" + (",".join(f"{space()}{text(one)}{space()}" for one in value) or space()) + "]"
        return json.dumps(value)

    return space() + text(value) + space()


@given(st.data(), VALUES, VALUES)
def test_it_says_what_it_should_whatever_it_said(data: st.DataObject, old: Any, new: Any) -> None:
    assert json.loads(changed_text(data.draw(written(old)), new)) == new


@given(st.data(), VALUES)
def test_a_text_that_says_it_already_stays_as_it_is(data: st.DataObject, value: Any) -> None:
    text = data.draw(written(value))
    assert changed_text(text, value) == text


@given(st.data(), st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), VALUES)
def test_a_member_that_comes_and_goes_leaves_no_trace(
    data: st.DataObject, value: dict[str, Any], new: Any
) -> None:
    text = data.draw(written(value))
    there = changed_text(text, {**value, "quite new": new})
    assert json.loads(there) == {**value, "quite new": new}
    assert changed_text(there, value) == text


@given(st.data(), st.lists(VALUES, min_size=1, max_size=4), VALUES)
def test_an_item_that_comes_and_goes_leaves_no_trace(data: st.DataObject, value: list[Any], new: Any) -> None:
    text = data.draw(written({"items": value}))
    there = changed_text(text, {"items": [*value, new]})
    assert json.loads(there) == {"items": [*value, new]}
    assert changed_text(there, {"items": value}) == text


def test_what_is_new_and_what_is_left_stand_as_a_person_would_write_them() -> None:
    assert changed_text('{"a": 1, "b": 2}', {"b": 2}) == '{"b": 2}'
    assert changed_text('{"a":1,"b":2}', {"a": 1, "b": 2, "c": 3}) == '{"a":1,"b":2, "c": 3}'
    assert changed_text('{\n  "a": {}\n}\n', {"a": {"b": [1]}}) == (
        '{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}\n'
    )
