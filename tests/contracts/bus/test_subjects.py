"""Which subject is meant by which pattern."""

from hypothesis import given
from hypothesis import strategies as st

from lifesigns.adapters.bus.subjects import check_pattern, check_subject, matcher

WORDS = st.sampled_from(["a", "b", "a-b", "x:y@z/1", "[a]", "a?", "\\", "+"])
SUBJECTS = st.lists(WORDS, min_size=1, max_size=5).map(".".join)
PATTERNS = st.tuples(
    st.lists(WORDS | st.just("*"), min_size=1, max_size=4), st.sampled_from([[], [">"]])
).map(lambda parts: ".".join([*parts[0], *parts[1]]))


def is_meant(pattern: list[str], subject: list[str]) -> bool:
    """The rule of NATS, word by word."""
    if not pattern or not subject:
        return pattern == subject
    if pattern == [">"]:
        return True
    return pattern[0] in ("*", subject[0]) and is_meant(pattern[1:], subject[1:])


@given(PATTERNS, SUBJECTS)
def test_a_pattern_means_what_the_rule_says_word_by_word(pattern: str, subject: str) -> None:
    check_pattern(pattern)
    check_subject(subject)
    assert matcher(pattern)(subject) == is_meant(pattern.split("."), subject.split("."))


@given(SUBJECTS)
def test_a_subject_without_wildcards_means_itself(subject: str) -> None:
    assert matcher(subject)(subject)
    assert not matcher(subject)(f"{subject}.x")
    assert matcher(">")(subject)
