"""Every threshold, the relations they must keep, and which agent gets which."""

from collections.abc import Mapping
from contextlib import suppress
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.config.load import assemble, defaults
from lifesigns.config.yaml_file import parse
from lifesigns.core.policy import HOUR, MINUTE, BreakerPolicy, FleetPolicy, Policy
from lifesigns.core.policy_bounds import TIGHTER, OwnPolicy, flat
from lifesigns.core.profiles import DEFAULT_PROFILE, FIRST, OWN_MAX, PROFILES, ROLES, PolicyBook, profile
from lifesigns.errors import PolicyError

# --- profiles and roles, as the contract names them ----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "interval", "timeout"),
    [
        ("swift", 1.0, 3.0),
        ("balanced", 2.0, 5.0),
        ("tolerant", 3.0, 10.0),
        ("swarm", 5.0, 15.0),
        ("fast_tasks", 2 * MINUTE, 5 * MINUTE),
        ("fleet", 5 * MINUTE, 10 * MINUTE),
        ("long_tasks", 10 * MINUTE, 30 * MINUTE),
    ],
)
def test_a_profile_has_the_interval_and_timeout_of_the_contract(
    name: str, interval: float, timeout: float
) -> None:
    silence = profile(name).silence
    assert (silence.interval, silence.timeout) == (interval, timeout)


def test_the_contract_knows_all_profiles_and_roles() -> None:
    assert set(PROFILES) == {"swift", "balanced", "tolerant", "swarm", "fast_tasks", "fleet", "long_tasks"}
    assert set(ROLES) == {"critical-infrastructure", "active-development", "background", "standby"}


def test_swarm_is_the_default() -> None:
    assert DEFAULT_PROFILE == "swarm"
    assert PolicyBook().of("anybody") == profile("swarm") == Policy()


def test_balanced_waits_a_second_for_a_ping_and_allows_two_missed_beats() -> None:
    assert profile("balanced").silence.ping_wait == 1.0
    assert profile("balanced").silence.missed_max == 2


def test_tolerant_allows_three_missed_beats() -> None:
    assert profile("tolerant").silence.missed_max == 3


@pytest.mark.parametrize(
    ("name", "asked_for"), [("fast_tasks", 30.0), ("fleet", MINUTE), ("long_tasks", 5 * MINUTE)]
)
def test_a_slow_profile_asks_for_as_long_as_the_contract_says(name: str, asked_for: float) -> None:
    silence = profile(name).silence
    assert silence.pings * silence.ping_wait == asked_for


@pytest.mark.parametrize(
    ("role", "interval", "missed"),
    [
        ("critical-infrastructure", 30.0, 2),
        ("active-development", 60.0, 3),
        ("background", 5 * MINUTE, 3),
        ("standby", 15 * MINUTE, 5),
    ],
)
def test_a_role_has_the_interval_and_missed_beats_of_the_contract(
    role: str, interval: float, missed: int
) -> None:
    silence = PolicyBook().of("a", role).silence
    assert (silence.interval, silence.missed_max) == (interval, missed)
    assert silence.timeout == interval * missed


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_possible_on_top_of_every_profile(name: str, role: str) -> None:
    assert PolicyBook(profile(name)).of("a", role).silence.interval == ROLES[role]["silence"]["interval"]


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_convicts_nobody_later_than_its_timeout(name: str) -> None:
    s = profile(name).silence
    assert s.suspect_after + s.pings * s.ping_wait <= s.timeout


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_suspects_nobody_before_a_beat_is_late(name: str) -> None:
    s = profile(name).silence
    assert s.suspect_after > s.interval


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PolicyError, match="'swrm' is unknown; known are swift") as error:
        profile("swrm")
    assert error.value.key == "profile"


# --- impossible relations ------------------------------------------------------------------------------

