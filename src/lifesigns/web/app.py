"""The app: every request goes through here.

It checks host and origin, finds principal and route, checks the permission, reads the query and the body within limits
of size and time; then the route's handler runs. Every failure is a problem with a status and a sentence. A bug of ours
is a 500 without details.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec

from lifesigns.config.values import HookSettings, Limits
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.http_receiver import InboxFull, NotLeader, NotStored
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.service import Service
from lifesigns.hub.throttle import network
from lifesigns.integrations.hooks.registry import HookSessions
from lifesigns.ports.correlation import correlation_id
from lifesigns.ports.request_ids import HEADER, request_id
from lifesigns.web import pages
from lifesigns.web.access import PINGED, Headers, HostPolicy, admit, bearer_of, headers_of, token_shown
from lifesigns.web.answers import GZIP_BESIDE_FROM, GZIP_FROM, Answer, Problem, Stream, guarded, squeezed
from lifesigns.web.beat_fast_path import BeatFastPath
from lifesigns.web.bodies import ClientGone, CountBytes, Receive, read_body
from lifesigns.web.connections import Connections
from lifesigns.web.fleet_snapshot import FleetSnapshot
from lifesigns.web.forwarded import BEATS_OF_HUB, CHALLENGE, HOST_POLICY, as_sent, proving
from lifesigns.web.history_reader import HistoryReader
from lifesigns.web.ids import check_path
from lifesigns.web.quotas import WebQuotas
from lifesigns.web.rates import Rates
from lifesigns.web.routes import NO_TOKEN, NoQuery, Request, Route, RouteTable
from lifesigns.web.table import CALLS
from lifesigns.wire.signed import is_signed

if TYPE_CHECKING:
    from lifesigns.web.prometheus import Metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

HOOKS: Final = "hooks"
"""The folder, below the hub's state, in which hooks find their client and leave what they could not say."""
SPOKEN_TO: Final = frozenset({"/api/v1/beats", "/api/v1/signals", "/v1/traces", "/v1/logs", "/v1/metrics"})
"""Where agents report."""
NAMED_MAX: Final = 64 * 1024
"""Bytes read of a refused request, to learn which agent it claims to be."""

log: Final = logging.getLogger("lifesigns.web")


@dataclass(slots=True)
class Site:
    """The state of the web itself, beside the hub."""

    fleet_snapshot: FleetSnapshot
    host_policy: HostPolicy
    limits: Limits
    rates: Rates
    quotas: WebQuotas
    history_reader: HistoryReader
    hooks: HookSessions
    answered: dict[int, int] = field(default_factory=dict)
    """The number of answers by status."""
    connections: Connections | None = None
    """Set by the server."""
    metrics: Metrics | None = None
    """Made when they are first asked for: most hubs are never scraped, and prometheus_client is a twentieth of their start."""


BEATS: Final = "/api/v1/beats"
MSGPACK: Final = b"application/msgpack"

HEAD_COSTS: Final = 50e-6
"""Seconds that a request takes before it is known whose it is, and that its answer takes: nobody measures these."""

JSON_MAX: Final = 512 * 1024
"""Bytes of what an agent says that is read in one go, while all others wait: twenty milliseconds at worst."""

REFUSED_AFTER: Final = 0.5
"""Seconds after which an agent's token that asks too much is told so: who does not listen asks again at once, and to refuse costs
nearly as much as to answer."""

NOT_IN_OFFICE_WAIT: Final = "30"
"""Seconds after which to check whether this hub has been restarted."""


