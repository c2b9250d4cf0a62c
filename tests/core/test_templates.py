"""Texts a user may change: facts go in as they are, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.effects import SendNudge
from lifesigns.core.policy import Policy
from lifesigns.core.signals import ErrorReported, NudgeRequested, ToolFinished
from lifesigns.core.templates import NUDGE_FACTS, TEMPLATE_MAX, fault, filled
from lifesigns.errors import PolicyError
from tests.core.harness import START, Watch

FACTS = {"agent_id": "coder-7", "facts": "{agent_id} is {0}"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{agent_id}!", "coder-7!"),
        ("{agent_id}{agent_id}", "coder-7coder-7"),
        ("{{agent_id}} {{}}", "{agent_id} {}"),
        ("{{{agent_id}}}", "{coder-7}"),
        ("{facts}", "{agent_id} is {0}"),
        ("100 % \\1 \\g<0>", "100 % \\1 \\g<0>"),
    ],
)
def test_facts_stand_where_their_names_stood(template: str, text: str) -> None:
    """Braces in a fact are its own: an agent cannot have its words read as a template."""
    assert fault(template, FACTS) == ""
    assert filled(template, FACTS) == text


@pytest.mark.parametrize(
    ("template", "wrong"),
    [
        ("{agent}", "has {agent}, but knows only {agent_id}, {facts}"),
        ("{agent_id.__class__}", "belongs to no name"),
        ("{agent_id[0]}", "belongs to no name"),
        ("{agent_id!r}", "belongs to no name"),
        ("{agent_id:>9999999}", "belongs to no name"),
        ("{}", "belongs to no name"),
        ("{0}", "belongs to no name"),
        ("open {", "belongs to no name"),
        ("} closed", "belongs to no name"),
        ("x" * (TEMPLATE_MAX + 1), "more than 4096"),
    ],
)
def test_there_is_no_way_from_a_name_to_what_belongs_to_it(template: str, wrong: str) -> None:
    assert wrong in fault(template, FACTS)


@given(st.text(alphabet="{}ab_.!0 ", max_size=20))
def test_a_template_without_fault_can_be_filled(template: str) -> None:
    if not fault(template, ["a", "b"]):
        filled(template, {"a": "1", "b": "2"})


def nudged(template: str) -> str:
    watch = Watch(Policy().with_changes({"ladder": {"nudge_template": template}}))
    watch.beat()
    for number in range(2):
        watch.hear(ToolFinished(agent_id="a", call_id=str(number), tool="grep"))
    watch.hear(ErrorReported(agent_id="a", message="disk full", recoverable=False), START + 1)
    return watch.orders(SendNudge)[0].text


def test_a_nudge_says_what_its_template_says() -> None:
    assert nudged("{agent_id} ({since}, {last_tool}): {facts}") == (
        "a (0.0 s, grep x2): Reported an error it cannot recover from: disk full. "
        "Last tool call 1.0 s ago: grep x2."
    )


def test_the_usual_nudge_states_facts_and_what_can_be_done() -> None:
    text = Watch(Policy())
    text.beat()
    text.hear(ErrorReported(agent_id="a", message="disk full", recoverable=False))
    assert text.orders(SendNudge)[0].text.endswith(
        "You can report progress, request a handoff or report a blocker."
    )


def test_a_persons_own_words_are_no_template() -> None:
    watch = Watch(Policy())
    watch.beat()
    watch.hear(NudgeRequested(agent_id="a", by="eva", message="{facts}, please"))
    assert watch.orders(SendNudge)[0].text == "{facts}, please"


@pytest.mark.parametrize("wrong", ["{secret}", "{", 7, None, ["x"]])
def test_a_wrong_template_is_refused_with_its_key(wrong: object) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy().with_changes({"ladder": {"nudge_template": wrong}})
    assert caught.value.key == "ladder.nudge_template"


def test_the_names_are_those_the_docs_promise() -> None:
    assert NUDGE_FACTS == ("agent_id", "facts", "last_tool", "since")
