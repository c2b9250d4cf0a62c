"""A token is worth no more, and lives no longer, than it must.

Promises:
    1. An agent's token expires unless somebody says otherwise.
    2. A token gets a new secret without a gap: the old one is good for a while, and then not. It stays the same token.
    3. Who guesses is on record, once a minute however often; and counted.
    4. Who uses a token that expires is told of in time, until it has a new secret; and who still shows one that has, by name.
    5. No list of all agents without a token that may see them, by gRPC either.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import httpx2
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from lifesigns.config.values import Limits
from lifesigns.hub import token_watch
from tests.cli.hub import HubInThread, hub_in_thread
from tests.journeys.outside import free_port, serving
from tests.web.hub import RunningHub, running_hub

DAY = 86400.0
NOW = 1_000_000.0


async def made(hub: RunningHub, role: str = "agent", **more: Any) -> dict[str, Any]:
    agents = "a" if role == "agent" else ""
    answer = await hub.post("/api/v1/tokens", {"role": role, "name": "n", "agents": agents, **more})
    assert answer.status_code == 201, answer.text
    said: dict[str, Any] = answer.json()
    return said


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


async def enters(hub: RunningHub, token: str) -> int:
    async with hub.client(token) as client:
        return (await client.get("/api/v1/me")).status_code


# --- 1. expiry -------------------------------------------------------------------------------------------------


async def test_an_agents_token_expires_unless_somebody_says_otherwise() -> None:
    moments = [NOW]
    async with running_hub(clock=lambda: moments[-1], limits=Limits(agent_token_for=30 * DAY)) as hub:
        token = await made(hub)
        assert seconds(token["expires_at"]) == pytest.approx(NOW + 30 * DAY)
        assert (await made(hub, expires_after="never"))["expires_at"] is None
        assert seconds((await made(hub, expires_after=60))["expires_at"]) == pytest.approx(NOW + 60)
        assert (await made(hub, "viewer"))["expires_at"] is None
        moments.append(NOW + 30 * DAY - 1)
        assert await enters(hub, token["token"]) == 200
        moments.append(NOW + 30 * DAY)
        assert await enters(hub, token["token"]) == 401


def test_the_command_knows_never() -> None:
    with hub_in_thread() as hub:
        for more, ever in (((), False), (("--expires", "never"), True)):
            done = hub.cli("token", "create", "--role", "agent", "--agents", "a", "--json", *more)
            assert done.exit_code == 0, done.output
            assert ('"expires_at": null' in done.output or '"expires_at":null' in done.output) is ever


# --- 2. rotation -----------------------------------------------------------------------------------------------


async def test_a_rotated_token_is_the_same_token_and_its_old_secret_ends() -> None:
    moments = [NOW]
    async with running_hub(clock=lambda: moments[-1]) as hub:
        old = await made(hub, expires_after=10 * DAY)
        moments.append(NOW + 5 * DAY)
        answer = await hub.post(f"/api/v1/tokens/{old['id']}/rotate", {"grace": 3600})
        assert answer.status_code == 201
        new = answer.json()
        assert new["id"] == old["id"]
        assert new["token"] != old["token"]
        assert seconds(new["expires_at"]) == pytest.approx(NOW + 15 * DAY)
        for token in (old, new):
            async with hub.client(token["token"]) as client:
                assert (await client.get("/api/v1/me")).json()["token_id"] == old["id"]
        moments.append(NOW + 5 * DAY + 3600)
        assert [await enters(hub, token["token"]) for token in (old, new)] == [401, 200]
        entries = (await hub.get("/api/v1/audit")).json()["entries"]
        assert any(one["what"] == "token rotated" and old["id"] in one["detail"] for one in entries)


async def test_to_revoke_a_rotated_token_ends_both_secrets_for_good() -> None:
    async with running_hub() as hub:
        old = await made(hub)
        new = (await hub.post(f"/api/v1/tokens/{old['id']}/rotate", {})).json()
        assert (await hub.http.delete(f"/api/v1/tokens/{old['id']}")).status_code == 204
        await hub.service.access.tokens.load()
        assert [await enters(hub, token["token"]) for token in (old, new)] == [401, 401]


async def test_a_second_rotation_ends_the_first_secret() -> None:
    async with running_hub() as hub:
        tokens = [await made(hub)]
        for _ in range(2):
            tokens.append((await hub.post(f"/api/v1/tokens/{tokens[0]['id']}/rotate", {})).json())
        assert [await enters(hub, token["token"]) for token in tokens] == [401, 200, 200]


async def test_the_admins_token_in_the_state_folder_is_rotated_there_too(tmp_path: Path) -> None:
    async with running_hub(state=tmp_path) as hub:
        before = (tmp_path / "admin.token").read_text().strip()
        answer = await hub.post(f"/api/v1/tokens/{before.split('_')[1]}/rotate", {})
        assert (tmp_path / "admin.token").read_text().strip() == answer.json()["token"] != before


async def test_there_is_no_new_secret_for_a_token_that_is_not_there() -> None:
    async with running_hub() as hub:
        old = await made(hub)
        await hub.post(f"/api/v1/tokens/{old['id']}/rotate", {})
        body = {"public_key": "ab" * 32, "name": "k", "agents": "a"}
        key = (await hub.post("/api/v1/keys", body)).json()["id"]
        for wrong in ("nobody", f"{old['id']}.old", key):
            assert (await hub.post(f"/api/v1/tokens/{wrong}/rotate", {})).status_code == 404


# --- 3. guesses ------------------------------------------------------------------------------------------------


async def test_a_burst_of_refusals_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_watch, "BURSTS_EVERY", 0.5)
    async with running_hub() as hub:
        async with hub.client("ls_abcd_" + "0" * 64) as guesser:
            for _ in range(60):
                assert (await guesser.get("/api/v1/me")).status_code in (401, 429)
        async with asyncio.timeout(20):
            while not (found := await _bursts(hub)):  # noqa: ASYNC110 -- it is asked, as a person would
                await asyncio.sleep(0.05)
        assert all("127.0.0.1" in one["detail"] for one in found)
        assert len(found) <= 3
        assert "lifesigns_tokens_refused_total 60.0" in (await hub.get("/metrics")).text


async def _bursts(hub: RunningHub) -> list[dict[str, Any]]:
    entries = (await hub.get("/api/v1/audit")).json()["entries"]
    return [one for one in entries if one["what"] == "refused many"]


# --- 4. told in time -------------------------------------------------------------------------------------------


def test_people_are_told_before_a_token_expires_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an operator lives it: an alert a week before, the commands show it, a new secret ends it; and who goes on with one that has
    expired is named."""
    monkeypatch.setattr(token_watch, "EXPIRY_CHECK_EVERY", 0.05)
    moments = [time.time()]
    with hub_in_thread(clock=lambda: moments[-1]) as hub:
        made = {one: hub.client.create_token("agent", one, agents=f"{one}-*") for one in ("coder", "tester")}
        moments.append(moments[0] + 85 * DAY)
        assert not standing(hub)
        for one, token in made.items():
            assert beats(hub, f"{one}-1", token.token) == 202
        until(lambda: len(standing(hub)) == 2)
        text = standing(hub)[f"token_expiring:{made['coder'].id}"]
        assert f"Token {made['coder'].id} of coder-* expires in 5 days" in text
        doctor = hub.cli("doctor").stdout
        assert f"! expiry: Token {made['coder'].id} of coder-* expires in 5 days" in doctor
        assert "lifesigns token rotate" in doctor
        assert re.search(rf"{made['coder'].id} .* in 90 d", hub.cli("token", "list", COLUMNS="200").stdout)
        new = hub.client.rotate_token(made["coder"].id, grace=DAY)
        until(lambda: [*standing(hub)] == [f"token_expiring:{made['tester'].id}"])

        moments.append(moments[0] + 91 * DAY)
        assert beats(hub, "coder-1", new.token) == 202
        for _ in range(2):
            assert beats(hub, "tester-1", made["tester"].token) == 401
        until(lambda: [*standing(hub)] == ["hub_tokens_refused"])
        why = standing(hub)["hub_tokens_refused"]
        assert f"Token {made['tester'].id} of tester-* expired 1 d ago, and is still shown by tester-1" in why