class Web:
    """The ASGI application."""

    def __init__(
        self,
        service: Service,
        host_policy: HostPolicy | None = None,
        limits: Limits | None = None,
        calls: Iterable[Route] = CALLS,
        dashboard: Path | None = pages.FOLDER,
        hooks: HookSettings | None = None,
    ) -> None:
        self.service = service
        answered: dict[int, int] = {}
        limits = limits or Limits()
        rates, quotas = Rates(limits), WebQuotas(service, limits)
        service.hub.shares.share = limits.busy_share_per_token
        folder = None if service.state_folder is None else service.state_folder / HOOKS
        self.site = Site(
            FleetSnapshot(service),
            host_policy or HostPolicy(),
            limits,
            rates,
            quotas,
            HistoryReader(service.hub, service.feed),
            HookSessions(
                service.hub, folder, _home(), commits_count=(hooks or HookSettings()).commits_are_checkpoints
            ),
            answered,
        )
        self.table = RouteTable((*calls, *(() if dashboard is None else pages.calls(dashboard))))
        self.at_once = BeatFastPath(service, self.site.host_policy, rates.requests, answered, HEAD_COSTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        called = request_id(dict(scope["headers"]).get(HEADER))
        correlation_id.set(called.decode())  # A request is a task with its own context: this ends with it.
        if self.service.lease is not None:
            scope = self._as_sent(scope)
        policy = scope.get(HOST_POLICY, self.site.host_policy)
        try:
            answer: Answer | Stream = await self._answer(scope, receive, policy)
        except Problem as problem:
            answer = problem.answer()
        except (InboxFull, NotStored, NotLeader) as error:
            wait = NOT_IN_OFFICE_WAIT if isinstance(error, NotLeader) else "1"
            answer = Problem(503, str(error.__doc__), headers={"Retry-After": wait}).answer()
        except WireError as error:
            answer = Problem(400, error.detail, field=error.field or None).answer()
        except AdapterError as error:
            log.warning("%s %s: %s", scope["method"], scope["path"], error, extra={"action": "store_unread"})
            answer = Problem(
                503, "the store does not answer; come again", headers={"Retry-After": "5"}
            ).answer()
        except ClientGone:
            return
        except Exception:  # a bug of ours must fail one request and not all
            log.exception("%s %s failed", scope["method"], scope["path"], extra={"action": "request_failed"})
            answer = Problem(500, "this is a bug of lifesigns; its log says more").answer()
        answer.headers = guarded([*answer.headers, (HEADER, called)], policy.strict_transport(scope))
        self.site.answered[answer.status] = self.site.answered.get(answer.status, 0) + 1
        if isinstance(answer, Stream):
            await send_stream(answer, scope, receive, send)
        else:
            await send_answer(answer, scope, send)

    def _as_sent(self, scope: Scope) -> Scope:
        """A call that another hub on the store forwarded, as its client sent it."""
        macs = self.service.access.tokens.hub_macs
        return scope if macs is None else as_sent(scope, macs)

    async def _answer(self, scope: Scope, receive: Receive, policy: HostPolicy) -> Answer | Stream:
        service, site = self.service, self.site
        headers = headers_of(scope)
        if service.lease is not None:
            if (found := await self._answer_hub(scope, headers, receive)) is not None:
                return found
            if (token := token_shown(scope, headers)) is not None:
                await service.access.look_up(token, service.clock())
        who = admit(scope, headers, service.access, service.clock(), policy)
        if isinstance(who, Problem):
            principal, refusal = None, who
        else:
            principal, refusal = who, None
        # People and their tools may ask as fast as they can; an agent that runs wild must not slow down the others.
        if principal is None:
            site.rates.check_address(network(policy.address(scope)), service.clock())
        elif principal.role is Role.AGENT:
            return await self._answer_agent(principal, scope, headers, receive)
        return await self._call(principal, refusal, scope, headers, receive)

    async def _answer_hub(self, scope: Scope, headers: Headers, receive: Receive) -> Answer | None:
        """The answer to another hub on the store; None if it is not such a call, but perhaps one that it forwards."""
        lease, macs = self.service.lease, self.service.access.tokens.hub_macs
        if lease is None or macs is None:
            return None
        if (challenge := headers.get(CHALLENGE)) is not None:
            return proving(challenge, lease, macs)
        if scope["path"] != BEATS_OF_HUB or HOST_POLICY not in scope:
            return None
        raw = await read_body(headers, receive, self.site.limits.body_bytes)
        posts = read_as(lambda: msgspec.msgpack.decode(raw, type=list[tuple[bytes, bytes]]))
        return Answer(
            msgspec.msgpack.encode(self.at_once.take_of_hub(posts)), content_type=MSGPACK, final=True
        )

    async def _answer_agent(
        self, who: Principal, scope: Scope, headers: Headers, receive: Receive
    ) -> Answer | Stream:
        """Within its limits and its share of the hub's time."""
        shares, rates = self.service.hub.shares, self.site.rates
        shares.charge(who.token_id, HEAD_COSTS)
        try:
            await rates.check_share(who.token_id, who.name, shares)
            rates.check_token(who.token_id, who.name, self.service.clock())
            return await shares.measured(who.token_id, self._call(who, None, scope, headers, receive))
        except Problem as problem:
            if problem.status == 429:
                wait_for = float(problem.headers.get("Retry-After", 0))
                self.service.hub.put_off(who.token_id, wait_for=wait_for)
                await asyncio.sleep(REFUSED_AFTER)
            raise

    async def _call(
        self,
        principal: Principal | None,
        refusal: Problem | None,
        scope: Scope,
        headers: Headers,
        receive: Receive,
    ) -> Answer | Stream:
        service, site = self.service, self.site
        call, path = self.table.find(scope["method"], scope["raw_path"])
        if call.who is not NO_TOKEN:
            if refusal is not None:
                await self._note_refusal(scope, headers, receive, refusal)
                raise refusal
            _check_role(call, principal, path)
            if (call.method != "GET" and call.path != BEATS) or call.path.startswith(PINGED):
                site.rates.check_events(principal, service.clock())
        if path:
            check_path(path)
        query = _query(call.query, scope["query_string"]) if call.query is not NoQuery else None
        body = None
        if call.body is not None:
            raw = await read_body(
                headers, receive, self._body_max(call, principal), self._count_bytes(principal)
            )
            body = raw if call.body is bytes else _read_body(raw, call.body)
        return await call.handle(Request(service, principal, path, query, body, scope, site))

    async def _note_refusal(self, scope: Scope, headers: Headers, receive: Receive, refusal: Problem) -> None:
        """The hub does not watch an agent whose token it refuses, so record which agent that is."""
        bearer = bearer_of(headers)
        if bearer is None or scope["path"] not in SPOKEN_TO:
            return
        names: list[str] = []
        if refusal.status == 401:  # A throttled client was read before.
            with suppress(Problem, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                raw = await read_body(headers, receive, NAMED_MAX)
                if is_signed(raw):
                    raw = raw.partition(b"\n")[2]
                named = msgspec.json.decode(raw, type=_AgentOfMessage | list[_AgentOfMessage])
                names = [
                    one.agent_id for one in (named if isinstance(named, list) else [named]) if one.agent_id
                ]
        self.service.token_watch.note_refused(bearer, names)

    def _body_max(self, call: Route, principal: Principal | None) -> int:
        whole = self.site.limits.body_bytes
        is_agent = principal is not None and principal.role is Role.AGENT
        return min(whole, JSON_MAX) if is_agent and not (call.body is bytes or call.large) else whole

    def _count_bytes(self, principal: Principal | None) -> CountBytes | None:
        if principal is None or principal.role is not Role.AGENT:
            return None
        rates, clock = self.site.rates, self.service.clock
        return lambda size: rates.take_bytes(principal.token_id, principal.name, size, clock())


def _home() -> Path:
    """Of whoever runs the hub; some accounts have none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


class _AgentOfMessage(msgspec.Struct):
    """The agent of a beat or a signal."""

    agent_id: str = ""


def _check_role(call: Route, who: Any, path: Mapping[str, str]) -> None:
    if who.role not in call.who:
        roles = ", ".join(sorted(call.who))
        raise Problem(403, f"{who.name!r} is {who.role}, but this needs one of: {roles}")
    if "agent_id" in path and not who.may_see(path["agent_id"]):
        raise Problem(403, f"{who.name!r} may not ask about {path['agent_id']!r}")


# --- reading ------------------------------------------------------------------------------------------


def _query(shape: type[msgspec.Struct], raw: bytes) -> Any:
    """The query as its type; a repeated parameter becomes a list where the type wants one."""
    values: dict[str, Any] = {}
    lists = _list_fields(shape)
    for name, value in parse_qsl(raw.decode("ascii", "replace"), keep_blank_values=True):
        if name in lists:
            values.setdefault(name, []).extend(part for part in value.split(",") if part)
        else:
            values[name] = value
    return read_as(lambda: msgspec.convert(values, shape, strict=False))


@cache
def _list_fields(shape: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(f.encode_name for f in msgspec.structs.fields(shape) if _is_list(f.type))


def _is_list(kind: Any) -> bool:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return (get_origin(kind) or kind) in (tuple, list)


def read_as(read: Callable[[], Any]) -> Any:
    """Run `read`; turns errors of msgspec into a problem that names the field."""
    try:
        return read()
    except msgspec.ValidationError as error:
        detail, _, place = str(error).partition(" - at `$")
        missing = detail.partition("missing required field `")[2].strip("`")
        raise Problem(
            400, "is missing" if missing else _sentence(detail), field=missing or place.strip("`.") or None
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body cannot be read: {error}") from None


def _sentence(detail: str) -> str:
    return f"{detail[:1].lower()}{detail[1:300]}"


def _read_body(raw: bytes, shape: Any) -> Any:
    if not raw and NoneType in get_args(shape):
        return None
    return read_as(lambda: msgspec.json.decode(raw, type=shape))


# --- answering ----------------------------------------------------------------------------------------


async def send_answer(answer: Answer, scope: Scope, send: Send) -> None:
    """Send a complete answer, compressed if it is large and the client can read that."""
    if not answer.body:
        length = () if answer.status in (204, 304) else ((b"content-length", b"0"),)
        headers = [*answer.headers, *length]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body"})
        return
    body, headers = answer.body, [(b"content-type", answer.content_type), *answer.headers]
    if len(body) >= GZIP_FROM and not answer.final and _reads_gzip(scope):
        # A megabyte takes ten milliseconds, and the loop must go on meanwhile.
        body = squeezed(body) if len(body) < GZIP_BESIDE_FROM else await asyncio.to_thread(squeezed, body)
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _reads_gzip(scope: Scope) -> bool:
    return any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])


async def send_stream(answer: Stream, scope: Scope, receive: Receive, send: Send) -> None:
    """Send piece by piece, until one side ends it. A client that hangs up ends it at once, not with the next piece."""
    headers = [(b"content-type", answer.content_type), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if scope["method"] == "HEAD":
        await send({"type": "http.response.body"})
        return
    pieces = asyncio.ensure_future(_pieces(answer, send))
    gone = asyncio.ensure_future(hang_up(receive))
    try:
        await asyncio.wait((pieces, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pieces, gone):
            task.cancel()
        await asyncio.gather(pieces, gone, return_exceptions=True)


async def _pieces(answer: Stream, send: Send) -> None:
    async with aclosing(answer.pieces) as pieces:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def hang_up(receive: Receive) -> None:
    """Return when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass
