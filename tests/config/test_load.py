from __future__ import annotations

from pathlib import Path

import pytest

from lifesigns.config.channels import ChannelSettings
from lifesigns.config.load import find, load
from lifesigns.config.values import Listen
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import ROLES, profile
from lifesigns.errors import PolicyError
from tests.config.conftest import Complained, Said


def test_nothing_said_is_the_default_profile_on_loopback(said: Said) -> None:
    config = said("")
    assert config.profile == "swarm"
    assert config.policies.default == profile("swarm")
    assert config.fleet == FleetPolicy()
    assert config.listen == Listen("127.0.0.1", 8710)
    assert (config.store, config.bus.url, config.channels) == (None, None, {})


def test_each_layer_of_policy_wins_over_the_one_before_it(said: Said) -> None:
    """profile < health_monitoring < policy < role < agent pattern"""
    config = said(
        "profile: swift\n"
        "health_monitoring: {intervention: {nudge: {max_attempts: 11}, escalation: {timeout_seconds: 11}}}\n"
        "policy: {ladder: {nudge_max: 12, save_for: 12, more_time_for: 12}}\n"
        "roles: {tester: {ladder: {save_for: 13, more_time_for: 13}}}\n"
        "agents: {'t-*': {ladder: {more_time_for: 14}}}\n"
    )
    ladder = config.policies.of("t-1", role="tester").ladder
    assert config.policies.default.silence == profile("swift").silence
    assert (ladder.escalation_timeout, ladder.nudge_max, ladder.save_for, ladder.more_time_for) == (
        11,
        12,
        13,
        14,
    )


def test_file_then_environment_then_flags(said: Said) -> None:
    file = "profile: swift\nlisten: 127.0.0.1:1\npolicy: {ladder: {nudge_max: 1, save_for: 1}}\nstore: sqlite:///a"
    environ = {
        "LIFESIGNS_PROFILE": "balanced",
        "LIFESIGNS_LISTEN": "[::1]:2",
        "LIFESIGNS_POLICY__LADDER__NUDGE_MAX": "2",
        "LIFESIGNS_POLICY__LADDER__SAVE_FOR": "2 min",
    }
    config = said(
        file,
        environ,
        {"profile": "tolerant", "port": 3, "policy.ladder.nudge_max": "3", "bus": None},
    )
    assert config.profile == "tolerant"
    assert config.listen == Listen("::1", 3)
    assert config.policies.default.ladder.nudge_max == 3
    assert config.policies.default.ladder.save_for == 120
    assert config.store == "sqlite:///a"
    shown = {
        key: str(config.sources[key]).split("/")[-1] for key in ("profile", "store", "policy.ladder.save_for")
    }
    assert shown == {
        "profile": "--profile (flag)",
        "store": "lifesigns.yaml:4)",
        "policy.ladder.save_for": "LIFESIGNS_POLICY__LADDER__SAVE_FOR (environment)",
    }


def test_a_profile_in_the_environment_lies_below_what_the_file_says_of_the_policy(
    said: Said,
) -> None:
    policy = said("policy: {silence: {grace: 7}}", {"LIFESIGNS_PROFILE": "long_tasks"}).policies.default
    assert policy == profile("long_tasks").with_changes({"silence": {"grace": 7}})


def test_every_role_that_comes_with_us_stays_and_can_be_changed(said: Said) -> None:
    config = said("roles: {background: {silence: {grace: 77}}, reviewer: }")
    background = config.policies.of("x", role="background").silence
    assert background.interval == ROLES["background"]["silence"]["interval"]
    assert background.grace == 77
    assert config.policies.of("x", role="standby").silence.interval == 900
    assert config.policies.of("x", role="reviewer") == config.policies.default


def test_an_agent_can_be_given_a_role_a_profile_or_both(said: Said) -> None:
    config = said(
        "profile: fleet\n"
        "agents:\n"
        "  quick-*: {profile: swarm}\n"
        "  night: {role: standby}\n"
        "  both: {profile: swift, role: background, silence: {grace: 5}}\n"
    )
    assert config.policies.of("quick-1") == profile("swarm")
    assert config.policies.of("night").silence.interval == 900
    assert config.policies.of("both").silence.interval == 300
    assert config.policies.of("both").silence.grace == 5
    assert config.policies.of("both").freeze == profile("swift").freeze
    assert config.policies.of("other") == profile("fleet")
    assert [config.policies.role_of(one, "reviewer") for one in ("night", "both", "other")] == [
        *("standby", "background", "reviewer")
    ]