def standing(hub: HubInThread) -> dict[str, str]:
    found = (one for one in hub.client.alerts().alerts if one.standing)
    return {one.id.removeprefix("standing:"): one.text for one in found if "token" in one.id}


def beats(hub: HubInThread, agent_id: str, token: str) -> int:
    bearer = {"authorization": f"Bearer {token}"}
    body = {"agent_id": agent_id}
    return httpx2.post(f"{hub.url}/api/v1/beats", json=body, headers=bearer, trust_env=False).status_code


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.05)


# --- 5. gRPC ---------------------------------------------------------------------------------------------------


def test_who_may_list_all_agents(tmp_path: Path) -> None:
    """A client of gRPC asks the hub as it is started: everybody got the list once."""
    with serving(tmp_path, None, "--grpc", str(port := free_port())) as hub:
        hub.post("/api/v1/beats", {"agent_id": "coder-7"})
        tokens = {
            role: str(hub.post("/api/v1/tokens", {"role": role, "name": role, **more})["token"])
            for role, more in (("agent", {"agents": "coder-*"}), ("viewer", {}))
        }

        def listed(authorization: str) -> set[str] | None:
            """What is told; None if that is refused."""
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                said = (("authorization", authorization),) if authorization else ()
                try:
                    answer = health_pb2_grpc.HealthStub(channel).List(
                        health_pb2.HealthListRequest(), metadata=said, timeout=30
                    )
                except grpc.RpcError as error:
                    return None if error.code() is grpc.StatusCode.UNAUTHENTICATED else {str(error)}
                return set(answer.statuses)

        assert listed("") is None
        assert listed(tokens["viewer"]) is None, "a token without its scheme"
        assert listed(f"Bearer {tokens['agent']}") is None
        for token in (tokens["viewer"], hub.token):
            assert "coder-7" in (listed(f"Bearer {token}") or ())