IMPOSSIBLE = [
    ("silence.interval", {"silence": {"interval": 0}}),
    ("silence.timeout", {"silence": {"interval": 5, "timeout": 5}}),
    ("silence.timeout", {"silence": {"interval": 60}}),
    ("silence.missed_max", {"silence": {"missed_max": 0}}),
    ("silence.pings", {"silence": {"pings": 0}}),
    ("silence.ping_wait", {"silence": {"ping_wait": 5}}),
    ("silence.false_suspicion_rate", {"silence": {"false_suspicion_rate": 0}}),
    ("silence.false_suspicion_rate", {"silence": {"false_suspicion_rate": 1}}),
    ("freeze.conclusive_after", {"freeze": {"after": 61}}),
    ("stall.checkpoint_stuck_after", {"stall": {"checkpoint_stuck_after": 599}}),
    ("looping.same_notice", {"looping": {"same_notice": 1}}),
    ("looping.same_notice", {"looping": {"same_stuck": 13}}),
    ("looping.error_notice", {"looping": {"error_notice": 6}}),
    ("looping.cycle_notice", {"looping": {"cycle_notice": 6}}),
    ("looping.changing_notice", {"looping": {"changing_notice": 61}}),
    ("looping.recent_notice", {"looping": {"recent_notice": 31}}),
    ("erring.rate_max", {"erring": {"rate_max": 0}}),
    ("erring.rate_max", {"erring": {"rate_max": 1.1}}),
    ("spending.soft", {"spending": {"soft": 1.1}}),
    ("erring.context_full", {"erring": {"context_full": 1.01}}),
    ("erring.context_calls", {"erring": {"context_calls": 1}}),
    ("overload.cpu_unhealthy", {"overload": {"cpu_unhealthy": 69}}),
    ("overload.memory_unhealthy_mb", {"overload": {"memory_unhealthy_mb": 4095}}),
    ("respawn.backoff", {"respawn": {"backoff": []}}),
    ("respawn.backoff", {"respawn": {"backoff": [60, HOUR]}}),
    ("claim.lease", {"claim": {"lease": 5}}),
    ("message.urgent", {"message": {"urgent": 301}}),
    ("breaker.failure_threshold", {"breaker": {"failure_threshold": 0}}),
    ("breaker.half_open_requests", {"breaker": {"half_open_requests": 0}}),
    ("breakers.tool_execution.backoff_factor", {"breakers": {"tool_execution": {"backoff_factor": 0.5}}}),
    ("breakers.mine.failure_threshold", {"breakers": {"mine": {"failure_threshold": 0}}}),
]


@pytest.mark.parametrize(("key", "changes"), IMPOSSIBLE)
def test_an_impossible_relation_is_refused_naming_the_key(key: str, changes: Mapping[str, Any]) -> None:
    with pytest.raises(PolicyError) as error:
        Policy().with_changes(changes)
    assert error.value.key == key
    assert str(error.value).startswith(f"{key}: ")


@pytest.mark.parametrize(
    "changes",
    [
        {"silence": {"timeout": 9.01}},
        {"freeze": {"after": 60}},
        {"stall": {"checkpoint_stuck_after": 600}},
        {"looping": {"same_notice": 2, "same_stuck": 2, "same_conclusive": 2}},
        {"erring": {"rate_max": 1}},
        {"overload": {"cpu_unhealthy": 70}},
        {"respawn": {"backoff": [HOUR]}},
        {"message": {"urgent": 300}},
    ],
)
def test_a_relation_that_just_holds_is_accepted(changes: Mapping[str, Any]) -> None:
    policy = Policy().with_changes(changes)
    for section, values in changes.items():
        for name, value in values.items():
            found = getattr(getattr(policy, section), name)
            assert found == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize("value", [-1, nan, inf, 10**400])
