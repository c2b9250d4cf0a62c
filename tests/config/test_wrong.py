"""What is wrong is said in the words of the person who wrote it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifesigns.config.document import Document
from lifesigns.config.errors import ConfigErrors
from lifesigns.config.load import SCHEMA, assemble
from lifesigns.config.schema import ANY, readers_of
from lifesigns.errors import PolicyError
from tests.config.conftest import Complained, Said


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "health_monitoring: {heartbeat: {interval_seconds: 300, timeout_seconds: 200}}",
            "health_monitoring.heartbeat.timeout_seconds: 200 s is not longer than the interval of 300 s",
        ),
        (
            "health_monitoring: {heartbeat: {interval_seconds: 900}}",
            "health_monitoring.heartbeat.interval_seconds: does not fit policy.silence.timeout: "
            "600 s is not longer than the interval of 900 s",
        ),
        (
            "health_monitoring: {recovery: {backoff_seconds: [60, 2h]}}",
            "health_monitoring.recovery.backoff_seconds: [60, 7200] s are together longer than the hour",
        ),
        (
            "health_monitoring: {circuit_breaker: {overrides: {api: {half_open_requests: 0}}}}",
            "health_monitoring.circuit_breaker.overrides.api.half_open_requests: must be at least 1",
        ),
        (
            "policy: {silence: {timeout: 4}}",
            "policy.silence.timeout: 4 s is not longer than the interval of 5 s",
        ),
        (
            "policy: {silence: {interval: 4000, timeout: 8000}}",
            "policy.silence.interval: does not fit policy.claim.lease: 600 s is not longer than the interval of 4000 s",
        ),
        (
            "roles: {background: {silence: {timeout: 20}}}",
            "roles.background.silence.timeout: 20 s is not longer than the interval of 300 s",
        ),
        (
            "agents: {'coder-*': {silence: {interval: 30}}}",
            "agents.coder-*.silence.interval: does not fit agents.coder-*.silence.timeout",
        ),
        ("listen: {port: eight}", "listen.port: needs a port from 0 to 65535, not 'eight'"),
        ("fleet: {brake_share: 2}", "fleet.brake_share: 2 is not between 0 and 1"),
    ],
)
def test_an_impossible_relation_names_the_key_that_was_written(
    complained: Complained, text: str, complaint: str
) -> None:
    (error,) = complained(text)
    assert str(error).startswith(complaint)
    assert error.where.endswith("lifesigns.yaml:1")


def test_a_word_for_all_that_makes_a_role_impossible_names_both(complained: Complained) -> None:
    """Otherwise the hub would find out when the first agent of that role speaks."""
    (error,) = complained("profile: long_tasks\npolicy: {silence: {pings: 7}}\n")
    assert str(error).startswith(
        "policy.silence.pings: does not fit roles.critical-infrastructure.silence.ping_wait: "
        "7 pings of 5 s leave no time for a beat every 30 s within the timeout of 60 s"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("profle: swift", "profle: is unknown; did you mean profile?"),
        ("profile: swfit", "profile: 'swfit' is unknown; did you mean swift?"),
        ("silence: {interval: 1}", "silence: is unknown here; did you mean policy.silence?"),
        ("heartbeat: {}", "heartbeat: is unknown here; did you mean health_monitoring.heartbeat?"),
        (
            "health_monitoring: {hartbeat: {}}",
            "health_monitoring.hartbeat: is unknown; did you mean heartbeat?",
        ),
        (
            "health_monitoring: {heartbeat: {interval: 3}}",
            "health_monitoring.heartbeat.interval: is unknown; did you mean interval_seconds?",
        ),
        (
            "policy: {silence: {intervall: 1}}",
            "policy.silence.intervall: is unknown; did you mean interval?",
        ),
        (
            "policy: {freeze: {zzz: 1}}",
            "policy.freeze.zzz: is unknown; known are after, conclusive_after",
        ),
        (
            "agents: {x: {role: backgrund}}",
            "agents.x.role: 'backgrund' is unknown; did you mean background?",
        ),
        ("agents: {x: {polcy: 1}}", "agents.x.polcy: is unknown"),
        (
            "roles: {x: {profile: swfit}}",
            "roles.x.profile: 'swfit' is unknown; did you mean swift?",
        ),
        (
            "health_monitoring: {alerting: {stuck_agents: {}}}",
            "health_monitoring.alerting.stuck_agents: is unknown; did you mean stuck_agent?",
        ),
    ],
)
def test_an_unknown_name_is_told_its_nearest_neighbour(
    complained: Complained, text: str, complaint: str
) -> None:
    (error,) = complained(text)
    assert str(error).startswith(complaint)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "policy: {silence: {interval: 5 parsecs}}",
            "policy.silence.interval: '5 parsecs' is not a duration",
        ),
        (
            "policy: {silence: {interval: -1}}",
            "policy.silence.interval: -1 is not a finite number >= 0",
        ),
        (
            "policy: {silence: {interval: .nan}}",
            "policy.silence.interval: nan is not a finite number",
        ),
        (
            "policy: {silence: {interval: .inf}}",
            "policy.silence.interval: inf is not a finite number",
        ),
        ("policy: {silence: {interval: true}}", "policy.silence.interval: needs a duration"),
        ("policy: {silence: {interval: }}", "policy.silence.interval: needs a duration"),
        (
            "policy: {silence: {interval: 9999 weeks}}",
            "policy.silence.interval: 6047395200.0 s is longer than",
        ),
        ("policy: {silence: {pings: 1.5}}", "policy.silence.pings: needs a whole number, not 1.5"),
        ("policy: {silence: {adaptive: 1}}", "policy.silence.adaptive: needs true or false, not 1"),
        ("policy: {silence: 5}", "policy.silence: needs named values (key: value), not a number"),
        ("policy: {respawn: {backoff: [1, x]}}", "policy.respawn.backoff: 'x' is not a duration"),
        (
            "policy: {looping: {polling_tools: [1]}}",
            "policy.looping.polling_tools: needs a text, not 1",
        ),
        (
            "policy: {erring: {rate_max: 5 min}}",
            "policy.erring.rate_max: needs a number; not '5 min'",
        ),
        (
            "policy: {spending: {tokens_max: many}}",
            "policy.spending.tokens_max: needs a whole number",
        ),
        ("policy: [1]", "policy: needs named values (key: value), not a list"),
        (
            f"policy: {{silence: {{pings: {'9' * 5000}}}}}",
            "policy.silence.pings: needs a whole number",
        ),
        (
            "health_monitoring: {alerting: {stuck_agent: {severity: loud}}}",
            "health_monitoring.alerting.stuck_agent.severity: needs one of info, warning, error, critical, not 'loud'",
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    complained: Complained, text: str, complaint: str
) -> None:
    (error,) = complained(text)
    assert str(error).startswith(complaint)
    assert len(str(error)) < 400


def test_everything_wrong_is_told_at_once(complained: Complained) -> None:
    errors = complained(
        "profile: swfit\npolicy: {stall: {tokens_after: soon}, freeze: {after: 70}, erring: {rate_max: 2}}\n"
        "roles: {r: {message: {urgent: 1d}}}\nfleet: {brake_share: 2}\n",
        {"LIFESIGNS_BUS": "here"},
        {"policy.spending.soft": 3},
    )
    assert [error.key for error in errors] == [
        "policy.stall.tokens_after",
        "LIFESIGNS_BUS",
        "profile",
        "fleet.brake_share",
        "policy.freeze.after",
        "policy.erring.rate_max",
        "policy.spending.soft",
        "roles.r.message.urgent",
    ]


def test_what_follows_from_a_wrong_value_is_not_told_as_well(complained: Complained) -> None:
    errors = complained("health_monitoring: {heartbeat: {interval_seconds: 700, timeout_seconds: 100}}")
    assert [error.key for error in errors] == ["health_monitoring.heartbeat.timeout_seconds"]


def test_a_flood_of_errors_is_cut_off(complained: Complained) -> None:
    assert len(complained("".join(f"k{n}: 1\n" for n in range(5000)))) == 100


def test_config_errors_are_policy_errors_with_key_and_detail(said: Said) -> None:
    with pytest.raises(PolicyError) as caught:
        said("profile: x\nzzz: 1\n")
    assert caught.value.key == "zzz"
    assert "\n" in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        (
            "LIFESIGNS_POLICY__SILENCE__INTERVALL",
            "1",
            "did you mean LIFESIGNS_POLICY__SILENCE__INTERVAL?",
        ),
        (
            "LIFESIGNS_POLICY_SILENCE_INTERVAL",
            "1",
            "did you mean LIFESIGNS_POLICY__SILENCE__INTERVAL?",
        ),
        ("LIFESIGNS_POLICY__SILENCE", "1", "is unknown"),
        ("LIFESIGNS_POLICY", "1", "is unknown"),
        ("LIFESIGNS_FLEET__TICK", "1", "is unknown"),
        (
            "LIFESIGNS_POLICY__BREAKERS__API__FAILURE_TRESHOLD",
            "1",
            "BREAKERS__API__FAILURE_THRESHOLD?",
        ),
        ("LIFESIGNS_PROFLE", "swift", "did you mean LIFESIGNS_PROFILE?"),
        ("LIFESIGNS_PROFILE", "swfit", "'swfit' is unknown; did you mean swift?"),
        ("LIFESIGNS_LISTEN", "here", "needs host:port"),
        ("LIFESIGNS_POLICY__SILENCE__TIMEOUT", "1", "1 s is not longer than the interval of 5 s"),
        ("LIFESIGNS_POLICY__SILENCE__ADAPTIVE", "maybe", "needs true or false"),
    ],
)
def test_a_wrong_variable_is_named(complained: Complained, variable: str, value: str, complaint: str) -> None:
    (error,) = complained("", {variable: value})
    assert error.key == variable
    assert complaint in error.detail


def test_variables_for_others_and_empty_ones_are_left_alone(said: Said) -> None:
    names = "HUB TOKEN STATE CHECKPOINT INCARNATION HANDOFF TEST_POSTGRES"
    environ = {f"LIFESIGNS_{name}": "anything" for name in names.split()}
    assert (
        said("", {**environ, "LIFESIGNS_PROFILE": "", "LIFESIGNS_POLICY__SILENCE__PINGS": " "}).profile
        == "swarm"
    )


def test_every_kind_of_threshold_can_be_set_from_the_environment(said: Said) -> None:
    policy = said(
        "",
        {
            "LIFESIGNS_POLICY__SILENCE__ADAPTIVE": "false",
            "LIFESIGNS_POLICY__SILENCE__FALSE_SUSPICION_RATE": "1e-9",
            "LIFESIGNS_POLICY__RESPAWN__BACKOFF": "5, 1 min",
            "LIFESIGNS_POLICY__LOOPING__POLLING_TOOLS": "wait,poll",
            "LIFESIGNS_POLICY__SPENDING__TOKENS_MAX": "1000",
            "LIFESIGNS_POLICY__SPENDING__COST_MAX": "none",
            "LIFESIGNS_POLICY__BREAKERS__API__FAILURE_THRESHOLD": "7",
        },
    ).policies.default
    assert not policy.silence.adaptive
    assert policy.silence.false_suspicion_rate == 1e-9
    assert list(policy.respawn.backoff) == [5, 60]
    assert policy.looping.polling_tools == ("wait", "poll")
    assert (policy.spending.tokens_max, policy.spending.cost_max) == (1000, None)
    assert policy.breakers["api"].failure_threshold == 7


def test_no_key_is_ignored_in_the_environment(said: Said) -> None:
    """Whatever can be written into the file either counts as a variable too, or is refused: never neither."""
    ignored = []
    for path, _ in readers_of(SCHEMA):
        variable = "LIFESIGNS_" + "__".join("x" if part == ANY else part for part in path if part).upper()
        if "__" not in variable:
            continue
        try:
            config = said("", {variable: "7"})
        except ConfigErrors:
            continue
        if not any(source.key == variable for source in config.sources.values()):
            ignored.append(variable)
    assert ignored == []


def test_limits_can_be_set_from_the_environment(said: Said) -> None:
    limits = said(
        "", {"LIFESIGNS_LIMITS__HISTORY_FOR": "7d", "LIFESIGNS_LIMITS__BUSY_SHARE_PER_TOKEN": "1"}
    ).limits
    assert (limits.history_for, limits.busy_share_per_token) == (7 * 86400, 1)


@pytest.mark.parametrize(
    ("variable", "why"),
    [
        ("LIFESIGNS_LIMIT__HISTORY_FOR", "is unknown; did you mean LIFESIGNS_LIMITS__HISTORY_FOR?"),
        (
            "LIFESIGNS_CHANNELS__OPS__URL",
            "is unknown: what has names of your own, like channels and agents, is set in",
        ),
    ],
)
def test_a_variable_that_sets_nothing_is_an_error(complained: Complained, variable: str, why: str) -> None:
    (error,) = complained("", {variable: "7"})
    assert str(error).startswith(f"{variable}: {why}")


def test_an_unknown_flag_is_named(complained: Complained) -> None:
    (error,) = complained("", {}, {"policy.silence.intervall": 3})
    assert str(error).startswith(
        "policy.silence.intervall: is unknown; did you mean policy.silence.interval?"
    )


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
_ends = [path for path, _ in readers_of(SCHEMA)]
_paths = st.sampled_from(sorted({path[:depth] for path in _ends for depth in range(1, len(path) + 1)}))
"""Keys, and the sections they stand in."""


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(_paths, _values), max_size=4), st.text("abc*", min_size=1, max_size=3))
def test_no_value_at_any_key_does_worse_than_config_errors(
    said_: list[tuple[tuple[str, ...], object]], name: str
) -> None:
    file: dict[str, Any] = {}
    for path, value in said_:
        *branches, leaf = (name if part == "*" else part for part in path)
        here = file
        for branch in branches:
            if not isinstance(here.get(branch), dict):
                here[branch] = {}
            here = here[branch]
        here[leaf] = value
    with suppress(ConfigErrors):
        config = assemble(Document("f", file, {}), {}, {})
        assert set(config.effective) == set(config.sources)
