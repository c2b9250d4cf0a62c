"""Channels, routes, silences and maintenance as people write them. What is wrong names its key, and never a secret."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lifesigns.config import alerting
from lifesigns.config.channels import TYPES
from tests.config.conftest import Complained, Said

SECRET = "T0P-53CR37"
CHANNELS = "channels: {ops: {type: log}, mail: {type: log}}\n"


def test_a_channel_of_every_type(said: Said) -> None:
    made = said(
        f"""
      channels:
        ops: {{type: slack, url: "https://hooks.slack.com/services/{SECRET}", per_minute: 30, gap: 2s}}
        slack: {{token: env:SLACK_TOKEN, channel: "#ops", api: https://slack.example.org/api}}
        pagerduty: {{routing_key: file:/run/secrets/pagerduty}}
        hook: {{type: webhook, url: env:HOOK, secret: {SECRET}, headers: {{X-Key: {SECRET}}}}}
        email: {{host: mail.example.org, from: a@example.org, to: [b@example.org, c@example.org],
                user: a, password: {SECRET}, security: tls, port: 465}}
        desktop: {{}}
        log: {{}}
        more: {{type: apprise, urls: ["ntfy://a,b", env:MORE]}}
        """
    ).channels
    assert {one.type for one in made.values()} == set(TYPES)
    assert (made["ops"].per_minute, made["ops"].gap) == (30, 2.0)
    assert made["email"].options["to"] == ("b@example.org", "c@example.org")
    assert made["more"].options["urls"] == ("ntfy://a,b", "env:MORE")
    assert SECRET not in repr(made)


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("ops: {type: slak}", "channels.ops.type", "did you mean slack?"),
        ("ops: {url: 'https://x.y'}", "channels.ops.type", "is missing"),
        (f"slack: {{ulr: {SECRET}}}", "channels.slack.ulr", "did you mean url?"),
        (f"slack: {{url: {SECRET}}}", "channels.slack.url", "needs an address"),
        ("slack: {}", "channels.slack", "either url"),
        (f"slack: {{url: 'https://x/{SECRET}', token: {SECRET}}}", "channels.slack", "either url"),
        (f"slack: {{token: {SECRET}}}", "channels.slack.channel", "is missing"),
        ("pagerduty: {}", "channels.pagerduty.routing_key", "is missing"),
        ("pagerduty: {routing_key: 'env:not a name'}", "channels.pagerduty.routing_key", "env:SLACK_URL"),
        ("pagerduty: {routing_key: 5}", "channels.pagerduty.routing_key", "env:NAME or file:/path"),
        ("webhook: {url: 'ftp://x'}", "channels.webhook.url", "needs an address"),
        (
            "webhook: {url: 'https://x', headers: {'a b': c}}",
            "channels.webhook.headers",
            "no name of a header",
        ),
        ("email: {host: mail, from: a@b}", "channels.email.to", "is missing"),
        (
            "email: {host: m, from: a@b, to: c@d, security: ssl}",
            "channels.email.security",
            "starttls, tls, none",
        ),
        (
            f"email: {{host: m, from: a@b, to: c@d, password: {SECRET}}}",
            "channels.email",
            "user and password",
        ),
        (
            f"email: {{host: m, from: a@b, to: c@d, user: u, password: {SECRET}, security: none}}",
            "channels.email.security",
            "could be read by everybody",
        ),
        ("log: {per_minute: 0}", "channels.log.per_minute", "from 1 to 600"),
        ("log: {gap: soon}", "channels.log.gap", "is not a duration"),
        ("'a b': {type: log}", "channels.a b", "letters, digits"),
    ],
)
def test_what_is_wrong_with_a_channel_names_its_key_and_line(
    complained: Complained, text: str, key: str, says: str
) -> None:
    (error, *_) = complained(f"profile: swift\nchannels:\n  first: {{type: log}}\n  {text}\n")
    assert error.key == key
    assert says in error.detail
    assert error.where.endswith("lifesigns.yaml:4")
    assert SECRET not in str(error)


def test_everything_that_is_wrong_is_told_at_once_and_each_with_its_line(complained: Complained) -> None:
    errors = complained(
        "channels:\n  a: {type: log}\n  b: {type: x}\n  c:\n    type: pagerduty\n    source: 5\n"
        "routes:\n  - channels: a\n  - alerts: stuck_agent\n    channels:\n      - nobody\n"
        "respawn:\n  shell: 3\n  command: start\n"
    )
    assert [(error.key, int(error.where.rpartition(":")[2])) for error in errors] == [
        ("channels.b.type", 3),
        ("channels.c.source", 6),
        ("channels.c.routing_key", 4),
        ("routes[2].channels", 10),
        ("respawn.shell", 13),
    ]


# --- who is told of what -----------------------------------------------------------------------------------


def test_routes_are_read_in_their_order(said: Said) -> None:
    first, second = said(
        f"""
        {CHANNELS}
        routes:
        - {{alerts: [stuck_agent, NEEDS_HUMAN], agents: "night-*", roles: standby, channels: ops, at_least: error}}
        - {{channels: [], severity: critical}}
        """
    ).routes
    assert first.alerts == ("stuck_agent", "NEEDS_HUMAN")
    assert (first.agents, first.roles) == (("night-*",), ("standby",))
    assert (first.channels, first.at_least, first.severity) == (("ops",), "error", None)
    assert (second.channels, second.severity) == ((), "critical")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {alerts: stuck}", "routes[1].alerts: 'stuck' is unknown"),
        ("- {agents: a}", "routes[1].channels: is missing"),
        ("- {channels: pager}", "routes[1].channels: 'pager' is none of the channels: mail, ops"),
        ("- {channels: ops}\n- {channels: ops, at_least: loud}", "routes[2].at_least: needs one of info"),
        ("- {channels: ops, chanels: x}", "routes[1].chanels: is unknown; did you mean channels?"),
    ],
)
def test_what_is_wrong_with_a_route_says_which(complained: Complained, text: str, says: str) -> None:
    (error, *_) = complained(f"{CHANNELS}routes:\n{text}")
    assert str(error).startswith(says)


def test_a_route_may_name_the_channels_of_the_seed_although_there_are_none(said: Said) -> None:
    (route,) = said("routes: {channels: [slack, pagerduty]}").routes
    assert route.channels == ("slack", "pagerduty")


def test_a_silence_has_an_end_and_somebody_who_wants_it(said: Said) -> None:
    (silence,) = said(
        "silences:\n- {agents: 'db-*', until: 2026-11-20T08:00:00+01:00, by: ada, why: moving house}"
    ).silences
    assert silence.until == datetime(2026, 11, 20, 7, tzinfo=UTC).timestamp()
    assert (silence.by, silence.why, silence.agents) == ("ada", "moving house", ("db-*",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {by: ada, why: x}", "silences[1].until: is missing"),
        ("- {until: tomorrow, by: a, why: x}", "silences[1].until: needs a moment such as"),
        ("- {until: 2026-11-20T08:00:00, by: a, why: x}", "silences[1].until: needs a moment such as"),
        (
            "- {from: 2026-11-21T00:00:00Z, until: 2026-11-20T00:00:00Z, by: a, why: x}",
            "silences[1].until: is not after from",
        ),
    ],
)
def test_what_is_wrong_with_a_silence_says_which(complained: Complained, text: str, says: str) -> None:
    (error,) = complained(f"silences:\n{text}")
    assert str(error).startswith(says)


def test_maintenance_is_once_or_comes_again(said: Said) -> None:
    once, weekly, daily = said(
        """
        maintenance:
        - {name: move, from: 2026-11-20T08:00:00Z, until: 2026-11-20T10:00:00Z}
        - {name: backups, days: [sat, Sunday], at: "02:30", for: 2h, zone: Europe/Berlin, agents: "db-*"}
        - {days: daily, at: 3:00, for: 10 min}
        """
    ).maintenance
    assert once.name == "move"
    assert once.until is not None
    assert once.from_ == once.until - 7200
    assert weekly.until is None
    assert (weekly.days, weekly.at, weekly.for_) == (frozenset({5, 6}), 9000, 7200)
    assert str(weekly.zone) == "Europe/Berlin"
    assert (daily.days, daily.zone) == (frozenset(range(7)), UTC)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {at: 25:00, for: 1h}", "maintenance[1].at: needs a time of day"),
        ("- {at: '02:00'}", "maintenance[1].for: is missing"),
        ("- {at: '02:00', for: 8d}", "at most a week"),
        ("- {days: someday, at: '02:00', for: 1h}", "needs one of mon, tue"),
        ("- {at: '02:00', for: 1h, zone: Mars/Olympus}", "needs a time zone such as"),
        ("- {at: '02:00', for: 1h, until: 2026-11-20T08:00:00Z}", "either once (from, until) or again"),
    ],
)
def test_what_is_wrong_with_maintenance_says_which(complained: Complained, text: str, says: str) -> None:
    (error,) = complained(f"maintenance:\n{text}")
    assert says in str(error)


@pytest.mark.parametrize("section", ["routes", "silences", "maintenance", "respawn"])
@pytest.mark.parametrize("value", ["5", "text", "[a]", "[[a]]"])
def test_a_list_of_entries_is_nothing_else(complained: Complained, section: str, value: str) -> None:
    (error,) = complained(f"{section}: {value}")
    assert error.key == section
    assert "or a list of such entries" in error.detail


def test_the_zone_of_a_window_cannot_reach_for_files(tmp_path: Path) -> None:
    for name in ("../../etc/passwd", str(tmp_path), "/etc/localtime"):
        with pytest.raises(ValueError, match="time zone"):
            alerting.time_zone(name)