def test_what_stands_beside_the_policy(said: Said) -> None:
    config = said(
        "store: postgresql://me:secret@db/lifesigns?sslkey=secret\nbus: nats://bus:4222\nlisten: {port: 9000}\n"
        "channels: {slack: {url: https://hooks.example/secret, per_minute: 3}, log: }\n"
        "limits: {body_bytes: 1024}\nfleet: {tick_every: 2s, brake_share: 0.5}\n"
    )
    assert config.bus.url == "nats://bus:4222"
    assert config.listen == Listen(port=9000)
    assert config.channels == {
        "slack": ChannelSettings("slack", "slack", {"url": "https://hooks.example/secret"}, per_minute=3),
        "log": ChannelSettings("log", "log", {}),
    }
    assert config.limits.body_bytes == 1024
    assert (config.fleet.tick_every, config.fleet.brake_share) == (2.0, 0.5)


def test_secrets_are_kept_but_never_shown(said: Said) -> None:
    config = said(
        "store: postgresql://me:hush@db/x?password=hush&a=hush\nchannels: {slack: {token: hush, channel: ops}}\n"
        "bus: nats://hush@bus:4222\n"
    )
    assert config.store == "postgresql://me:hush@db/x?password=hush&a=hush"
    assert "hush" not in repr(config)
    assert "hush" not in repr(config.effective)


@pytest.mark.parametrize(
    "text", ["store: me:hush@db", "bus: 'hush@bus'", "channels: {slack: hush}", "channels: hush"]
)
def test_secrets_are_not_repeated_in_errors(complained: Complained, text: str) -> None:
    (error,) = complained(text)
    assert "hush" not in str(error)


@pytest.mark.parametrize(
    ("text", "listen"),
    [
        ("9000", "127.0.0.1:9000"),
        ("'9000'", "127.0.0.1:9000"),
        ("0.0.0.0:80", "0.0.0.0:80"),
        ("localhost:0", "localhost:0"),
        ("'[::1]:80'", "[::1]:80"),
        ("{host: '[::1]', port: 80}", "[::1]:80"),
    ],
)
def test_where_to_listen_can_be_said_in_several_ways(said: Said, text: str, listen: str) -> None:
    assert str(said(f"listen: {text}").listen) == listen


@pytest.mark.parametrize("text", ["x:99999", "-1", "'::1:80'", "a b:80", "':80'", "[1]", "", "true", "1.5"])
def test_where_nobody_can_listen(complained: Complained, text: str) -> None:
    (error,) = complained(f"listen: {text}")
    assert error.key == "listen"


def test_the_account_has_every_key_once_and_its_source(said: Said) -> None:
    config = said("profile: swift\npolicy: {silence: {grace: 7}}\n")
    assert set(config.effective) == set(config.sources)
    assert str(config.sources["policy.silence.interval"]) == "profile swift"
    assert str(config.sources["policy.silence.missed_max"]) == "default"
    assert config.sources["policy.silence.grace"].where.endswith("lifesigns.yaml:2")
    assert config.effective["policy.silence.grace"] == 7


# --- which file ---------------------------------------------------------------------------------------


def test_the_file_is_the_one_named_else_the_one_here_else_the_users(tmp_path: Path) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    users = home / ".config" / "lifesigns" / "lifesigns.yaml"
    here.mkdir()
    users.parent.mkdir(parents=True)
    environ = {"HOME": str(home)}
    assert find(environ, here) is None
    users.touch()
    assert find(environ, here) == users
    (here / "lifesigns.yaml").touch()
    assert find(environ, here) == here / "lifesigns.yaml"
    assert find({**environ, "LIFESIGNS_CONFIG": "/else/x.yaml"}, here) == Path("/else/x.yaml")
    assert find({"XDG_CONFIG_HOME": str(home / ".config")}, tmp_path) == users


def test_without_a_path_load_takes_the_file_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(environ={}).path is None
    (tmp_path / "lifesigns.yaml").write_text("profile: swift")
    assert load(environ={}).profile == "swift"


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "no.yaml"
    with pytest.raises(PolicyError, match=r"no\.yaml: does not exist"):
        load(missing, environ={})
    with pytest.raises(PolicyError, match=r"LIFESIGNS_CONFIG: .*no\.yaml does not exist"):
        load(environ={"LIFESIGNS_CONFIG": str(missing)})
