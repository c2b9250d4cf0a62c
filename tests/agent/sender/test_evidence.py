"""Digests of a call, as the sender makes them."""

from __future__ import annotations

import pytest

from lifesigns.agent.sender import evidence


def test_no_arguments_are_comparable_and_unlike_any_other() -> None:
    assert evidence.of_arguments(None) == evidence.of_arguments(None) != ""
    assert evidence.of_arguments(None) not in (evidence.of_arguments({}), evidence.of_arguments(""))


def test_json_text_is_the_same_as_what_it_says() -> None:
    text, value = '{"b": [2, null], "a": 1}', {"a": 1, "b": [2, None]}
    assert evidence.of_result(text) == evidence.of_result(value)
    assert evidence.of_arguments(text) == evidence.of_arguments(value)
    assert evidence.of_arguments('{"id": 1}') != evidence.of_arguments({"id": 2})
    assert evidence.of_result('{"took": 5}') == evidence.of_result({"took": 7})


@pytest.mark.parametrize("text", ["{", "[1, 2", "{not json}", "[" * 60_000, "1", "", "\ud800[", "[\ud800]"])
def test_text_that_is_no_json_is_text(text: str) -> None:
    assert evidence.of_result(text) == evidence.of_result(text) != ""


@pytest.mark.parametrize("kib", [5, 12, 30])
def test_what_is_volatile_does_not_count_in_the_middle_of_a_long_result_either(kib: int) -> None:
    lines = "some line of a log\n" * (kib * 1024 // 38)
    made = [evidence.of_result(f"{lines}took 3m{n}s, 4{n}% at line {n}\n{lines}") for n in (5, 12)]
    assert made[0] == made[1]
    assert evidence.of_result(f"{lines}3 failed\n{lines}") != evidence.of_result(f"{lines}2 failed\n{lines}")
