"""`/mcp` at the hub: the tools of `lifesigns mcp`, by streamable HTTP.

Each message is one POST with one answer in JSON: no session, no stream of ours. The tools ask the hub's own API, in this process
and with the caller's own token, so roles, limits and the audit log are those of the API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from lifesigns import __version__
from lifesigns.cli.mcp import INSTRUCTIONS, import_tools, server_for
from lifesigns.errors import HubError, UsageError
from lifesigns.web.access import bearer_of, headers_of
from lifesigns.web.answers import Answer, Problem
from lifesigns.web.app import JSON_MAX
from lifesigns.web.ids import AgentId
from lifesigns.web.routes import EVERYBODY, Request, Route

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from lifesigns.client import AsyncClient

HERE: Final = "http://localhost"
"""How our own requests name the hub: they never leave this process."""
KNOWN_MAX: Final = 100
"""Callers whose tools we keep."""
KNOWN_PER_TOKEN: Final = 10
"""Of these, for one token: it must not close those that others are using."""
VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Of the protocol with streamable HTTP, the newest first."""

NO_METHOD: Final = -32601
NO_REQUEST: Final = -32600
BAD_ARGUMENTS: Final = -32602


class McpQuery(msgspec.Struct):
    """For which agent the model speaks, if its token is good for several."""

    agent: AgentId | None = None


class McpMessage(msgspec.Struct):
    """A JSON-RPC request; without an id a notification, which nobody answers."""

    jsonrpc: str
    method: str = ""
    id: int | str | None = None
    params: dict[str, Any] = {}


class McpEndpoint:
    """Answers MCP. `app` is the hub's own web application, once it is there."""

    def __init__(self) -> None:
        self.app: Any = None
        self._known: dict[tuple[bytes, str | None], tuple[AsyncClient, MCPServer]] = {}
        self.routes = (Route("POST", "/mcp", EVERYBODY, self.answer, dict, query=McpQuery, body=bytes),)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client, _server in self._known.values():
            await client.close()

    async def answer(self, request: Request) -> Answer:
        """One message of the Model Context Protocol."""
        bearer = bearer_of(headers_of(request.scope))
        if bearer is None:
            raise Problem(401, "MCP needs Authorization: Bearer <token>")
        if len(request.body) > JSON_MAX:
            raise Problem(413, f"the message is over the limit of {JSON_MAX} bytes")
        try:
            message = msgspec.json.decode(request.body, type=McpMessage)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return _json(
                {"jsonrpc": "2.0", "id": None, "error": {"code": NO_REQUEST, "message": str(error)[:300]}},
                400,
            )
        if message.id is None or not message.method:
            return Answer(b"", 202)  # A notification, or an answer to a question that we never ask.
        handle = _METHODS.get(message.method)
        if handle is None:
            return _failed(message, NO_METHOD, f"no method {message.method[:100]!r} here")
        server = await self._server(bearer, request.query.agent)
        try:
            result = await handle(server, message.params)
        except _BadParams as error:
            return _failed(message, BAD_ARGUMENTS, str(error))
        return _json({"jsonrpc": "2.0", "id": message.id, "result": result})

    async def _server(self, bearer: bytes, agent_id: str | None) -> MCPServer:
        known = self._known.get((bearer, agent_id))
        if known is None:
            known = self._known[bearer, agent_id] = await self._connect(bearer, agent_id)
            own = [key for key in self._known if key[0] == bearer]
            if len(own) > KNOWN_PER_TOKEN or len(self._known) > KNOWN_MAX:
                oldest = own[0] if len(own) > KNOWN_PER_TOKEN else next(iter(self._known))
                await self._known.pop(oldest)[0].close()
        return known[1]

    async def _connect(self, bearer: bytes, agent_id: str | None) -> tuple[AsyncClient, MCPServer]:
        try:
            # A second's work, the first time: the hub goes on meanwhile, and no token pays for it.
            await asyncio.to_thread(import_tools)
        except ImportError as error:
            raise Problem(501, "/mcp needs: pip install 'lifesigns[mcp]', where the hub runs") from error
        import httpx2

        from lifesigns.client import AsyncClient

        transport = httpx2.ASGITransport(app=self.app)
        client = AsyncClient(HERE, bearer.decode("ascii"), transport=transport)
        try:
            return client, await server_for(client, agent_id)
        except BaseException as error:
            await client.close()
            if isinstance(error, UsageError):
                raise Problem(400, f"{error} (here: /mcp?agent=ID)", field="agent") from error
            if isinstance(error, HubError):
                raise Problem(error.status or 503, str(error)) from error
            raise


class _BadParams(Exception):
    """What a method was given makes no sense."""


async def _initialize(server: MCPServer, params: dict[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "lifesigns", "version": __version__},
        "instructions": INSTRUCTIONS,
    }


async def _ping(server: MCPServer, params: dict[str, Any]) -> dict[str, Any]:
    return {}


async def _list(server: MCPServer, params: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [_plain(tool) for tool in await server.list_tools()]}


async def _call(server: MCPServer, params: dict[str, Any]) -> dict[str, Any]:
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError

    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise _BadParams("tools/call needs a name, and arguments by name")
    try:
        return _plain(await server.call_tool(name, arguments))
    except UnexpectedToolError:
        raise
    except ToolError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}


_METHODS: Final[dict[str, Callable[[MCPServer, dict[str, Any]], Awaitable[dict[str, Any]]]]] = {
    "initialize": _initialize,
    "ping": _ping,
    "tools/list": _list,
    "tools/call": _call,
}


def _plain(value: Any) -> dict[str, Any]:
    """A value of the SDK as the protocol writes it."""
    plain: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain


def _failed(message: McpMessage, code: int, text: str) -> Answer:
    return _json({"jsonrpc": "2.0", "id": message.id, "error": {"code": code, "message": text}})


def _json(body: dict[str, Any], status: int = 200) -> Answer:
    return Answer(msgspec.json.encode(body), status)