def test_only_finite_numbers_from_zero_up_are_durations(value: float) -> None:
    with pytest.raises(PolicyError) as error:
        Policy().with_changes({"ladder": {"nudge_every": value}})
    assert error.value.key == "ladder.nudge_every"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"brake_share": 0.0}, "fleet.brake_share"),
        ({"brake_share": 1.1}, "fleet.brake_share"),
        ({"tick_every": nan}, "fleet.tick_every"),
        ({"agents_max": -1}, "fleet.agents_max"),
    ],
)
def test_a_fleet_policy_is_checked_too(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(PolicyError) as error:
        FleetPolicy(**changes)
    assert error.value.key == key


# --- but -----------------------------------------------------------------------------------------------


def test_but_changes_what_is_named_and_nothing_else() -> None:
    changed = Policy().with_changes({"silence": {"interval": 4}, "claim": {"grace": 1}})
    assert changed.silence.interval == 4
    assert changed.silence.timeout == 15
    assert changed.claim.grace == 1
    assert changed.ladder == Policy().ladder


def test_but_leaves_the_original_alone() -> None:
    policy = Policy()
    policy.with_changes({"silence": {"interval": 4}})
    assert policy == Policy()


def test_a_changed_silence_is_suspected_by_its_new_numbers() -> None:
    assert Policy().with_changes({"silence": {"interval": 4}}).silence.suspect_after == 10.0


def test_a_breaker_that_is_named_keeps_the_values_that_are_not() -> None:
    changed = Policy().with_changes({"breakers": {"tool_execution": {"failure_threshold": 7}, "mine": {}}})
    assert changed.breakers["tool_execution"] == BreakerPolicy(failure_threshold=7, recovery_timeout=30.0)
    assert changed.breakers["checkpoint_write"] == Policy().breakers["checkpoint_write"]
    assert changed.breakers["mine"] == BreakerPolicy()


def test_a_cap_can_be_set_and_lifted() -> None:
    capped = Policy().with_changes({"spending": {"tokens_max": 100}})
    assert capped.spending.tokens_max == 100
    assert capped.with_changes({"spending": {"tokens_max": None}}).spending.tokens_max is None


@pytest.mark.parametrize(
    ("changes", "key", "detail"),
    [
        ({"silense": {}}, "silense", "is unknown; known are"),
        ({"silence": {"intervall": 1}}, "silence.intervall", "is unknown; known are"),
        ({"silence": {"suspect_after": 1}}, "silence.suspect_after", "is unknown"),
        ({"breakers": {"x": {"y": 1}}}, "breakers.x.y", "is unknown"),
        ({"silence": 5}, "silence", "needs named values, not 5"),
        ({"breakers": 5}, "breakers", "needs named values, not 5"),
        ({"breakers": {"x": 5}}, "breakers.x", "needs named values, not 5"),
        ({"silence": {"interval": "5"}}, "silence.interval", "needs a number, not '5'"),
        ({"silence": {"interval": True}}, "silence.interval", "needs a number, not True"),
        ({"silence": {"interval": None}}, "silence.interval", "needs a number"),
        ({"silence": {"missed_max": 2.5}}, "silence.missed_max", "needs a whole number, not 2.5"),
        ({"silence": {"missed_max": nan}}, "silence.missed_max", "needs a whole number, not nan"),
        ({"silence": {"adaptive": 1}}, "silence.adaptive", "needs true or false, not 1"),
        ({"respawn": {"backoff": 60}}, "respawn.backoff", "needs a list, not 60"),
        ({"respawn": {"backoff": ["60"]}}, "respawn.backoff", "needs a list of numbers"),
        ({"respawn": {"backoff": [True]}}, "respawn.backoff", "needs a list of numbers"),
        ({"looping": {"polling_tools": [5]}}, "looping.polling_tools", "needs a list of words"),
        ({"spending": {"tokens_max": "100"}}, "spending.tokens_max", "needs a number, not '100'"),
    ],
)
def test_a_key_or_value_that_cannot_be_is_named(changes: Mapping[str, Any], key: str, detail: str) -> None:
    with pytest.raises(PolicyError) as error:
        Policy().with_changes(changes)
    assert error.value.key == key
    assert detail in error.value.detail


SECTIONS = Policy.__struct_fields__
KEYS = sorted(
    {key for name in SECTIONS if name != "breakers" for key in getattr(Policy(), name).__struct_fields__}
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(SECTIONS),
        VALUES | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), VALUES, max_size=3),
        max_size=3,
    )
)
def test_whatever_is_asked_for_is_possible_or_a_policy_error(changes: Mapping[str, Any]) -> None:
    """An agent may ask for a policy of its own: nothing it says may be more than refused."""
    with suppress(PolicyError):
        assert isinstance(Policy().with_changes(changes), Policy)


# --- the book ------------------------------------------------------------------------------------------


