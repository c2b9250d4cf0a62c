"""`lifesigns session`: who is signed in is listed, and signed out; and options of a group that count for its commands."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.hub import HubInThread, hub_in_thread


@pytest.fixture(scope="module")
def hub() -> Iterator[HubInThread]:
    with hub_in_thread() as running:
        yield running


def test_a_session_is_listed_and_ended() -> None:
    with hub_in_thread() as hub:
        assert "Nobody is signed in." in hub.cli("session", "list").stdout
        service, now = hub.running.service, hub.running.service.clock()
        (admin,) = service.access.tokens.list()
        principal = service.access.principal(hub.token.encode(), now)
        assert principal is not None
        session = service.access.redeem(
            service.access.sign_ins.link(principal.token_id, now), now, "10.0.0.7"
        )
        assert session is not None
        (one,) = json.loads(hub.cli("session", "list", "--json").stdout)["sessions"]
        assert (one["address"], one["token_id"]) == ("10.0.0.7", admin.id)
        shown = hub.cli("session", "list", COLUMNS="160").stdout
        assert all(said in shown for said in (one["id"], "admin", "10.0.0.7", "in 7 d"))
        assert hub.cli("session", "end", one["id"]).exit_code == 0
        assert service.access.session(session, now) is None
        assert "Nobody is signed in." in hub.cli("session", "list").stdout


@pytest.mark.parametrize("command", [("alerts", "silences"), ("audit", "checkpoint")])
def test_a_hub_named_before_the_command_is_the_one_that_is_asked(
    hub: HubInThread, command: tuple[str, str]
) -> None:
    group, name = command
    outcome = hub.cli(group, "--hub", "http://127.0.0.1:1", name)
    assert outcome.exit_code == 2
    assert "127.0.0.1:1" in outcome.output
