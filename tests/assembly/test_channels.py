"""Channels put together: secrets are found where they are, and what is missing names its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lifesigns.assembly.channels import channels_of, rules_of, secret
from lifesigns.config.alerting import (
    DEFAULT_ALERTING,
    MaintenanceSettings,
    PacingSettings,
    RouteSettings,
    SilenceSettings,
)
from lifesigns.config.channels import ChannelSettings
from lifesigns.errors import UsageError
from lifesigns.hub.alerting.rules import Matcher

SECRET = "T0P-53CR37"


def one(type_: str, **options: Any) -> dict[str, ChannelSettings]:
    return {"ops": ChannelSettings("ops", type_, options)}


def test_a_secret_is_written_or_in_a_variable_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    assert secret(SECRET, "k", {}) == SECRET
    assert secret("env:S", "k", {"S": SECRET}) == SECRET
    assert secret(f"file:{file}", "k", {}) == SECRET


def test_a_secret_that_is_not_there_names_its_key(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" \n")
    for said in ("env:S", f"file:{tmp_path}/none", f"file:{tmp_path}/empty", f"file:{tmp_path}"):
        with pytest.raises(UsageError, match=r"^channels\.ops\.url is (env|file):"):
            channels_of(one("slack", url=said), {})


@pytest.mark.parametrize(
    ("type_", "options", "kind"),
    [
        ("log", {}, "LogChannel"),
        ("desktop", {}, "DesktopChannel"),
        ("slack", {"url": "env:URL"}, "SlackWebhook"),
        ("slack", {"token": "env:URL", "channel": "#ops"}, "SlackBot"),
        ("pagerduty", {"routing_key": SECRET, "source": "hub-1"}, "PagerDutyChannel"),
        ("webhook", {"url": "env:URL", "secret": SECRET, "headers": {"X-Key": "env:URL"}}, "WebhookChannel"),
        ("email", {"host": "m", "from": "a@b.org", "to": ("c@d.org",)}, "EmailChannel"),
    ],
)
async def test_every_type_is_built(type_: str, options: dict[str, Any], kind: str) -> None:
    (channel,) = channels_of(one(type_, **options), {"URL": "https://x.example/y"}).values()
    assert type(channel).__name__ == kind
    assert SECRET not in repr(channel)
    await channel.close()


def test_what_a_channel_refuses_names_the_channel_and_no_secret() -> None:
    with pytest.raises(UsageError, match=r"^channels\.ops: ") as caught:
        channels_of(one("slack", url="env:URL"), {"URL": f"nonsense/{SECRET}"})
    assert SECRET not in str(caught.value)


def test_who_configures_nothing_finds_alerts_in_the_log() -> None:
    assert set(channels_of({}, {})) == {"log"}
    assert set(rules_of({}, alerting=DEFAULT_ALERTING).channels) == {"log"}


def test_the_rules_say_what_was_configured() -> None:
    settings = {"ops": ChannelSettings("ops", "log", {}, per_minute=5, gap=0.0)}
    which: dict[str, Any] = {"alerts": ("stuck_agent",), "agents": ("a-*",), "roles": ("coder",)}
    rules = rules_of(
        settings,
        alerting=DEFAULT_ALERTING,
        routes=[RouteSettings(channels=("ops",), at_least="error", severity="critical", **which)],
        silences=[SilenceSettings(until=20.0, by="ada", why="why", from_=10.0, **which)],
        maintenance=[
            MaintenanceSettings(name="move", from_=5.0, until=20.0, **which),
            MaintenanceSettings(days=frozenset({5}), at=3600.0, for_=60.0, **which),
        ],
        pacing=PacingSettings(hold_for=1.0),
        link="http://hub/",
    )
    assert (rules.channels["ops"].per_minute, rules.channels["ops"].gap) == (5, 0.0)
    assert (rules.routes[0].at_least, rules.routes[0].severity) == ("error", "critical")
    assert rules.by_kind["recovery_failed"].severity == "critical"
    by_hand, move = rules.silences
    assert (by_hand.id, by_hand.by, by_hand.why) == ("config-1", "ada", "why")
    assert (by_hand.from_at, by_hand.until_at) == (10.0, 20.0)
    assert (move.id, move.why, move.from_at, move.until_at) == ("maintenance-1", "move", 5.0, 20.0)
    (window,) = rules.windows
    assert (window.name, window.days, window.starts_after) == ("maintenance 2", frozenset({5}), 3600.0)
    for fitting in (rules.routes[0], by_hand, move, window):
        assert fitting.which == Matcher(("stuck_agent",), ("a-*",), ("coder",))
    assert (rules.pacing.hold_for, rules.link) == (1.0, "http://hub")