def test_later_words_win_role_then_pattern_then_its_own() -> None:
    book = PolicyBook(
        roles={"r": {"silence": {"interval": 2, "timeout": 20, "pings": 3}}},
        agents={"coder-*": {"silence": {"timeout": 30, "missed_max": 4}}},
    )
    policy = book.of("coder-7", "r", OwnPolicy({}, {"silence": {"missed_max": 5}})).silence
    assert (policy.interval, policy.pings, policy.timeout, policy.missed_max) == (2, 3, 30, 5)
    assert book.of("coder-7", "r").silence.missed_max == 4
    assert book.of("other-7", "r").silence.timeout == 20
    assert book.of("other-7").silence == Policy().silence


def test_every_matching_pattern_counts_the_later_one_more() -> None:
    book = PolicyBook(
        agents={
            "a*": {"silence": {"timeout": 20, "missed_max": 4}},
            "ab*": {"silence": {"timeout": 30}},
            "b*": {"silence": {"timeout": 40}},
        }
    )
    assert book.of("abc").silence.timeout == 30
    assert book.of("abc").silence.missed_max == 4
    assert book.of("ac").silence.timeout == 20


def test_an_unknown_role_gets_the_default() -> None:
    assert PolicyBook().of("a", "nobody-knows") == Policy()


def test_equal_words_share_a_page() -> None:
    """A million agents of one role have one policy."""
    book = PolicyBook(agents={"a*": {"silence": {"timeout": 20}}})
    assert book.number("a1") == book.number("a2") != book.number("b1") == book.number("b2") == 0
    assert book.number("b1", "standby") == book.number("b2", "standby")
    own = OwnPolicy({"silence": {"timeout": 25}}, {})
    assert book.number("b1", None, own) == book.number("b2", None, OwnPolicy(dict(own.words), {}))


def test_an_own_word_is_not_mistaken_for_a_pattern() -> None:
    own = OwnPolicy({"silence": {"timeout": 25}}, {})
    book = PolicyBook(agents={repr(own): {"silence": {"timeout": 40}}})
    assert book.of("x", None, own).silence.timeout == 25


def test_a_wrong_role_or_pattern_is_refused_when_the_book_is_made() -> None:
    with pytest.raises(PolicyError) as error:
        PolicyBook(roles={"r": {"silence": {"timeout": 1}}})
    assert error.value.key == "roles.r.silence.timeout"
    with pytest.raises(PolicyError) as error:
        PolicyBook(agents={"x-*": {"silense": {}}})
    assert error.value.key == "agents.x-*.silense"


def test_a_pattern_that_is_impossible_on_top_of_a_role_leaves_the_role_and_says_so() -> None:
    book = PolicyBook(agents={"a*": {"silence": {"timeout": 20}}})
    assert book.of("a1", "standby") == book.of("b1", "standby")
    assert list(book.conflicts) == ["agents.a* on top of role standby"]


def test_an_impossible_own_word_is_refused() -> None:
    with pytest.raises(PolicyError) as error:
        PolicyBook().number("a", None, OwnPolicy({"silence": {"timeout": 1}}, {}))
    assert error.value.key == "silence.timeout"


def words(timeout: float, source: str = "token") -> OwnPolicy:
    return OwnPolicy({"silence": {"timeout": timeout}}, {}, source)


def test_own_words_fill_only_what_their_token_may_use_and_make_room_when_unused() -> None:
    book = PolicyBook()
    pages = [book.number("a", None, words(20.0 + n)) for n in range(OWN_MAX)]
    for page in pages:
        book.move(FIRST, page)
    with pytest.raises(PolicyError, match="different policies of this token"):
        book.number("a", None, words(19.0))
    assert book[book.number("b", None, words(19.0, "another"))].silence.timeout == 19
    assert book.number("b", None, words(20.0, "another")) == pages[0]  # The same words are the same page.
    book.move(pages[0], FIRST)
    assert book[book.number("a", None, words(18.0))].silence.timeout == 18
    assert len(book.policies) == OWN_MAX + 2  # The page that nobody uses was used again.


