"""AI Maestro over its HTTP API (port 23000, no authentication).

What it keeps of a message's content is `type`, `message` and `context`; everything else goes into the context. An unknown
recipient is a 500 like any other, so the name is looked up before it is believed. A list has summaries: what is in a
message is read one by one. At most `AT_ONCE` requests are under way; the others wait for their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import httpx2
import msgspec

from lifesigns.adapters.posting import trust
from lifesigns.ports.messenger import (
    IncomingMessage,
    MessengerError,
    OutgoingMessage,
    SentMessage,
    SessionActivity,
    SessionState,
    UnknownRecipient,
)

TIMEOUT: Final = 10.0
AT_ONCE: Final = 4
ANSWER_MAX: Final = 4 * 1024 * 1024
LISTED_MAX: Final = 100
QUOTED_MAX: Final = 200
TEXT_MAX: Final = 4096
NAME_MAX: Final = 128

_decode: Final = msgspec.json.Decoder().decode


class AiMaestro:
    """Implements `lifesigns.ports.Messenger`."""

    def __init__(self, url: str, name: str, *, timeout: float = TIMEOUT) -> None:
        self._url = url.rstrip("/")
        self._name = name
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None
        self._connecting = asyncio.Lock()
        self._turns = asyncio.Semaphore(AT_ONCE)

    @property
    def name(self) -> str:
        return self._name

    # --- messages -------------------------------------------------------------------------------------

    async def send(self, message: OutgoingMessage) -> SentMessage:
        body = {
            "from": self._name,
            "to": message.to,
            "subject": message.subject,
            "priority": message.priority,
            "content": {"type": message.kind, "message": message.text, "context": dict(message.context)},
        }
        status, answer = await self._ask("POST", "/api/messages", body)
        if status == 500 and not (await self._agent(message.to)).get("exists"):
            raise UnknownRecipient(f"AI Maestro knows no agent {message.to!r}", transient=False)
        sent = _dict(self._taken("POST /api/messages", status, answer).get("message"))
        return SentMessage(_text(sent.get("id")), _dict(answer).get("notified") is True)

    async def unread(self) -> Sequence[IncomingMessage]:
        path = f"/api/messages?agent={_part(self._name)}&action=list&status=unread&limit={LISTED_MAX}"
        listed = (await self._get(path)).get("messages")
        found = [_dict(one) for one in listed[:LISTED_MAX]] if isinstance(listed, list) else []
        found.sort(key=lambda one: _text(one.get("timestamp")))
        messages = []
        for one in found:
            whole = one if isinstance(one.get("content"), dict) else await self._message(_text(one.get("id")))
            messages.append(_incoming({**one, **whole}))
        return [message for message in messages if message.id and message.sender]

    async def mark_read(self, message_id: str) -> None:
        path = f"/api/messages?agent={_part(self._name)}&id={_part(message_id)}&action=read"
        status, answer = await self._ask("PATCH", path)
        if status != 404:
            self._taken("PATCH /api/messages", status, answer)

    async def is_read(self, recipient: str, message_id: str) -> bool:
        path = f"/api/messages?agent={_part(recipient)}&id={_part(message_id)}"
        return _message_of(await self._get(path, missing_ok=True)).get("status") in ("read", "archived")

    async def _message(self, message_id: str) -> dict[str, Any]:
        path = f"/api/messages?agent={_part(self._name)}&id={_part(message_id)}"
        return _message_of(await self._get(path, missing_ok=True))

    # --- sessions -------------------------------------------------------------------------------------

    async def session(self, name: str) -> SessionState:
        known = await self._agent(name)
        agent_id = _text(_dict(known.get("agent")).get("id"))
        if not known.get("exists") or not agent_id:
            return SessionState.NOT_FOUND
        session = await self._get(f"/api/agents/{_part(agent_id)}/session", missing_ok=True)
        is_there = session.get("hasSession") is not False and session.get("exists") is True
        return SessionState.ONLINE if is_there else SessionState.OFFLINE

    async def activity(self) -> Mapping[str, SessionActivity]:
        sessions = _dict((await self._get("/api/sessions/activity")).get("activity"))
        return {
            name: SessionActivity(
                str(one.get("lastActivity") or "")[:NAME_MAX],
                one.get("status") == "waiting",
                _text(one.get("notificationType"))[:NAME_MAX],
            )
            for name, one in sessions.items()
            if isinstance(one, dict) and 0 < len(name) <= NAME_MAX
        }

    async def _agent(self, name: str) -> dict[str, Any]:
        return await self._get(f"/api/agents/by-name/{_part(name)}", missing_ok=True)

    # --- HTTP -----------------------------------------------------------------------------------------

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _get(self, path: str, *, missing_ok: bool = False) -> dict[str, Any]:
        status, answer = await self._ask("GET", path)
        if status == 404 and missing_ok:
            return {}
        return self._taken(f"GET {path.partition('?')[0]}", status, answer)

    def _taken(self, what: str, status: int, answer: object) -> dict[str, Any]:
        if 200 <= status < 300 and isinstance(answer, dict):
            return answer
        said = _dict(answer)
        why = _text(said.get("error")) or _text(said.get("message")) or "no JSON object"
        again = status in (408, 425, 429) or status >= 500 or status < 300
        raise MessengerError(f"AI Maestro answered {status} to {what}: {why[:QUOTED_MAX]}", transient=again)

    async def _ask(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            client = await self._connected()
            async with (
                self._turns,
                asyncio.timeout(self._timeout),
                client.stream(method, self._url + path, content=content, headers=headers) as response,
            ):
                received = bytearray()
                async for piece in response.aiter_bytes():
                    received += piece
                    if len(received) > ANSWER_MAX:
                        raise MessengerError(f"AI Maestro's answer has more than {ANSWER_MAX} bytes")
                return response.status_code, _json(bytes(received))
        except (TimeoutError, httpx2.TimeoutException):
            raise MessengerError(
                f"AI Maestro at {self._url} does not answer within {self._timeout:g} s"
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            text = str(error) or type(error).__name__
            raise MessengerError(f"AI Maestro at {self._url} is not reached: {text[:QUOTED_MAX]}") from None

    async def _connected(self) -> httpx2.AsyncClient:
        async with self._connecting:
            if self._client is None:
                # Reads the authorities from disk: not on the hub's loop, and only for TLS.
                verify = await asyncio.to_thread(trust) if self._url.startswith("https") else False
                self._client = httpx2.AsyncClient(
                    timeout=self._timeout,
                    headers={"User-Agent": "lifesigns"},
                    verify=verify,
                )
            return self._client


def _incoming(message: Mapping[str, Any]) -> IncomingMessage:
    content = _dict(message.get("content"))
    others = {name: value for name, value in content.items() if name not in ("type", "message", "context")}
    return IncomingMessage(
        _text(message.get("id")),
        _text(message.get("from")),
        _text(content.get("type")) or _text(message.get("type")),
        _text(content.get("message"))[:TEXT_MAX],
        {**others, **_dict(content.get("context"))},
        _text(message.get("inReplyTo")) or None,
    )


def _message_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """One message: the answer itself, or what it has as `message`, or the one of its `messages`."""
    listed = answer.get("messages")
    if isinstance(listed, list):
        return _dict(listed[0]) if listed else {}
    return _dict(answer.get("message")) or dict(answer)


def _json(body: bytes) -> object:
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _part(text: str) -> str:
    return quote(text, safe="")
