"""What the HTTP API answers is what happened: a status of success means that something was done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Refused, serving


def refused(hub: Hub, path: str, body: object, **headers: str) -> Refused:
    with pytest.raises(Refused) as caught:
        hub.request("POST", path, body, **headers)
    return caught.value


def test_a_delivery_of_which_nothing_counts_is_an_error(tmp_path: Path) -> None:
    """`curl --fail` in a script must notice. Where one message of many counts, it is a success that names the others."""
    with serving(tmp_path) as hub:
        for path in ("/api/v1/beats", "/api/v1/signals"):
            for garbage in (b"{not json", b"42", b"[42]", b'"beat"', b'{"agent_id": ""}', b"\xff", b"null"):
                problem = refused(hub, path, garbage)
                assert problem.status == 400, (path, garbage, problem)
        assert refused(hub, "/api/v1/beats", b"{not json").body["detail"].startswith("JSON is malformed")
        mixed = hub.post("/api/v1/beats", [{"agent_id": "a"}, {"agent_id": "not an id"}])
        assert (mixed["accepted"], [one["index"] for one in mixed["rejected"]]) == (1, [1])
        assert hub.health("a") == "healthy"


def test_a_key_that_comes_back_with_another_body_is_refused_and_nothing_is_done(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        hub.cli("beat", "a")
        nudge = "/api/v1/agents/a/nudge"
        first = hub.post(nudge, {"message": "one"}, Idempotency_Key="k")
        assert refused(hub, nudge, {"message": "two"}, Idempotency_Key="k").status == 422
        assert hub.post(nudge, {"message": "one"}, Idempotency_Key="k")["id"] == first["id"]
        assert len(hub.events("NUDGE_SENT")) == 1


def test_the_first_decision_about_an_escalation_counts(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        hub.cli("beat", "a")
        asked = hub.post("/api/v1/agents/a/escalate", {"reason": "odd"})
        decision = f"/api/v1/escalations/{asked['id']}/decision"
        hub.post(decision, {"decision": "ignore"})
        assert refused(hub, decision, {"decision": "terminate"}).status == 409
        assert hub.health("a") == "healthy"
        assert not hub.events("AGENT_TERMINATED")
