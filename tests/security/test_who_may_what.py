"""A token opens what it is for, and nothing else.

Promises:
    1. Every call of the API is open to those who were meant to have it (`who_may_what.py`), and to nobody else.
    2. What is no token opens nothing, in whatever shape it comes: none, old, revoked, a key, in an address, a cookie or another header.
    3. A token of one agent says nothing as another agent and about another's things, and learns nothing of them.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from lifesigns.config.values import Limits
from lifesigns.core.effects import AskStatus
from lifesigns.hub import throttle
from lifesigns.hub.principals import Role
from lifesigns.web.routes import Route
from lifesigns.web.table import CALLS
from tests.security import who_may_what as by_hand
from tests.web.hub import RunningHub, running_hub

WAIT_MAX = 20.0
NOW = 1_000_000.0
SECRET = "only-the-victim-knows"


@asynccontextmanager
async def patient_hub(**more: Any) -> AsyncIterator[RunningHub]:
    """One that lets itself be asked as often as these tests do."""
    async with running_hub(limits=Limits(unknown_requests_per_second=10**6), **more) as hub:
        yield hub


@pytest.fixture(autouse=True)
def _no_throttle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong token is answered 401 however often it comes; that guesses are slowed down is shown elsewhere."""
    monkeypatch.setattr(throttle, "FAILURES_MAX", 10**9)


def line_of(call: Route) -> str:
    return f"{call.method} {call.path}"


def path_of(call: Route, agent_id: str = "coder-7") -> str:
    return re.sub(r"\{\w+\}", agent_id, call.path)


