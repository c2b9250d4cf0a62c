"""`lifesigns session`: who is signed in is listed, and signed out."""

from __future__ import annotations

import json

from tests.cli.hub import hub_in_thread


def test_a_session_is_listed_and_ended() -> None:
    with hub_in_thread() as hub:
        assert "Nobody is signed in." in hub.cli("session", "list").stdout
        service, now = hub.running.service, hub.running.service.clock()
        (admin,) = service.access.list()
        principal = service.access.principal(hub.token.encode(), now)
        assert principal is not None
        session = service.access.redeem(service.access.link(principal, now), now, "10.0.0.7")
        assert session is not None
        (one,) = json.loads(hub.cli("session", "list", "--json").stdout)["sessions"]
        assert (one["address"], one["token_id"]) == ("10.0.0.7", admin.id)
        shown = hub.cli("session", "list", COLUMNS="160").stdout
        assert all(said in shown for said in (one["id"], "admin", "10.0.0.7", "in 7 d"))
        assert hub.cli("session", "end", one["id"]).exit_code == 0
        assert service.access.session(session, now) is None
        assert "Nobody is signed in." in hub.cli("session", "list").stdout