def test_words_that_are_too_long_are_refused() -> None:
    many = {f"name-{n}": {"failure_threshold": 3} for n in range(500)}
    with pytest.raises(PolicyError, match="signs, over the limit"):
        PolicyBook().number("a", None, OwnPolicy({"breakers": many}, {}))


Words = Mapping[str, Any]

# --- what an agent may change -----------------------------------------------------------------------------------


def test_every_key_has_a_direction_and_every_direction_a_key() -> None:
    known = {(section, key) for section in SECTIONS for key in keys_of(section)}
    assert set(TIGHTER) == {("breaker" if a == "breakers" else a, b) for a, b in known}


def keys_of(section: str) -> tuple[str, ...]:
    value = BreakerPolicy() if section == "breakers" else getattr(Policy(), section)
    return value.__struct_fields__


LOOSER = [
    ({"spending": {"cost_max": 10.0}}, {"spending": {"cost_max": None}}),
    ({"spending": {"cost_max": 10.0}}, {"spending": {"cost_max": 10.5}}),
    ({"silence": {"timeout": 15.0}}, {"silence": {"timeout": 600.0}}),
    ({"silence": {"false_suspicion_rate": 1e-5}}, {"silence": {"false_suspicion_rate": 1e-9}}),
    ({"stall": {"checkpoint_expected": True}}, {"stall": {"checkpoint_expected": False}}),
    ({"ladder": {"escalation_timeout": 60.0}}, {"ladder": {"escalation_timeout": 61.0}}),
    ({"ladder": {"nudge_template": "{facts}"}}, {"ladder": {"nudge_template": "Go on."}}),
    ({"looping": {"polling_tools": ["wait"]}}, {"looping": {"polling_tools": ["wait", "*"]}}),
    ({"respawn": {"enabled": False}}, {"respawn": {"enabled": True}}),
    ({"breakers": {"llm": {"failure_threshold": 2}}}, {"breakers": {"llm": {"failure_threshold": 9}}}),
    ({}, {"ladder": {"enabled": False}}),
]


@pytest.mark.parametrize(("set_to", "said"), LOOSER)
@pytest.mark.parametrize("by", ["file", "pattern", "role", "operator"])
def test_what_the_administrator_set_is_a_ceiling(set_to: Words, said: Words, by: str) -> None:
    book = PolicyBook(
        Policy().with_changes(set_to if by == "file" else {}),
        agents={"a*": set_to} if by == "pattern" else {},
        roles={"r": set_to} if by == "role" else {},
        fixed=flat(set_to) if by == "file" else (),
    )
    granted = set_to if by == "operator" else {}
    number = book.number("a", "r", OwnPolicy(said, granted))
    assert book[number] == Policy().with_changes(set_to)
    assert "as the administrator set it" in book.refused[number][0]


@pytest.mark.parametrize(("set_to", "said"), LOOSER[:-1])
def test_what_nobody_set_is_the_agents(set_to: Words, said: Words) -> None:
    assert PolicyBook().of("a", None, OwnPolicy(said, {})) == Policy().with_changes(said)


def test_an_agent_can_tighten_what_the_administrator_set() -> None:
    book = PolicyBook(Policy().with_changes({"spending": {"cost_max": 10.0}, "respawn": {"enabled": True}}))
    said = {"spending": {"cost_max": 5.0, "tokens_max": 100}, "respawn": {"enabled": False}}
    number = book.number("a", None, OwnPolicy(said, {}))
    assert (book[number], book.refused[number]) == (Policy().with_changes(said), [])


def test_an_operator_may_loosen_and_the_agent_stays_below_that() -> None:
    book = PolicyBook(Policy().with_changes({"spending": {"cost_max": 10.0}}))
    granted, said = {"spending": {"cost_max": 50.0}}, {"spending": {"cost_max": 60.0}}
    assert book.of("a", None, OwnPolicy(said, granted)).spending.cost_max == 50


def test_a_value_that_is_as_usual_is_a_ceiling_if_the_file_says_it() -> None:
    config = assemble(parse("policy: {silence: {timeout: 15s}}", "lifesigns.yaml"), {}, {})
    assert config.policies.of("a", None, words(60.0)).silence.timeout == 15
    assert defaults().policies.of("a", None, words(60.0)).silence.timeout == 60