async def status_of(
    hub: RunningHub, call: Route, headers: Mapping[str, str], agent_id: str = "coder-7", query: str = ""
) -> int:
    """The status alone, and then hang up: some answers are streams without an end."""
    place = urlsplit(hub.url)
    lines = [f"{call.method} {path_of(call, agent_id)}{query} HTTP/1.1", f"Host: {place.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        async with asyncio.timeout(WAIT_MAX):
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
            return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# --- 1. who may ------------------------------------------------------------------------------------------------


def test_every_call_is_written_down() -> None:
    assert {line_of(call) for call in CALLS} == by_hand.ALL


def test_the_table_says_what_is_written_down() -> None:
    for role, may in by_hand.MAY.items():
        assert {line_of(call) for call in CALLS if Role(role) in call.who} == by_hand.lines(*may), role
    assert {line_of(call) for call in CALLS if not call.who} == by_hand.lines(by_hand.OPEN)
    assert not any(Role.KEY in call.who for call in CALLS)


@pytest.mark.parametrize("role", by_hand.MAY)
async def test_a_role_gets_what_is_written_down_and_nothing_else(role: str) -> None:
    async with patient_hub() as hub:
        token = await hub.token_for(Role(role), "coder-*" if role == "agent" else "")
        may = by_hand.lines(by_hand.OPEN, *by_hand.MAY[role])
        for call in CALLS:
            status = await status_of(hub, call, bearer(token))
            if line_of(call) in by_hand.lines(by_hand.OPEN):
                assert status < 500, line_of(call)
            elif line_of(call) in may:
                assert status < 500 or status in call.also_at, (
                    line_of(call),
                    status,
                )  # A probe says 503 of the unwell.
                assert status not in (401, 403), (line_of(call), status)
            else:
                assert status == 403, (line_of(call), status)


async def test_an_agents_token_gets_nothing_under_the_id_of_another() -> None:
    async with patient_hub() as hub:
        await hub.post("/api/v1/beats", {"agent_id": "victim"})
        token = await hub.token_for(Role.AGENT, "coder-*")
        for other in ("victim", "coder-", "Coder-7", "coder-7%2F..%2Fvictim", "unknown"):
            for call in CALLS:
                if "{agent_id}" in call.path:
                    status = await status_of(hub, call, bearer(token), other)
                    assert status == 403, (line_of(call), other, status)


# --- 2. what is no token ---------------------------------------------------------------------------------------


def shapes(token: str) -> dict[str, dict[str, str]]:
    """A good token of an admin, in shapes that are none."""
    name, token_id, secret = token.split("_")
    packed = base64.b64encode(f"admin:{token}".encode()).decode()
    digest = hashlib.sha256(token.encode()).hexdigest()
    authorizations = {
        "nothing": "",
        "a scheme alone": "Bearer",
        "a scheme and a blank": "Bearer ",
        "no scheme": token,
        "Basic": f"Basic {packed}",
        "Token": f"Token {token}",
        "Digest": f'Digest username="admin", response="{token}"',
        "a tab": f"Bearer\t{token}",
        "a colon": f"Bearer: {token}",
        "quoted": f'Bearer "{token}"',
        "as a parameter": f"Bearer token={token}",
        "twice": f"Bearer {token} {token}",
        "a list": f"Bearer {token}, Bearer {token}",
        "one sign more": f"Bearer {token}0",
        "one sign less": f"Bearer {token[:-1]}",
        "in capitals": f"Bearer {token.upper()}",
        "its id": f"Bearer {token_id}",
        "its id and nothing": f"Bearer {name}_{token_id}_",
        "its secret": f"Bearer {secret}",
        "its digest": f"Bearer {digest}",
        "another id": f"Bearer {name}_{'0' * len(token_id)}_{secret}",
        "after a sign that is none": f"Bearer \xa0{token}",
        "encoded": f"Bearer {token.replace('_', '%5F')}",
        "very long": f"Bearer {token * 50}",
        "the word null": "Bearer null",
        "a pattern": "Bearer *",
    }
    return {
        **{shape: {"Authorization": value} for shape, value in authorizations.items()},
        "another header": {"X-Api-Key": token, "X-Auth-Token": token, "Token": token},
        "for a proxy": {"Proxy-Authorization": f"Bearer {token}"},
        "forwarded": {"X-Forwarded-Authorization": f"Bearer {token}", "X-Original-Authorization": token},
        "somebody's word": {"X-Remote-User": "admin", "X-Forwarded-User": "admin", "X-Real-IP": "127.0.0.1"},
    }


GOOD = "ls_00000000_" + "0" * 64


@pytest.mark.parametrize("shape", [*shapes(GOOD), "in the address", "as a cookie"])
async def test_what_is_no_token_opens_nothing(shape: str) -> None:
    async with patient_hub() as hub:
        port = urlsplit(hub.url).port
        query = f"?token={hub.token}&access_token={hub.token}" if shape == "in the address" else ""
        cookie = {
            "Cookie": f"lifesigns_{port}={hub.token}; token={hub.token}; Authorization=Bearer {hub.token}"
        }
        headers = cookie if shape == "as a cookie" else shapes(hub.token).get(shape, {})
        for call in CALLS:
            line = line_of(call)
            if line not in by_hand.lines(by_hand.OPEN) and not (shape == "Basic" and line in by_hand.BASIC):
                status = await status_of(hub, call, headers, query=query)
                assert status == 401, (line, status)


@pytest.mark.parametrize("end", ["expired", "revoked", "rotated", "a key", "lost"])
async def test_a_token_that_is_over_opens_nothing(end: str) -> None:
    moments = [NOW]
    async with patient_hub(clock=lambda: moments[-1]) as hub:
        made = (
            await hub.post("/api/v1/tokens", {"role": "admin", "name": "n", "expires_after": 3600})
        ).json()
        tokens = [made["token"]]
        assert await status_of(hub, CALLS[2], bearer(tokens[0])) == 200
        match end:
            case "expired":
                moments.append(NOW + 3600)
            case "revoked":
                assert (await hub.http.delete(f"/api/v1/tokens/{made['id']}")).status_code == 204
            case "rotated":
                rotated = await hub.post(f"/api/v1/tokens/{made['id']}/rotate", {"grace": 60})
                assert rotated.status_code == 201
                moments.append(NOW + 60)
            case "a key":
                public = "ab" * 32
                body = {"public_key": public, "name": "k", "agents": "*"}
                key = (await hub.post("/api/v1/keys", body)).json()
                tokens = [
                    public,
                    key["id"],
                    f"ls_{key['id']}_{public}",
                    bytes.fromhex(public).decode("latin-1"),
                ]
            case _:
                await hub.service.store.drop_token(made["id"])
                await hub.service.access.tokens.load()
        for call in CALLS:
            if line_of(call) not in by_hand.lines(by_hand.OPEN):
                for token in tokens:
                    assert await status_of(hub, call, bearer(token)) == 401, line_of(call)


# --- 3. one agent and another ----------------------------------------------------------------------------------

AS_THE_VICTIM: list[tuple[str, str, Any]] = [
    ("POST", "/api/v1/beats", {"agent_id": "victim", "status": "draining"}),
    ("POST", "/api/v1/beats", [{"agent_id": "victim", "role": "standby"}]),
    ("POST", "/api/v1/signals", {"type": "left", "agent_id": "victim"}),
    ("POST", "/api/v1/signals", {"type": "exited", "agent_id": "victim", "status": 1}),
    ("POST", "/api/v1/signals", {"type": "claim", "agent_id": "victim", "task_id": "t-2"}),
    ("GET", "/api/v1/agents/victim/orders", None),
    ("GET", "/api/v1/orders?agent=victim", None),
    ("GET", "/api/v1/orders?agent=evil&agent=victim", None),
    ("GET", "/api/v1/orders?agent=evil,victim", None),
    ("POST", "/api/v1/agents/victim/orders/n-1/ack", {}),
    ("POST", "/api/v1/tasks/t-1/claim", {"agent_id": "victim"}),
    ("POST", "/api/v1/tasks/t-1/release", {"agent_id": "victim"}),
    ("POST", "/api/v1/tasks/t-1/checkpoints", {"agent_id": "victim", "checkpoint_id": "x"}),
    ("PUT", "/api/v1/tasks/t-1/checkpoints/x?agent_id=victim", "x"),
    ("POST", "/api/v1/messages", {"agent_id": "victim", "to": "evil"}),
    ("POST", "/api/v1/messages/m-1/ack", {"agent_id": "friend"}),
]
ABOUT_THE_VICTIM: list[tuple[str, str, Any]] = [
    ("POST", "/api/v1/signals", {"type": "claim", "agent_id": "evil", "task_id": "t-1"}),
    ("POST", "/api/v1/signals", {"type": "release", "agent_id": "evil", "task_id": "t-1"}),
    ("POST", "/api/v1/signals", {"type": "task_assigned", "agent_id": "evil", "task_id": "t-1"}),
    ("POST", "/api/v1/signals", {"type": "task_done", "agent_id": "evil", "task_id": "t-1"}),
    ("POST", "/api/v1/signals", {"type": "message_acked", "agent_id": "evil", "message_id": "m-1"}),
    ("POST", "/api/v1/signals", {"type": "message_withdrawn", "agent_id": "evil", "message_id": "m-1"}),
    ("POST", "/api/v1/tasks/t-1/claim", {"agent_id": "evil"}),
    ("POST", "/api/v1/tasks/t-1/release", {"agent_id": "evil"}),
    ("POST", "/api/v1/tasks/t-1/checkpoints", {"agent_id": "evil", "checkpoint_id": "cp-1"}),
    ("PUT", "/api/v1/tasks/t-1/checkpoints/cp-1?agent_id=evil", "x"),
    ("GET", "/api/v1/tasks/t-1/checkpoints/cp-1", None),
    ("GET", "/api/v1/tasks/t-1/checkpoints/cp-1?agent_id=victim", None),
    ("POST", "/api/v1/messages/m-1/ack", {"agent_id": "evil"}),
    ("DELETE", "/api/v1/messages/m-1", None),
    ("POST", "/api/v1/messages", {"agent_id": "evil", "to": "victim", "message_id": "m-1"}),
]


async def furnish(hub: RunningHub) -> None:
    """A victim with something of everything."""
    await hub.post("/api/v1/beats", [{"agent_id": one} for one in ("victim", "friend", "evil")])
    signals = [
        {"type": "task_assigned", "agent_id": "victim", "task_id": "t-1", "expected_for": 60},
        {"type": "claim", "agent_id": "victim", "task_id": "t-1"},
        {"type": "checkpoint", "agent_id": "victim", "task_id": "t-1", "checkpoint_id": "cp-1"},
        {"type": "doing", "agent_id": "victim", "doing": "waiting_for_human", "note": SECRET},
        {"type": "message_sent", "agent_id": "victim", "message_id": "m-1", "to": "friend"},
    ]
    assert (await hub.post("/api/v1/signals", signals)).json()["rejected"] == []
    now = hub.service.clock()
    asked = AskStatus(now, "n-1", 1, "victim", None, task_id="t-1", text=SECRET, answer_by=now + 3600)
    hub.service.hub.deliver(asked)


async def all_about_the_victim(hub: RunningHub) -> list[Any]:
    places = ("agents/victim", "tasks", "messages", "tasks/t-1/checkpoints", "agents/victim/orders")
    return [(await hub.get(f"/api/v1/{place}")).json() for place in places]


@pytest.mark.parametrize(("method", "path", "body"), [*AS_THE_VICTIM, *ABOUT_THE_VICTIM])
async def test_a_token_of_another_agent_changes_nothing_and_learns_nothing(
    method: str, path: str, body: Any
) -> None:
    standing = running_hub(clock=lambda: NOW)
    async with standing as hub, hub.client(await hub.token_for(Role.AGENT, "evil")) as evil:
        await furnish(hub)
        before = await all_about_the_victim(hub)
        content = {"content": body} if isinstance(body, str) else {"json": body} if body is not None else {}
        answer = await evil.request(method, path, **content)
        taken = answer.status_code < 300
        if taken:  # What is heard and changes nothing: the engine compares it with what it knows.
            assert path == "/api/v1/signals"
            assert body["agent_id"] == "evil"
        else:
            assert answer.status_code in (400, 403, 404, 409)
        assert SECRET not in answer.text
        assert await all_about_the_victim(hub) == before


async def test_what_an_agent_may_read_says_nothing_of_others() -> None:
    async with running_hub() as hub, hub.client(await hub.token_for(Role.AGENT, "evil")) as evil:
        await furnish(hub)
        for call in CALLS:
            if call.method == "GET" and Role.AGENT in call.who and call.path != "/api/v1/orders":
                answer = await evil.get(path_of(call, "evil"))
                assert "victim" not in answer.text, line_of(call)
                assert SECRET not in answer.text


@pytest.mark.parametrize("path", ["/api/v1/messages/m-1/ack", "/api/v1/messages/m-1", "/api/v1/messages"])
async def test_who_writes_to_whom_is_nobody_elses_business(path: str) -> None:
    """To guess an id tells neither that there is such a message, nor whose it is."""
    async with running_hub() as hub, hub.client(await hub.token_for(Role.AGENT, "evil")) as evil:
        await furnish(hub)
        method = "DELETE" if path.endswith("m-1") else "POST"
        body = {"agent_id": "evil", "to": "evil", "message_id": "m-1"}
        named = {"x-request-id": "r-1"}
        answer = await evil.request(method, path, json=None if method == "DELETE" else body, headers=named)
        assert answer.status_code in (404, 409)
        assert "victim" not in answer.text
        assert "friend" not in answer.text
        if path != "/api/v1/messages":
            unknown = await evil.request(
                method,
                path.replace("m-1", "m-2"),
                json=body if method == "POST" else None,
                headers=named,
            )
            assert unknown.text == answer.text.replace("m-1", "m-2")
