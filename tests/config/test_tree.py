"""The `health_monitoring:` tree of IMPL-REQ-003 section 7."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lifesigns.config.alerting import RouteSettings
from lifesigns.config.fitting import flat, settable
from lifesigns.config.load import SCHEMA, load
from lifesigns.config.schema import readers_of
from lifesigns.config.tree import MEANING
from lifesigns.core.policy import Policy
from lifesigns.core.profiles import profile
from tests.config.conftest import Said

SEED = Path(__file__).with_name("seed.yaml")


def at(policy: Policy, key: str) -> Any:
    return flat(settable(policy))[tuple(key.split("."))]


def test_the_seeds_file_is_read_as_it_stands() -> None:
    config = load(SEED, environ={})
    assert config.enabled
    assert config.profile == "fleet"
    assert config.alerting["recovery_failed"] == RouteSettings(
        channels=("slack", "pagerduty"), severity="critical"
    )


def test_every_value_of_the_seeds_file_arrives_where_it_is_meant() -> None:
    """Checked against the file itself, not against a copy of its numbers."""
    policy = load(SEED, environ={}).policies.default
    written = flat(yaml.safe_load(SEED.read_text())["health_monitoring"])
    for path, value in written.items():
        if path[0] in ("enabled", "alerting"):
            continue
        key = ".".join(path)
        meaning = MEANING.get(key)
        if meaning is None:
            name = path[2]
            meaning = MEANING[key.replace(f".{name}.", ".*.")].replace("*", name)
        arrived = at(policy, meaning)
        assert arrived == (tuple(value) if isinstance(value, list) else value), key


def test_the_seeds_file_an_empty_tree_and_the_profile_fleet_say_the_same(said: Said) -> None:
    assert said("health_monitoring:").policies.default == profile("fleet")
    assert said("health_monitoring: {}").policies.default == profile("fleet")
    assert load(SEED, environ={}).policies.default == profile("fleet")


def test_without_the_tree_nothing_of_it_holds(said: Said) -> None:
    assert said("").policies.default == profile("swarm")


def test_a_named_profile_gives_what_the_tree_leaves_open(said: Said) -> None:
    policy = said("profile: tolerant\nhealth_monitoring: {recovery: {max_attempts_per_task: 7}}")
    assert policy.policies.default == profile("tolerant").with_changes({"respawn": {"per_task_max": 7}})


@pytest.mark.parametrize(
    ("key", "value", "meaning", "expected"),
    [
        ("heartbeat.interval_seconds", 200, "silence.interval", 200),
        ("heartbeat.timeout_seconds", 1000, "silence.timeout", 1000),
        ("health_check.interval_seconds", 20, "claim.check_wait", 20),
        ("health_check.interval_seconds", 20, "silence.ping_wait", 10),
        (
            "health_check.checkpoint_stale_threshold_seconds",
            900,
            "stall.checkpoint_stuck_after",
            900,
        ),
        (
            "health_check.checkpoint_stale_threshold_seconds",
            900,
            "stall.checkpoint_degraded_after",
            300,
        ),
        (
            "health_check.checkpoint_stale_threshold_seconds",
            9000,
            "stall.checkpoint_degraded_after",
            600,
        ),
        ("intervention.nudge.enabled", "false", "ladder.nudge_enabled", False),
        ("intervention.nudge.max_attempts", 9, "ladder.nudge_max", 9),
        ("intervention.nudge.interval_seconds", "2 min", "ladder.nudge_every", 120),
        ("intervention.escalation.timeout_seconds", 77, "ladder.escalation_timeout", 77),
        ("intervention.termination.cleanup_timeout_seconds", 7, "ladder.save_for", 7),
        ("circuit_breaker.default.failure_threshold", 9, "breaker.failure_threshold", 9),
        ("circuit_breaker.default.recovery_timeout_seconds", 9, "breaker.recovery_timeout", 9),
        ("circuit_breaker.default.half_open_requests", 9, "breaker.half_open_requests", 9),
        ("circuit_breaker.overrides.api.failure_threshold", 9, "breakers.api.failure_threshold", 9),
        (
            "circuit_breaker.overrides.api.recovery_timeout_seconds",
            9,
            "breakers.api.recovery_timeout",
            9,
        ),
        (
            "circuit_breaker.overrides.api.half_open_requests",
            9,
            "breakers.api.half_open_requests",
            9,
        ),
        ("recovery.max_attempts_per_task", 9, "respawn.per_task_max", 9),
        ("recovery.max_attempts_per_hour", 9, "respawn.per_hour_max", 9),
        ("recovery.backoff_seconds", "[1, 2 min]", "respawn.backoff", (1, 120)),
    ],
)
def test_each_key_changes_the_policy(
    said: Said, key: str, value: object, meaning: str, expected: object
) -> None:
    *branches, leaf = ("health_monitoring", *key.split("."))
    text = "".join(f"{'  ' * depth}{name}:\n" for depth, name in enumerate(branches))
    config = said(f"{text}{'  ' * len(branches)}{leaf}: {value}\n")
    assert at(config.policies.default, meaning) == expected
    assert config.sources[f"policy.{meaning}"].key == f"health_monitoring.{key}"


def test_the_table_above_leaves_no_key_of_the_tree_out() -> None:
    marks = test_each_key_changes_the_policy.pytestmark  # type: ignore[attr-defined]
    tested = {row[0].replace(".api.", ".*.") for row in marks[0].args[1]}
    known = {".".join(path[1:]) for path, _ in readers_of(SCHEMA) if path[0] == "health_monitoring"}
    beside = {key for key in known if key == "enabled" or key.startswith("alerting.")}
    assert tested == set(MEANING) == known - beside


def test_the_keys_beside_the_policy_arrive_too(said: Said) -> None:
    config = said(
        "health_monitoring:\n  enabled: false\n  alerting:\n    stuck_agent: {channels: [mail], severity: info}\n"
        "    recovery_failed: {severity: error}\n"
    )
    assert not config.enabled
    assert config.alerting["stuck_agent"] == RouteSettings(channels=("mail",), severity="info")
    assert config.alerting["recovery_failed"] == RouteSettings(
        channels=("slack", "pagerduty"), severity="error"
    )
    assert config.alerting["circuit_breaker_open"] == RouteSettings(channels=("slack",), severity="warning")


@pytest.mark.parametrize("name", ["fleet", "long_tasks", "fast_tasks"])
def test_what_follows_from_the_heartbeat_keeps_the_proportions_of_the_profiles(said: Said, name: str) -> None:
    wanted = profile(name)
    if name == "fast_tasks":  # Its freeze is conclusive after five intervals rather than three.
        wanted = wanted.with_changes({"freeze": {"conclusive_after": 360}})
    config = said(
        "health_monitoring:\n"
        f"  heartbeat: {{interval_seconds: {wanted.silence.interval}, timeout_seconds: {wanted.silence.timeout}}}\n"
        f"  health_check: {{interval_seconds: {wanted.claim.check_wait}}}\n"
    )
    assert config.policies.default == wanted


@pytest.mark.parametrize(
    ("interval", "timeout", "check"),
    [(60, 120, 60), (300, 301, 60), (1, 2, 60), (0.1, 0.2, 1), (3600, 86400, 1), (30, 60, 3600)],
)
def test_any_heartbeat_whose_timeout_is_longer_than_its_interval_can_work(
    said: Said, interval: float, timeout: float, check: float
) -> None:
    """The tree has no word for the ping wait, so no choice of its words may fail for it."""
    silence = said(
        f"health_monitoring:\n  heartbeat: {{interval_seconds: {interval}, timeout_seconds: {timeout}}}\n"
        f"  health_check: {{interval_seconds: {check}}}\n"
    ).policies.default.silence
    assert interval < silence.suspect_after < timeout


def test_an_override_has_from_the_trees_default_what_it_leaves_out(said: Said) -> None:
    breakers = said(
        "health_monitoring:\n  circuit_breaker:\n    default: {half_open_requests: 4, failure_threshold: 8}\n"
        "    overrides: {api: {failure_threshold: 2}}\n"
    ).policies.default.breakers
    assert breakers["api"].half_open_requests == 4
    assert breakers["api"].failure_threshold == 2
    assert breakers["tool_execution"].failure_threshold == 5
